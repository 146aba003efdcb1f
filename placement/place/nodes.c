#include "placement/place/nodes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placement/place/index.h"

/* Several plugins on a node may run the model: what all of them took, over how often all did. */
#define MEASURED_SUM "sum by (node, model) (increase(inference_seconds_sum{model=\"$model\"}[%s]))"
#define MEASURED_COUNT                                                                             \
    "sum by (node, model) (increase(inference_seconds_count{model=\"$model\"}[%s]))"
#define AS(quantity) "\"quantity\", \"" quantity "\", \"\", \"\""

/* Of all modes of a CPU only idle tells how busy it is: the mean over all of them is the same for
 * an idle node and a busy one. deriv() instead of rate(), which makes too little of a node that
 * came up within the window, so that it would seem busy. */
void place_query_write(enum place_query query, const char *window, struct buf *out) {
    switch (query) {
    case PLACE_LOAD:
        buf_printf(out,
                   "100 * (1 - avg by (node, instance) "
                   "(deriv(node_cpu_seconds_total{mode=\"idle\"}[%s])))",
                   window);
        break;
    case PLACE_DISK:
        buf_add_str(out, "100 * (1 - max by (node, instance) "
                         "(node_filesystem_avail_bytes{mountpoint=\"/\",fstype!=\"rootfs\"}) / "
                         "max by (node, instance) "
                         "(node_filesystem_size_bytes{mountpoint=\"/\",fstype!=\"rootfs\"}))");
        break;
    case PLACE_MEASURED:
        buf_printf(out,
                   "label_replace(" MEASURED_SUM " / " MEASURED_COUNT
                   ", " AS("seconds") ") or "
                                      "label_replace(floor(" MEASURED_COUNT "), " AS(
                                          "samples") ") or "
                                                     "label_replace(time() - max by (node, model) "
                                                     "(timestamp(inference_seconds_count{model=\"$"
                                                     "model\"})), " AS("age") ")",
                   window, window, window);
        break;
    default:
        buf_add_str(out, "time() - timestamp(char_node_device_model)");
        break;
    }
}

struct promql_answer *place_samples_answer(struct place_samples *samples, enum place_query query) {
    struct promql_answer *const answers[N_PLACE_QUERIES] = {
        [PLACE_LOAD] = &samples->load,
        [PLACE_DISK] = &samples->disk,
        [PLACE_DEVICE] = &samples->device,
        [PLACE_MEASURED] = &samples->measured,
    };
    return answers[query];
}

void place_samples_finish(struct place_samples *samples) {
    for (int i = 0; i < N_PLACE_QUERIES; i++) {
        promql_answer_finish(place_samples_answer(samples, (enum place_query)i));
    }
}

/* ---- nodes ---- */

struct join {
    struct place_index load, disk;
    double max_age_seconds;
};

static void join_finish(struct join *join) {
    place_index_finish(&join->load);
    place_index_finish(&join->disk);
}
#define CLEANUP_JOIN CLEANUP(join_finish)

static const char *text_of(const struct promql_series *series, const char *label) {
    const char *text = promql_series_label(series, label);
    return text != NULL ? text : "";
}

/* Takes a value; what is wrong with it becomes the reason, if there is none yet. */
static double value_of(const struct place_index *index, const struct promql_series *device,
                       const char *missing, const char *twice, struct place_node *node) {
    bool is_twice = false;
    double value = place_index_value(index, device, &is_twice);
    const char *reason = is_twice ? twice : NULL;
    if (reason == NULL && !isfinite(value)) {
        reason = missing;
    }
    if (node->excluded == NULL) {
        node->excluded = reason;
    }
    return value;
}

static struct place_node node_of(const struct join *join, const struct promql_series *device) {
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
    node.load = value_of(&join->load, device,
                         "no CPU load: less than two samples of node_cpu_seconds_total",
                         "several CPU loads that could be meant", &node);
    node.disk = value_of(&join->disk, device, "no node_filesystem_avail_bytes of /",
                         "several root filesystems that could be meant", &node);
    node.age_seconds = device->n_points > 0 ? device->points[0].value : NAN;
    node.is_old = !(node.age_seconds <= join->max_age_seconds);
    if (node.excluded == NULL && node.is_old) {
        node.excluded = "its last samples are too old";
    }
    /* It may run over by what the clocks differ, and far over where a node has just started anew.
     */
    node.load = fmin(fmax(node.load, 0), 100);
    return node;
}

/* Where it is scraped: several jobs may do so. */
static const char *place_of(const struct place_node *node) {
    const char *label = text_of(node->device, "node");
    return label[0] != '\0' ? label : node->instance;
}

static int compare(const void *left, const void *right) {
    const struct place_node *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    order = order != 0 ? order : strcmp(a->uuid, b->uuid);
    order = order != 0 ? order : strcmp(a->device_model, b->device_model);
    return order != 0 ? order : strcmp(place_of(a), place_of(b));
}

/* The same device at the same place twice over is one. Cards that were copied from one another have
 * the same name and identity, so the place counts as well. */
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

/* Whoever is told to run something on a node knows it by its name. What is left of one that came
 * back at another address is no other node. */
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
                "several nodes go by that name (see --collector.host.node-name)";
        }
        last = node;
    }
}

int place_nodes_join(const struct place_samples *samples, double max_age_seconds,
                     struct place_nodes *ret_nodes, struct error *err) {
    struct join join CLEANUP_JOIN = {.max_age_seconds = max_age_seconds};
    int r = place_index_fill(&join.load, &samples->load, NULL, 0, err);
    r = r < 0 ? r : place_index_fill(&join.disk, &samples->disk, NULL, 0, err);
    if (r < 0) {
        return r;
    }
    struct place_nodes nodes = {.n_nodes = samples->device.n_series};
    nodes.nodes = calloc(nodes.n_nodes + 1, sizeof(*nodes.nodes));
    if (nodes.nodes == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        nodes.nodes[i] = node_of(&join, &samples->device.series[i]);
    }
    qsort(nodes.nodes, nodes.n_nodes, sizeof(*nodes.nodes), compare);
    merge_equal(&nodes);
    exclude_ambiguous(&nodes);
    *ret_nodes = nodes;
    return 0;
}

void place_node_write_name(const struct place_node *node, struct buf *out) {
    buf_add_str(out, node->name);
    if (node->is_ambiguous) {
        buf_printf(out, " (%s)", place_of(node));
    }
}

void place_nodes_finish(struct place_nodes *nodes) {
    free(nodes->nodes);
    *nodes = (struct place_nodes){.n_nodes = 0};
}
