#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/protobuf.h"
#include "exporter/gateway/body.h"
#include "exporter/metrics/metric.h"

/* Prometheus' MetricFamily messages (io.prometheus.client), each behind its length. Fields that are
 * unknown are skipped, as protobuf demands; of native histograms only the classic buckets are
 * read. */

struct reader {
    struct gateway_body *body;
    const struct exposition_limits *limits;
    struct error *err;
    size_t n_families;
};

static int fail(const struct reader *reader, int code, const char *what) {
    return error_set(reader->err, code, "family %zu: %s", reader->n_families, what);
}

/* There are too many updates, or they take too much memory. */
static int fail_full(const struct reader *reader) {
    int r = gateway_body_fail_full(reader->body, reader->err);
    return reader->err != NULL ? fail(reader, r, reader->err->text) : r;
}

static bool is(const struct protobuf_field *field, unsigned number, enum protobuf_wire wire) {
    return field->number == number && field->wire == wire;
}

/* Moves to the next message or text of that number; false: there is none. */
static bool next_bytes(struct protobuf *message, unsigned number, struct protobuf *ret_bytes) {
    struct protobuf_field field;
    while (protobuf_next(message, &field) > 0) {
        if (is(&field, number, PROTOBUF_BYTES)) {
            *ret_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

static size_t count_bytes(struct protobuf message, unsigned number) {
    struct protobuf bytes;
    size_t n = 0;
    while (next_bytes(&message, number, &bytes)) {
        n++;
    }
    return n;
}

/* A copy with a NUL behind it. */
static int take_text(const struct reader *reader, struct protobuf bytes, const char **ret_text) {
    if (memchr(bytes.data, '\0', bytes.len) != NULL) {
        return fail(reader, -EINVAL, "NUL byte in a text");
    }
    char *text = arena_take(&reader->body->arena, bytes.len + 1);
    if (text == NULL) {
        return fail_full(reader);
    }
    memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    *ret_text = text;
    return 0;
}

/* Where the value of a field goes: to a text, a uint64_t or a double by its wire type. */
struct place {
    unsigned number;
    enum protobuf_wire wire;
    void *value;
};

/* Reads the fields that have a place; of one that comes twice the last counts. */
static int read_fields(const struct reader *reader, struct protobuf message,
                       const struct place *places, size_t n, const char *damaged) {
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        const struct place *place = places;
        while (place < places + n && !is(&field, place->number, place->wire)) {
            place++;
        }
        if (place == places + n) {
            continue;
        }
        if (field.wire != PROTOBUF_BYTES) {
            memcpy(place->value, &field.value, sizeof(field.value));
        } else if ((r = take_text(reader, field.bytes, place->value)) < 0) {
            return r;
        }
    }
    return r < 0 ? fail(reader, r, damaged) : 0;
}

/* ---- labels ---- */

static int read_label(const struct reader *reader, struct protobuf wire, struct label *ret_label) {
    struct label label = {.name = "", .value = ""};
    const struct place places[] = {
        {1, PROTOBUF_BYTES, &label.name},
        {2, PROTOBUF_BYTES, &label.value},
    };
    int r = read_fields(reader, wire, places, ARRAY_LEN(places), "a label is damaged");
    if (r < 0) {
        return r;
    }
    size_t name_len = strlen(label.name);
    if (name_len > reader->limits->max_name_len ||
        strlen(label.value) > reader->limits->max_value_len) {
        return fail(reader, -E2BIG, "a label is longer than allowed");
    }
    *ret_label = label;
    return metric_label_name_valid(label.name, name_len)
               ? 0
               : fail(reader, -EINVAL, "a label name is not valid");
}

static int read_labels(const struct reader *reader, struct protobuf metric,
                       struct push_update *update) {
    size_t n = count_bytes(metric, 1);
    if (n > reader->limits->max_labels) {
        return fail(reader, -E2BIG, "a metric has more labels than allowed");
    }
    struct label *labels = arena_take(&reader->body->arena, (n + 1) * sizeof(*labels));
    if (labels == NULL) {
        return fail_full(reader);
    }
    struct protobuf wire;
    size_t n_labels = 0;
    while (next_bytes(&metric, 1, &wire)) {
        struct label label = {.name = "", .value = ""};
        int r = read_label(reader, wire, &label);
        /* An empty label means the same as none. */
        if (r == 0 && label.value[0] != '\0' && !label_insert(labels, &n_labels, label)) {
            r = fail(reader, -EEXIST, "a label is given twice");
        }
        if (r < 0) {
            return r;
        }
    }
    update->labels = labels;
    update->n_labels = (uint32_t)n_labels;
    return 0;
}

/* ---- values ---- */

/* Reads a bucket of a histogram or a quantile of a summary. What is absent is 0 in protobuf. */
static int read_bound(const struct reader *reader, struct protobuf wire, bool histogram,
                      double *ret_bound, double *ret_figure) {
    uint64_t count = 0;
    const struct place bucket[] = {
        {1, PROTOBUF_VARINT, &count},
        {2, PROTOBUF_FIXED64, ret_bound},
    };
    const struct place quantile[] = {
        {1, PROTOBUF_FIXED64, ret_bound},
        {2, PROTOBUF_FIXED64, ret_figure},
    };
    *ret_bound = *ret_figure = 0;
    int r = read_fields(reader, wire, histogram ? bucket : quantile, 2,
                        "a bucket or quantile is damaged");
    *ret_figure = histogram ? (double)count : *ret_figure;
    return r;
}

static int read_composed(const struct reader *reader, struct protobuf message,
                         struct push_update *update) {
    bool histogram = update->type == PUSH_HISTOGRAM;
    size_t n = count_bytes(message, 3);
    double *figures = arena_take(&reader->body->arena, 2 * (n + 2) * sizeof(*figures));
    if (figures == NULL) {
        return fail_full(reader);
    }
    double *bounds = figures + n + 2;
    uint64_t count = 0;
    double sum = 0;
    const struct place places[] = {
        {1, PROTOBUF_VARINT, &count},
        {2, PROTOBUF_FIXED64, &sum},
    };
    struct protobuf wire;
    int r = read_fields(reader, message, places, ARRAY_LEN(places),
                        "a histogram or summary is damaged");
    update->n_bounds = 0; /* a histogram that comes twice counts as it came last */
    while (r == 0 && next_bytes(&message, 3, &wire)) {
        double *bound = &bounds[update->n_bounds];
        r = read_bound(reader, wire, histogram, bound, &figures[update->n_bounds]);
        update->n_bounds += !(histogram && isinf(*bound) == 1);
    }
    figures[update->n_bounds] = (double)count;
    figures[update->n_bounds + 1] = sum;
    update->values = figures;
    update->n_values = update->n_bounds + 2;
    update->bounds = bounds;
    return r;
}

static int read_single(const struct reader *reader, struct protobuf message,
                       struct push_update *update) {
    double *value = arena_take(&reader->body->arena, sizeof(*value));
    if (value == NULL) {
        return fail_full(reader);
    }
    *value = 0;
    update->values = value;
    update->n_values = 1;
    const struct place place = {1, PROTOBUF_FIXED64, value};
    return read_fields(reader, message, &place, 1, "a value is damaged");
}

/* ---- families ---- */

/* By the numbers of MetricType: what it is, and which field of a metric has its value. */
static const struct {
    enum push_type type;
    unsigned field;
} types[] = {
    {PUSH_COUNTER, 3}, {PUSH_GAUGE, 2}, {PUSH_SUMMARY, 4}, {PUSH_UNTYPED, 5}, {PUSH_HISTOGRAM, 7},
};

enum { METRIC_TIMESTAMP = 6, TYPE_GAUGE_HISTOGRAM = 5 };
#define NO_TIMESTAMP (UINT64_C(1) << 63) /* the lowest number, which no clock shows */

static int read_metric(const struct reader *reader, struct protobuf metric,
                       const struct push_update *family, unsigned value_field) {
    if (reader->body->n_updates >= reader->limits->max_samples) {
        return fail(reader, -E2BIG, "more metrics than allowed");
    }
    struct push_update *update = gateway_body_add(reader->body);
    if (update == NULL) {
        return fail_full(reader);
    }
    update->name = family->name;
    update->help = family->help;
    update->type = family->type;
    uint64_t timestamp = NO_TIMESTAMP;
    const struct place place = {METRIC_TIMESTAMP, PROTOBUF_VARINT, &timestamp};
    bool composed = update->type == PUSH_HISTOGRAM || update->type == PUSH_SUMMARY;
    struct protobuf value;
    int r = read_fields(reader, metric, &place, 1, "a metric is damaged");
    r = r < 0 ? r : read_labels(reader, metric, update);
    while (r == 0 && next_bytes(&metric, value_field, &value)) {
        r = composed ? read_composed(reader, value, update) : read_single(reader, value, update);
    }
    reader->body->has_timestamps |= timestamp != NO_TIMESTAMP;
    if (r == 0 && update->values == NULL) {
        return fail(reader, -EEXIST, "a metric has no value of its type");
    }
    return r;
}

/* Name, help and type may come after the metrics: they are read first. */
static int read_head(const struct reader *reader, struct protobuf wire, struct push_update *family,
                     uint64_t *ret_type) {
    *ret_type = 0;
    const struct place places[] = {
        {1, PROTOBUF_BYTES, &family->name},
        {2, PROTOBUF_BYTES, &family->help},
        {3, PROTOBUF_VARINT, ret_type},
    };
    int r = read_fields(reader, wire, places, ARRAY_LEN(places), "the message is damaged");
    if (r < 0) {
        return r;
    }
    size_t len = strlen(family->name);
    if (!metric_name_valid(family->name, len) || len > reader->limits->max_name_len) {
        return fail(reader, -EINVAL, "its name is not valid");
    }
    if (*ret_type == TYPE_GAUGE_HISTOGRAM) {
        return fail(reader, -EINVAL, "gauge histograms cannot be pushed, histograms can");
    }
    return *ret_type < ARRAY_LEN(types) ? 0 : fail(reader, -EINVAL, "its type is not known");
}

static int read_family(const struct reader *reader, struct protobuf wire) {
    struct push_update family = {.name = "", .help = ""};
    uint64_t type;
    int r = read_head(reader, wire, &family, &type);
    if (r < 0) {
        return r;
    }
    family.type = types[type].type;
    struct protobuf metric;
    while (r == 0 && next_bytes(&wire, 4, &metric)) {
        r = read_metric(reader, metric, &family, types[type].field);
    }
    return r;
}

int gateway_protobuf_read(const char *data, size_t len, const struct exposition_limits *limits,
                          struct gateway_body *body, struct error *err) {
    struct protobuf rest = {.data = data, .len = len};
    struct reader reader = {.body = body, .limits = limits, .err = err};
    gateway_body_finish(body);
    body->arena.max = limits->max_bytes;
    int r = 0;
    while (r == 0 && rest.len > 0) {
        struct protobuf family;
        reader.n_families++;
        r = protobuf_next_delimited(&rest, &family) == 0
                ? read_family(&reader, family)
                : fail(&reader, -EINVAL, "the body ends within it");
    }
    if (r < 0) {
        gateway_body_finish(body);
    }
    return r;
}
