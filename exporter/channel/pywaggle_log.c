#include "exporter/channel/pywaggle_log.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/memory.h"
#include "exporter/metrics/metric.h"

/* ---- one line ---- */

static const char duration_prefix[] = "plugin.duration.";

/* Where inference on an edge node takes its time. */
static const double duration_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                         0.25,  0.5,    1,     2.5,  5,     10};

struct record {
    char *name;
    bool has_value; /* as a number */
    double value;
    struct label *labels;
    size_t n_labels;
};

/* Labels that identify the plugin and its place: a plugin cannot set them. */
static bool is_taken(const char *name) {
    static const char *const taken[] = {"container", "job", "le",    "namespace",
                                        "node",      "pod", "plugin"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    return strncmp(name, "__", 2) == 0;
}

/* An invalid label is left out, not the sample. The last of two that have one name counts. */
static void add_label(struct record *record, const char *name, const char *value) {
    if (value[0] == '\0' || record->n_labels == PYWAGGLE_MAX_LABELS || is_taken(name) ||
        !metric_label_name_valid(name, strlen(name))) {
        return;
    }
    const struct label label = {.name = name, .value = value};
    for (size_t i = 0; i < record->n_labels; i++) {
        if (strcmp(record->labels[i].name, name) == 0) {
            record->labels[i] = label;
            return;
        }
    }
    label_insert(record->labels, &record->n_labels, label);
}

static char legal(char c) {
    return c == '.' || c == '-' ? '_' : c;
}

static int read_meta(struct json *json, const char *key, void *context, struct error *err) {
    char *name = (char *)key; /* in the text, which may be written to */
    char *value;
    if (json_peek(json) != '"') {
        return json_skip(json, err);
    }
    int r = json_read_string(json, &value, NULL, err);
    if (r == 0) {
        for (char *c = name; *c != '\0'; c++) {
            *c = legal(*c);
        }
        add_label(context, name, value);
    }
    return r;
}

/* Numbers that Python writes and JSON does not have. */
static bool take_word(struct json *json, double *ret_value) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"-Infinity", -INFINITY}, {"Infinity", INFINITY}, {"NaN", NAN}};
    json_peek(json);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i].word);
        if ((size_t)(json->end - json->at) >= len && memcmp(json->at, words[i].word, len) == 0) {
            json->at += len;
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

/* What is no number, or too large for us, only counts. */
static int read_value(struct json *json, struct record *record, struct error *err) {
    const struct json before = *json;
    record->has_value =
        take_word(json, &record->value) || json_read_number(json, &record->value, NULL) == 0;
    if (record->has_value) {
        return 0;
    }
    *json = before;
    return json_skip(json, err);
}

static int read_member(struct json *json, const char *key, void *context, struct error *err) {
    struct record *record = context;
    return strcmp(key, "name") == 0 ? json_read_string(json, &record->name, NULL, err)
           : strcmp(key, "meta") == 0
               ? json_each(json, '{', "an object as meta", read_meta, record, err)
           : strcmp(key, "value") == 0 ? read_value(json, record, err)
                                       : json_skip(json, err);
}

/* "env.count.car" as a metric is env_count_car, "3d.count" is _3d_count. */
static int make_name(const char *name, char out[static PYWAGGLE_MAX_NAME_LEN + 2],
                     struct error *err) {
    size_t len = strlen(name);
    if (len > PYWAGGLE_MAX_NAME_LEN) {
        return error_set(err, -EINVAL, "name is longer than %d bytes", PYWAGGLE_MAX_NAME_LEN);
    }
    size_t begin = name[0] >= '0' && name[0] <= '9' ? 1 : 0;
    out[0] = '_';
    for (size_t i = 0; i <= len; i++) {
        out[begin + i] = legal(name[i]);
    }
    return metric_name_valid(out, begin + len)
               ? 0
               : error_set(err, -EINVAL, "name \"%s\" makes no metric name", name);
}

static void add_publish(struct pywaggle_line *line, const char *name) {
    line->one = 1;
    line->publish_label = (struct label){.name = "name", .value = name};
    line->updates[line->n_updates++] = (struct push_update){
        .name = "plugin_publishes_total",
        .help = "Messages that the plugin has published.",
        .type = PUSH_COUNTER,
        .op = PUSH_INC,
        .values = &line->one,
        .n_values = 1,
        .labels = &line->publish_label,
        .n_labels = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
}

static void add_value(struct pywaggle_line *line, struct record *record) {
    struct push_update update = {
        .name = line->name,
        .help = "Latest value that the plugin has published under this name.",
        .type = PUSH_GAUGE,
        .op = PUSH_SET,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    line->value = record->value;
    size_t prefix_len = strlen(duration_prefix);
    if (strncmp(record->name, duration_prefix, prefix_len) == 0 &&
        record->name[prefix_len] != '\0') {
        line->value = record->value / 1e9;
        add_label(record, "name", record->name + prefix_len);
        update.name = "plugin_duration_seconds";
        update.help = "Time that the steps of the plugin take, as its timeit measures it.";
        update.type = PUSH_HISTOGRAM;
        update.op = PUSH_OBSERVE;
        update.bounds = duration_bounds;
        update.n_bounds = ARRAY_LEN(duration_bounds);
    }
    update.values = &line->value;
    update.n_values = 1;
    update.labels = line->labels;
    update.n_labels = (uint32_t)record->n_labels;
    line->updates[line->n_updates++] = update;
}

int pywaggle_line_read(char *text, size_t len, struct pywaggle_line *out, struct error *err) {
    struct json json = json_begin(text, len, 1);
    struct record record = {.labels = out->labels};
    out->n_updates = 0;
    int r = json_each(&json, '{', "an object", read_member, &record, err);
    if (r == 0 && !json_at_end(&json)) {
        r = json_fail(&json, err, "expected the end of the line");
    } else if (r == 0 && record.name == NULL) {
        r = error_set(err, -EINVAL, "no name");
    }
    r = r == 0 ? make_name(record.name, out->name, err) : r;
    if (r < 0) {
        return r;
    }
    add_publish(out, record.name);
    if (record.has_value) {
        add_value(out, &record);
    }
    return 0;
}

/* ---- where a log is read from ---- */

/* Inodes are used again, and a device may have another number when it is mounted again. */
static bool is_same(const struct pywaggle_sight *a, const struct pywaggle_sight *b) {
    bool born = a->birth_ns != 0 && b->birth_ns != 0;
    return a->inode == b->inode && (born ? a->birth_ns == b->birth_ns : a->device == b->device);
}

/* A birth in the future is from a machine with another clock. */
static bool is_old(const struct pywaggle_sight *sight, const struct pywaggle_span *followed,
                   bool is_first_search) {
    return sight->birth_ns == 0
               ? is_first_search
               : sight->birth_ns <= followed->begin_ns || sight->birth_ns > followed->end_ns;
}

void pywaggle_log_meet(struct pywaggle_log *log, const struct pywaggle_sight *sight,
                       const struct pywaggle_span *followed, bool is_first_search) {
    if (!is_same(&log->last, sight)) { /* new, or recreated */
        log->offset = is_old(sight, followed, is_first_search) ? sight->size : 0;
    } else if (sight->size < log->offset) { /* cut */
        log->offset = 0;
    }
    log->last = *sight;
}
