#include "placement/place/nodes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "placement/client/promql.h"

/* ---- series by node ---- */

/* The label that a series is found by. */
enum kind { BY_NODE, BY_INSTANCE, N_KINDS };

struct entry {
    enum kind kind;
    const char *key;
    const struct promql_series *series;
    bool is_ambiguous;
};

/* The series of an answer by node; it borrows the answer. */
struct index {
    struct hash_index hashes;
    struct entry *entries;
    size_t n_entries;
};

static void index_finish(struct index *index) {
    hash_index_finish(&index->hashes);
    free(index->entries);
}
#define CLEANUP_INDEX CLEANUP(index_finish)

static uint64_t hash_of(enum kind kind, const char *key) {
    return hash_bytes(key, strlen(key)) + (uint64_t)kind;
}

static struct entry *find(const struct index *index, enum kind kind, const char *key) {
    uint64_t hash = hash_of(kind, key);
    size_t cursor = 0;
    struct entry *entry;
    do {
        entry = hash_index_next(&index->hashes, hash, &cursor);
    } while (entry != NULL && (entry->kind != kind || strcmp(entry->key, key) != 0));
    return entry;
}

static void add(struct index *index, enum kind kind, const struct promql_series *series) {
    const char *key = promql_series_label(series, kind == BY_NODE ? "node" : "instance");
    struct entry *there = key != NULL ? find(index, kind, key) : NULL;
    if (there != NULL) {
        there->is_ambiguous = true;
    } else if (key != NULL) {
        struct entry *entry = &index->entries[index->n_entries++];
        *entry = (struct entry){.kind = kind, .key = key, .series = series};
        hash_index_add(&index->hashes, hash_of(kind, key), entry);
    }
}

static bool is_match(const struct promql_series *series, const struct label *match,
                     size_t n_match) {
    for (size_t i = 0; i < n_match; i++) {
        const char *value = promql_series_label(series, match[i].name);
        if (value == NULL || strcmp(value, match[i].value) != 0) {
            return false;
        }
    }
    return true;
}

/* The series that have all of the labels `match`. */
static struct index index_of(const struct promql_answer *answer, const struct label *match,
                             size_t n_match) {
    size_t max = N_KINDS * answer->n_series;
    struct index index = {.entries = mem_zalloc(max + 1, sizeof(*index.entries))};
    for (size_t i = 0; i < answer->n_series; i++) {
        if (is_match(&answer->series[i], match, n_match)) {
            add(&index, BY_NODE, &answer->series[i]);
            add(&index, BY_INSTANCE, &answer->series[i]);
        }
    }
    return index;
}

/* How the series with a node's name is joined with those of its state, the surest way first. Hosts
 * are not compared: several nodes can be behind one host, and while the sample of one is missing,
 * that of another would match. */
static const struct {
    const char *label;
    enum kind kind;
} ways[] = {
    {"node", BY_NODE},
    {"char_node_name", BY_INSTANCE},
    {"char_node_name", BY_NODE},
    {"instance", BY_INSTANCE},
};

static const struct entry *find_entry(const struct index *index,
                                      const struct promql_series *device) {
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        const char *key = promql_series_label(device, ways[i].label);
        const struct entry *entry = key != NULL ? find(index, ways[i].kind, key) : NULL;
        if (entry != NULL) {
            return entry;
        }
    }
    return NULL;
}

/* The value of the node that `device` names; NAN if there is none, or more than one. */
static double value_for(const struct index *index, const struct promql_series *device,
                        bool *ret_ambiguous) {
    const struct entry *entry = find_entry(index, device);
    *ret_ambiguous = entry != NULL && entry->is_ambiguous;
    return entry == NULL || entry->is_ambiguous ? NAN : entry->series->value;
}

/* The load is by the idle mode: the mean over all modes is the same for an idle node and a busy
 * one. deriv() instead of rate(), which is too low for a node that started within the window, so
 * that it would seem busy. Several plugins on a node may run a model: the measured time is the sum
 * of their times by the sum of their runs. */
static const char *const expressions[N_PLACE_QUERIES] = {
    [PLACE_LOAD] = "100 * (1 - avg by (node, instance) "
                   "(deriv(node_cpu_seconds_total{mode=\"idle\"}[$window])))",
    [PLACE_DISK] = "100 * (1 - max by (node, instance) "
                   "(node_filesystem_avail_bytes{mountpoint=\"/\",fstype!=\"rootfs\"}) / "
                   "max by (node, instance) "
                   "(node_filesystem_size_bytes{mountpoint=\"/\",fstype!=\"rootfs\"}))",
    [PLACE_DEVICE] = "time() - timestamp(char_node_device_model)",
    [PLACE_MEASURED] =
        "label_replace("
        "sum by (node, model) (increase(inference_seconds_sum{model=\"$model\"}[$window]))"
        " / sum by (node, model) (increase(inference_seconds_count{model=\"$model\"}[$window]))"
        ", \"quantity\", \"seconds\", \"\", \"\") or label_replace(floor("
        "sum by (node, model) (increase(inference_seconds_count{model=\"$model\"}[$window]))"
        "), \"quantity\", \"samples\", \"\", \"\") or label_replace(time() - max by (node, model) "
        "(timestamp(inference_seconds_count{model=\"$model\"})), \"quantity\", \"age\", \"\", "
        "\"\")",
};

/* Appends the expression with each `name` replaced. */
static void replace(const char *expression, const char *name, const char *by, struct buf *out) {
    const char *at;
    while ((at = strstr(expression, name)) != NULL) {
        buf_add(out, expression, (size_t)(at - expression));
        buf_add_str(out, by);
        expression = at + strlen(name);
    }
    buf_add_str(out, expression);
}

void place_query_write(enum place_query query, const char *window, struct buf *out) {
    replace(expressions[query], "$window", window, out);
}

void place_measured_query_write(const char *expression, const char *model, struct buf *out) {
    struct buf escaped CLEANUP_BUF = {0};
    for (; *model != '\0'; model++) {
        buf_add_str(&escaped, strchr("\"\\\n", *model) != NULL ? "\\" : "");
        buf_add_char(&escaped, *model == '\n' ? 'n' : *model);
    }
    replace(expression, "$model", buf_str(&escaped), out);
}

void place_samples_finish(struct place_samples *samples) {
    for (size_t i = 0; i < N_PLACE_QUERIES; i++) {
        promql_answer_finish(&samples->answers[i]);
    }
}

/* ---- nodes ---- */

static const char *text_of(const struct promql_series *series, const char *label) {
    const char *text = promql_series_label(series, label);
    return text != NULL ? text : "";
}

/* A value of a node; if something is wrong with it, that excludes the node. */
static double value_of(const struct index *index, const char *missing, const char *ambiguous,
                       struct place_node *node) {
    bool is_ambiguous = false;
    double value = value_for(index, node->device, &is_ambiguous);
    if (node->excluded == NULL && !isfinite(value)) {
        node->excluded = is_ambiguous ? ambiguous : missing;
    }
    return value;
}

static struct place_node node_of(const struct index *load, const struct index *disk,
                                 const struct promql_series *device, double max_age_seconds) {
    struct place_node node = {
        .device = device,
        .name = text_of(device, "char_node_name"),
        .class = text_of(device, "char_node_class"),
        .uuid = text_of(device, "char_node_uuid"),
        .device_model = text_of(device, "char_node_device_model_name"),
        .instance = text_of(device, "instance"),
    };
    node.name = node.name[0] != '\0' ? node.name : text_of(device, "node");
    node.name = node.name[0] != '\0' ? node.name : text_of(device, "instance");
    node.load = value_of(load, "no CPU load: less than two samples of node_cpu_seconds_total",
                         "more than one CPU load", &node);
    node.disk = value_of(disk, "no node_filesystem_avail_bytes of /",
                         "more than one root filesystem", &node);
    node.age_seconds = device->value;
    node.is_old = !(node.age_seconds <= max_age_seconds);
    if (node.excluded == NULL && node.is_old) {
        node.excluded = "its last samples are too old";
    }
    /* Beyond 100 if clocks differ, and far beyond if the node has just restarted. */
    node.load = fmin(fmax(node.load, 0), 100);
    return node;
}

/* What identifies a scraped node: several jobs may scrape it. */
static const char *target_of(const struct place_node *node) {
    const char *label = text_of(node->device, "node");
    return label[0] != '\0' ? label : node->instance;
}

static int compare(const void *left, const void *right) {
    const struct place_node *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    order = order != 0 ? order : strcmp(a->uuid, b->uuid);
    order = order != 0 ? order : strcmp(a->device_model, b->device_model);
    return order != 0 ? order : strcmp(target_of(a), target_of(b));
}

/* Two series of the same device and target are one node. Copied SD cards have the same name and
 * identity, so the target counts as well. */
static void merge_equal(struct place_nodes *nodes) {
    size_t n = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *last = n > 0 ? &nodes->nodes[n - 1] : NULL;
        const struct place_node *node = &nodes->nodes[i];
        if (last == NULL || compare(last, node) != 0) {
            nodes->nodes[n++] = *node;
        } else if (last->excluded != NULL) {
            *last = *node;
        }
    }
    nodes->n_nodes = n;
}

/* A scheduler knows nodes by name, so a name must be unique. Old series of a node that came back at
 * another address do not count. */
static void exclude_ambiguous(struct place_nodes *nodes) {
    struct place_node *last = NULL; /* that is not old */
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        if (node->is_old) {
            continue;
        }
        if (last != NULL && strcmp(last->name, node->name) == 0) {
            last->is_ambiguous = node->is_ambiguous = true;
            last->excluded = node->excluded =
                "several nodes have that name (see --collector.host.node-name)";
        }
        last = node;
    }
}

void place_nodes_join(const struct place_samples *samples, double max_age_seconds,
                      struct place_nodes *ret_nodes) {
    struct index load CLEANUP_INDEX = index_of(&samples->answers[PLACE_LOAD], NULL, 0);
    struct index disk CLEANUP_INDEX = index_of(&samples->answers[PLACE_DISK], NULL, 0);
    const struct promql_answer *devices = &samples->answers[PLACE_DEVICE];
    struct place_nodes nodes = {.n_nodes = devices->n_series};
    nodes.nodes = mem_zalloc(nodes.n_nodes + 1, sizeof(*nodes.nodes));
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        nodes.nodes[i] = node_of(&load, &disk, &devices->series[i], max_age_seconds);
    }
    qsort(nodes.nodes, nodes.n_nodes, sizeof(*nodes.nodes), compare);
    merge_equal(&nodes);
    exclude_ambiguous(&nodes);
    *ret_nodes = nodes;
}

void place_node_write_name(const struct place_node *node, struct buf *out) {
    buf_add_str(out, node->name);
    if (node->is_ambiguous) {
        buf_printf(out, " (%s)", target_of(node));
    }
}

void place_nodes_finish(struct place_nodes *nodes) {
    free(nodes->nodes);
    *nodes = (struct place_nodes){.n_nodes = 0};
}

/* ---- measured times ---- */

enum { SECONDS, SAMPLES, AGE, N_QUANTITIES };

static const char *const quantities[N_QUANTITIES] = {
    [SECONDS] = "seconds",
    [SAMPLES] = "samples",
    [AGE] = "age",
};

static struct place_measured measured_of(const struct index *by_quantity,
                                         const struct place_measured_limits *limits,
                                         const struct promql_series *device) {
    double values[N_QUANTITIES];
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        bool is_ambiguous;
        values[i] = value_for(&by_quantity[i], device, &is_ambiguous);
        if (!isfinite(values[i])) {
            return (struct place_measured){.samples = 0};
        }
    }
    if (values[SECONDS] <= 0 || values[SAMPLES] <= 0) {
        return (struct place_measured){.samples = 0};
    }
    return (struct place_measured){
        .seconds = values[SECONDS],
        .samples = values[SAMPLES],
        .age_seconds = values[AGE],
        .unused = values[AGE] > limits->max_age_seconds   ? "too old"
                  : values[SAMPLES] < limits->min_samples ? "too few"
                                                          : NULL,
    };
}

void place_measured_join(const struct place_samples *samples, const char *model,
                         const struct place_measured_limits *limits, struct place_nodes *nodes) {
    struct index by_quantity[N_QUANTITIES];
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        const struct label match[] = {{"model", model}, {"quantity", quantities[i]}};
        by_quantity[i] = index_of(&samples->answers[PLACE_MEASURED], match, ARRAY_LEN(match));
    }
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        node->measured = measured_of(by_quantity, limits, node->device);
    }
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        index_finish(&by_quantity[i]);
    }
}

bool place_node_is_measured(const struct place_node *node) {
    return node->measured.samples > 0 && node->measured.unused == NULL;
}

bool place_node_has_error(const struct place_node *node) {
    return node->excluded == NULL && place_node_is_measured(node) &&
           isfinite(node->predicted_seconds);
}
