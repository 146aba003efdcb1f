#include "profiler/analysis/gate.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/settings/suggest.h"
#include "profiler/analysis/report_text.h"

const char *const gate_kinds[N_GATE_KINDS] = {
    [GATE_MAX] = "max",
    [GATE_MAX_DECREASE] = "max_decrease",
    [GATE_MAX_INCREASE] = "max_increase",
    [GATE_MIN] = "min",
};

bool gate_is_relative(const struct gate *gate) {
    return gate->kind == GATE_MAX_DECREASE || gate->kind == GATE_MAX_INCREASE;
}

/* The worst value for the gate among the measures that its name matches; NaN if none does. */
static double worst(const struct measures *measures, const struct gate *gate, const char **unit) {
    double found = NAN;
    bool low = gate->kind == GATE_MAX || gate->kind == GATE_MAX_INCREASE;
    for (size_t i = 0; i < measures->n; i++) {
        enum measure_stat stat;
        if (!measure_matches(&measures->items[i], gate->metric, &stat)) {
            continue;
        }
        double value = measures->items[i].stats[stat];
        if (isnan(found) || (low ? value > found : value < found)) {
            found = value;
            *unit = measures->items[i].unit;
        }
    }
    return found;
}

static bool holds(const struct gate *gate) {
    double change = (gate->value - gate->base) / fabs(gate->base);
    switch (gate->kind) {
    case GATE_MAX:
        return gate->value <= gate->limit;
    case GATE_MIN:
        return gate->value >= gate->limit;
    case GATE_MAX_INCREASE:
        return gate->value <= gate->base || change <= gate->limit;
    case GATE_MAX_DECREASE:
        return gate->value >= gate->base || -change <= gate->limit;
    }
    return false;
}

static void judge(struct gate *gate, const struct measures *measures, const struct measures *base) {
    gate->unit = "";
    gate->base = NAN;
    gate->value = worst(measures, gate, &gate->unit);
    if (gate_is_relative(gate)) {
        const char *unit = "";
        gate->base = base != NULL ? worst(base, gate, &unit) : NAN;
        if (base == NULL || (isnan(gate->base) && !isnan(gate->value))) {
            gate->state = GATE_SKIPPED;
            return;
        }
    }
    gate->state = !isnan(gate->value) && holds(gate) ? GATE_OK : GATE_FAILED;
}

/* Offers the name as gates write it: without labels, and without the unit if that is enough. */
static void offer(struct suggest *suggest, const struct measure *measure) {
    enum measure_stat stat;
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, measure->name, strcspn(measure->name, "{"));
    suggest_offer(suggest, buf_str(&name), name.len);
    while (name.len > 0 && strchr("._", name.data[name.len - 1]) == NULL) {
        buf_truncate(&name, name.len - 1);
    }
    buf_truncate(&name, name.len > 0 ? name.len - 1 : 0);
    if (measure_matches(measure, buf_str(&name), &stat)) {
        suggest_offer(suggest, buf_str(&name), name.len);
    }
}

void gate_explain(const struct gate *gate, const struct measures *measures, struct buf *out) {
    enum measure_stat stat;
    const char *suffix = gate->metric + measure_split(gate->metric, &stat);
    struct buf stem CLEANUP_BUF = {0};
    struct suggest suggest;
    if (!isnan(gate->value)) {
        buf_printf(out, "%s is %s, %s is %s", gate->metric,
                   text_human(gate->value, gate->unit).text, gate_kinds[gate->kind],
                   text_human(gate->limit, gate->unit).text);
        return;
    }
    buf_add(&stem, gate->metric, (size_t)(suffix - gate->metric));
    suggest_init(&suggest, buf_str(&stem));
    for (size_t i = 0; i < measures->n; i++) {
        if (measure_matches(&measures->items[i], gate->metric, &stat)) {
            buf_printf(out, "%s was not measured", gate->metric);
            return;
        }
        offer(&suggest, &measures->items[i]);
    }
    buf_printf(out, "%s: there is no such measure", gate->metric);
    if (suggest.best[0] != '\0') {
        buf_printf(out, ", did you mean %s%s?", suggest.best, suffix);
    }
}

static bool is_for(const json_t *gate, const char *target, const char *of) {
    const char *only = json_string_value(json_object_get(gate, "target"));
    return only == NULL || strcmp(only, target) == 0 || (of != NULL && strcmp(only, of) == 0);
}

struct gate *gates_judge(const struct json_t *gates, const char *name, const char *of,
                         const struct measures *measures, const struct measures *base,
                         size_t *ret_n) {
    size_t n = 0, cap = json_array_size(gates) * N_GATE_KINDS;
    struct gate *judged = mem_zalloc(cap, sizeof(*judged));
    for (size_t i = 0; i < json_array_size(gates); i++) {
        const json_t *row = json_array_get(gates, i);
        const char *metric = json_string_value(json_object_get(row, "metric"));
        for (size_t kind = 0; kind < N_GATE_KINDS; kind++) {
            const json_t *limit = json_object_get(row, gate_kinds[kind]);
            if (metric == NULL || !json_is_number(limit) || !is_for(row, name, of)) {
                continue;
            }
            struct gate *gate = &judged[n++];
            gate->metric = metric;
            gate->kind = (enum gate_kind)kind;
            gate->limit = json_number_value(limit);
            judge(gate, measures, base);
        }
    }
    *ret_n = n;
    return judged;
}
