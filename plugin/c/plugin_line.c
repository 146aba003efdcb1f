#include "plugin_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void add_field(struct waap_text *out, const char *name, const char *text) {
    if (text != NULL) {
        waap_text_puts(out, name);
        waap_text_json(out, text);
    }
}

static void add_labels(struct waap_text *out, const char *labels) {
    if (labels != NULL) {
        waap_text_puts(out, ",\"labels\":");
        waap_text_puts(out, labels);
    }
}

static void add_number(struct waap_text *out, const char *name, double number) {
    waap_text_puts(out, name);
    waap_text_number(out, number);
}

static void add_whole(struct waap_text *out, const char *name, uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    waap_text_puts(out, name);
    waap_text_puts(out, digits);
}

void waap_line_hello(struct waap_text *out, const struct waap_settings *settings, uint64_t start) {
    char digits[32];
    snprintf(digits, sizeof(digits), "%016" PRIx64, start);
    add_field(out, "{\"hello\":{\"plugin\":", settings->plugin);
    add_field(out, ",\"job\":", settings->job);
    add_labels(out, settings->labels);
    add_field(out, ",\"start\":", digits);
    waap_text_puts(out, "}}\n");
}

/* Returns how many there are in all; `rest` is read after the buckets, so it may be ahead of them.
 */
static struct waap_reading add_histogram(struct waap_text *out, struct waap_metric *metric) {
    struct waap_reading reading = {0};
    waap_text_puts(out, ",\"total\":{\"counts\":[");
    for (size_t i = 0; i <= metric->n_bounds; i++) {
        reading.whole += metric->base_buckets[i] + atomic_load(&metric->buckets[i]);
        if (i < metric->n_bounds) {
            add_whole(out, i == 0 ? "" : ",", reading.whole);
        }
    }
    reading.rest = metric->base_rest + atomic_load(&metric->rest);
    add_whole(out, "],\"count\":", reading.whole);
    add_number(out, ",\"sum\":", reading.rest);
    waap_text_puts(out, "}");
    return reading;
}

/* JSON has no such numbers: the exporter takes words for them. */
static void add_gauge(struct waap_text *out, const char *name, double number) {
    if (isfinite(number)) {
        add_number(out, name, number);
    } else {
        add_field(out, name, isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
    }
}

static struct waap_reading add_value(struct waap_text *out, struct waap_metric *metric) {
    if (metric->type == WAAP_HISTOGRAM) {
        return add_histogram(out, metric);
    }
    struct waap_reading reading = waap_metric_read(metric);
    if (metric->type == WAAP_GAUGE) {
        add_gauge(out, ",\"set\":", reading.rest);
    } else if (reading.rest == 0) {
        add_whole(out, ",\"total\":", reading.whole);
    } else {
        add_number(out, ",\"total\":", (double)reading.whole + reading.rest);
    }
    return reading;
}

static void add_declaration(struct waap_text *out, const struct waap_metric *metric) {
    static const char *const types[] = {
        [WAAP_COUNTER] = "counter",
        [WAAP_GAUGE] = "gauge",
        [WAAP_HISTOGRAM] = "histogram",
        [WAAP_RATE] = "rate",
    };
    add_field(out, ",\"type\":", types[metric->type]);
    add_field(out, ",\"help\":", metric->help);
    for (size_t i = 0; i < metric->n_bounds; i++) {
        add_number(out, i == 0 ? ",\"buckets\":[" : ",", metric->bounds[i]);
    }
    if (metric->n_bounds > 0) {
        waap_text_puts(out, "]");
    }
}

void waap_line_metric(struct waap_text *out, struct waap_metric *metric) {
    add_field(out, "{\"metric\":", metric->name);
    if (!metric->declared) {
        add_declaration(out, metric);
    }
    add_labels(out, metric->labels);
    struct waap_reading reading = add_value(out, metric);
    if (metric->ttl_seconds > 0) {
        /* On the wire, 0 is for ever. */
        add_number(out, ",\"ttl\":", isinf(metric->ttl_seconds) ? 0 : metric->ttl_seconds);
    }
    waap_text_puts(out, "}\n");
    metric->declared = true;
    metric->sent_whole = reading.whole;
    metric->sent_rest = reading.rest;
}

/* A value in the parameter's own type. */
static void add_param_value(struct waap_text *out, const char *name, const struct waap_param *param,
                            double number, const char *text) {
    waap_text_puts(out, name);
    if (param->spec.type == WAAP_STRING) {
        waap_text_json(out, text);
    } else if (param->spec.type == WAAP_ENUM) {
        waap_text_json(out, param->spec.values[(size_t)number]);
    } else if (param->spec.type == WAAP_BOOL) {
        waap_text_puts(out, number != 0 ? "true" : "false");
    } else {
        waap_text_number(out, number);
    }
}

void waap_line_param(struct waap_text *out, struct waap_param *param) {
    static const char *const types[] = {
        [WAAP_INT] = "int",       [WAAP_FLOAT] = "float", [WAAP_BOOL] = "bool",
        [WAAP_STRING] = "string", [WAAP_ENUM] = "enum",
    };
    add_field(out, "{\"param\":", param->spec.name);
    add_field(out, ",\"type\":", types[param->spec.type]);
    add_param_value(out, ",\"default\":", param, param->spec.number, param->spec.text);
    /* JSON has no infinities: without a bound there is none. */
    bool ranged = param->spec.min < param->spec.max;
    if (ranged && isfinite(param->spec.min)) {
        add_number(out, ",\"min\":", param->spec.min);
    }
    if (ranged && isfinite(param->spec.max)) {
        add_number(out, ",\"max\":", param->spec.max);
    }
    if (param->spec.step > 0) {
        add_number(out, ",\"step\":", param->spec.step);
    }
    for (size_t i = 0; param->spec.values != NULL && param->spec.values[i] != NULL; i++) {
        add_field(out, i == 0 ? ",\"values\":[" : ",", param->spec.values[i]);
    }
    if (param->spec.values != NULL) {
        waap_text_puts(out, "]");
    }
    add_field(out, ",\"unit\":", param->spec.unit);
    add_field(out, ",\"help\":", param->spec.help);
    waap_text_puts(out, "}\n");
    param->declared = true;
}

void waap_line_applied(struct waap_text *out, struct waap_param *param) {
    param->reported = true;
    param->reported_version = atomic_load(&param->version);
    add_field(out, "{\"param\":", param->spec.name);
    add_param_value(out, ",\"applied\":", param, atomic_load(&param->value), param->value_text);
    waap_text_puts(out, "}\n");
}

void waap_line_seq(struct waap_text *out, uint64_t seq) {
    add_whole(out, "{\"seq\":", seq);
    waap_text_puts(out, "}\n");
}
