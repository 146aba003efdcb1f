#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/protobuf.h"
#include "exporter/gateway/body.h"
#include "exporter/metrics/metric.h"

/* Prometheus' MetricFamily messages (io.prometheus.client), each behind its length. Fields that are
 * not known are passed over, as protobuf wants it; native histograms have no place to go and leave
 * their classic buckets. */

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

static double as_double(const struct protobuf_field *field) {
    double value;
    memcpy(&value, &field->value, sizeof(value));
    return value;
}

/* How many messages or texts of that number there are. */
static size_t count_fields(struct protobuf message, unsigned number) {
    struct protobuf_field field;
    size_t n = 0;
    while (protobuf_next(&message, &field) > 0) {
        n += is(&field, number, PROTOBUF_BYTES);
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

/* ---- labels ---- */

static int read_label(const struct reader *reader, struct protobuf wire, struct label *ret_label) {
    *ret_label = (struct label){.name = "", .value = ""};
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&wire, &field)) > 0) {
        if (is(&field, 1, PROTOBUF_BYTES)) {
            r = take_text(reader, field.bytes, &ret_label->name);
        } else if (is(&field, 2, PROTOBUF_BYTES)) {
            r = take_text(reader, field.bytes, &ret_label->value);
        }
        if (r < 0) {
            return r;
        }
    }
    if (r < 0) {
        return fail(reader, r, "a label is damaged");
    }
    if (strlen(ret_label->name) > reader->limits->max_name_len ||
        strlen(ret_label->value) > reader->limits->max_value_len) {
        return fail(reader, -E2BIG, "a label is longer than allowed");
    }
    return metric_label_name_valid(ret_label->name, strlen(ret_label->name))
               ? 0
               : fail(reader, -EINVAL, "a label name is not valid");
}

static int read_labels(const struct reader *reader, struct protobuf metric,
                       struct push_update *update) {
    size_t n = count_fields(metric, 1);
    if (n > reader->limits->max_labels) {
        return fail(reader, -E2BIG, "a metric has more labels than allowed");
    }
    struct label *labels = arena_take(&reader->body->arena, (n + 1) * sizeof(*labels));
    if (labels == NULL) {
        return fail_full(reader);
    }
    struct protobuf_field field;
    size_t n_labels = 0;
    while (protobuf_next(&metric, &field) > 0) {
        struct label label;
        int r = is(&field, 1, PROTOBUF_BYTES) ? read_label(reader, field.bytes, &label) : 1;
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

/* How the parts of histograms and summaries are numbered. */
struct shape {
    unsigned value_field; /* of the figure inside a bucket or quantile */
    unsigned bound_field;
    enum protobuf_wire value_type;
};

static const struct shape shapes[] = {
    [PUSH_HISTOGRAM] = {.value_field = 1, .bound_field = 2, .value_type = PROTOBUF_VARINT},
    [PUSH_SUMMARY] = {.value_field = 2, .bound_field = 1, .value_type = PROTOBUF_FIXED64},
};

static int read_bound(const struct reader *reader, struct protobuf wire, const struct shape *shape,
                      double *ret_bound, double *ret_value) {
    struct protobuf_field field;
    int r;
    *ret_bound = *ret_value = 0; /* what is not there is 0 in protobuf */
    while ((r = protobuf_next(&wire, &field)) > 0) {
        if (is(&field, shape->bound_field, PROTOBUF_FIXED64)) {
            *ret_bound = as_double(&field);
        } else if (is(&field, shape->value_field, shape->value_type)) {
            *ret_value = field.wire == PROTOBUF_FIXED64 ? as_double(&field) : (double)field.value;
        }
    }
    return r < 0 ? fail(reader, r, "a bucket or quantile is damaged") : 0;
}

static int read_composed(const struct reader *reader, struct protobuf message,
                         struct push_update *update) {
    const struct shape *shape = &shapes[update->type];
    size_t n = count_fields(message, 3);
    double *figures = arena_take(&reader->body->arena, 2 * (n + 2) * sizeof(*figures));
    if (figures == NULL) {
        return fail_full(reader);
    }
    double *bounds = figures + n + 2;
    double count = 0, sum = 0;
    struct protobuf_field field;
    int r;
    update->n_bounds = 0; /* a field that comes twice counts as it came last */
    while ((r = protobuf_next(&message, &field)) > 0) {
        if (is(&field, 1, PROTOBUF_VARINT)) {
            count = (double)field.value;
        } else if (is(&field, 2, PROTOBUF_FIXED64)) {
            sum = as_double(&field);
        } else if (is(&field, 3, PROTOBUF_BYTES)) {
            double *bound = &bounds[update->n_bounds], *figure = &figures[update->n_bounds];
            r = read_bound(reader, field.bytes, shape, bound, figure);
            if (r < 0) {
                return r;
            }
            update->n_bounds += !(update->type == PUSH_HISTOGRAM && isinf(*bound) == 1);
        }
    }
    figures[update->n_bounds] = count;
    figures[update->n_bounds + 1] = sum;
    update->values = figures;
    update->n_values = update->n_bounds + 2;
    update->bounds = bounds;
    return r < 0 ? fail(reader, r, "a histogram or summary is damaged") : 0;
}

static int read_single(const struct reader *reader, struct protobuf message,
                       struct push_update *update) {
    double *value = arena_take(&reader->body->arena, sizeof(*value));
    if (value == NULL) {
        return fail_full(reader);
    }
    *value = 0;
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        if (is(&field, 1, PROTOBUF_FIXED64)) {
            *value = as_double(&field);
        }
    }
    update->values = value;
    update->n_values = 1;
    return r < 0 ? fail(reader, r, "a value is damaged") : 0;
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
    int r = read_labels(reader, metric, update);
    if (r < 0) {
        return r;
    }
    bool composed = update->type == PUSH_HISTOGRAM || update->type == PUSH_SUMMARY;
    struct protobuf_field field;
    while ((r = protobuf_next(&metric, &field)) > 0) {
        r = 0;
        if (is(&field, value_field, PROTOBUF_BYTES)) {
            r = composed ? read_composed(reader, field.bytes, update)
                         : read_single(reader, field.bytes, update);
        } else if (is(&field, METRIC_TIMESTAMP, PROTOBUF_VARINT)) {
            reader->body->has_timestamps = true;
        }
        if (r < 0) {
            return r;
        }
    }
    if (r < 0) {
        return fail(reader, r, "a metric is damaged");
    }
    return update->values != NULL ? 0 : fail(reader, -EEXIST, "a metric has no value of its type");
}

/* Name, help and type may come after the metrics: they are read first. */
static int read_head(const struct reader *reader, struct protobuf wire, struct push_update *family,
                     uint64_t *ret_type) {
    struct protobuf_field field;
    int r;
    *ret_type = 0;
    while ((r = protobuf_next(&wire, &field)) > 0) {
        if (is(&field, 1, PROTOBUF_BYTES)) {
            r = take_text(reader, field.bytes, &family->name);
        } else if (is(&field, 2, PROTOBUF_BYTES)) {
            r = take_text(reader, field.bytes, &family->help);
        } else if (is(&field, 3, PROTOBUF_VARINT)) {
            *ret_type = field.value;
        }
        if (r < 0) {
            return r;
        }
    }
    if (r < 0) {
        return fail(reader, r, "the message is damaged");
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
    struct protobuf_field field;
    while (r == 0 && protobuf_next(&wire, &field) > 0) {
        if (is(&field, 4, PROTOBUF_BYTES)) {
            r = read_metric(reader, field.bytes, &family, types[type].field);
        }
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
