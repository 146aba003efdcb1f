#include "profiler/analysis/measure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const struct measure_stat measure_stats[] = {
    {"mean", offsetof(struct measure, mean)}, {"sd", offsetof(struct measure, sd)},
    {"min", offsetof(struct measure, min)},   {"p50", offsetof(struct measure, p50)},
    {"p90", offsetof(struct measure, p90)},   {"p95", offsetof(struct measure, p95)},
    {"p99", offsetof(struct measure, p99)},   {"max", offsetof(struct measure, max)},
};
_Static_assert(ARRAY_LEN(measure_stats) == N_MEASURE_STATS, "one of them is missing");

double measure_stat(const struct measure *measure, const struct measure_stat *stat) {
    double value;
    memcpy(&value, (const char *)measure + stat->offset, sizeof(value));
    return value;
}

void measure_finish(struct measure *measure) {
    free(measure->name);
    free(measure->unit);
    free(measure->runs);
    free(measure->run_numbers);
    free(measure->spread);
}

void measures_finish(struct measures *measures) {
    for (size_t i = 0; i < measures->n; i++) {
        measure_finish(&measures->items[i]);
    }
    free(measures->items);
    *measures = (struct measures){0};
}

struct measure *measures_add(struct measures *measures, const char *name, const char *unit) {
    if (measures->n == measures->cap) {
        size_t cap = measures->cap > 0 ? 2 * measures->cap : 32;
        struct measure *items = reallocarray(measures->items, cap, sizeof(*items));
        if (items == NULL) {
            measures->failed = true;
            return NULL;
        }
        measures->items = items;
        measures->cap = cap;
    }
    struct measure *measure = &measures->items[measures->n];
    *measure = (struct measure){
        .name = strdup(name),
        .unit = strdup(unit),
        .mean = NAN,
        .sd = NAN,
        .min = NAN,
        .p50 = NAN,
        .p90 = NAN,
        .p95 = NAN,
        .p99 = NAN,
        .max = NAN,
    };
    measures->n++;
    measures->failed = measures->failed || measure->name == NULL || measure->unit == NULL;
    return measures->failed ? NULL : measure;
}

void measure_add_run(struct measures *measures, struct measure *measure, unsigned number,
                     double value) {
    size_t n = measure->n_runs + 1;
    double *runs = reallocarray(measure->runs, n, sizeof(*runs));
    measure->runs = runs != NULL ? runs : measure->runs;
    unsigned *numbers = reallocarray(measure->run_numbers, n, sizeof(*numbers));
    measure->run_numbers = numbers != NULL ? numbers : measure->run_numbers;
    if (runs == NULL || numbers == NULL) {
        measures->failed = true;
        return;
    }
    runs[n - 1] = value;
    numbers[n - 1] = number;
    measure->n_runs = n;
}

void measure_sum_up_runs(struct measure *measure) {
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    measure->n = (double)moments.n;
    if (moments.n == 0) {
        return;
    }
    measure->mean = moments.mean;
    measure->sd = moments_sd(&moments);
    measure->min = moments.min;
    measure->max = moments.max;
}

const struct measure *measures_find(const struct measures *measures, const char *name) {
    for (size_t i = 0; i < measures->n; i++) {
        if (strcmp(measures->items[i].name, name) == 0) {
            return &measures->items[i];
        }
    }
    return NULL;
}

/* ---- names in gates ---- */

/* Whether `rest`, what follows a name, is only a unit. */
static bool is_unit(const char *rest, size_t len) {
    static const char *const units[] = {"bytes", "celsius", "joules", "percent",
                                        "ratio", "seconds", "watts"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (len == strlen(units[i]) + 1 && (rest[0] == '_' || rest[0] == '.') &&
            strncmp(rest + 1, units[i], len - 1) == 0) {
            return true;
        }
    }
    return len == 0;
}

static bool is_name(const struct measure *measure, const char *text, size_t len) {
    const char *short_text = record_short_key(text);
    size_t prefix = (size_t)(short_text - text);
    if (len > prefix) {
        text = short_text;
        len -= prefix;
    }
    if (strlen(measure->name) == len && strncmp(measure->name, text, len) == 0) {
        return true;
    }
    size_t bare = strcspn(measure->name, "{");
    return len > 0 && len <= bare && strncmp(measure->name, text, len) == 0 &&
           is_unit(measure->name + len, bare - len);
}

bool measure_matches(const struct measure *measure, const char *text,
                     const struct measure_stat **ret_stat) {
    const char *dot = strrchr(text, '.');
    for (size_t i = 0; dot != NULL && i < N_MEASURE_STATS; i++) {
        if (strcmp(measure_stats[i].name, dot + 1) == 0 &&
            is_name(measure, text, (size_t)(dot - text))) {
            *ret_stat = &measure_stats[i];
            return true;
        }
    }
    *ret_stat = &measure_stats[0];
    return is_name(measure, text, strlen(text));
}
