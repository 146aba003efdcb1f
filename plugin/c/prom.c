#define _GNU_SOURCE 1
#include "include/waap/prom/prom.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_metric.h"
#include "prom_types.h"

enum { MAX_KEYS = 32 };

/* ---- making ---- */

static void child_destroy(const struct prom_metric *metric, struct prom_child *child) {
    for (size_t k = 0; k < metric->n_keys; k++) {
        free(child->values[k]);
    }
    free(child);
}

int waap_prom_destroy(struct prom_metric *metric) {
    if (metric == NULL) {
        return 0;
    }
    waap_prom_leave(metric);
    for (size_t i = 0; i < PROM_N_SLOTS; i++) {
        struct prom_child *next;
        for (struct prom_child *child = metric->slots[i]; child != NULL; child = next) {
            next = child->next;
            atomic_fetch_sub(&child->series->n_refs, 1);
            child_destroy(metric, child);
        }
    }
    for (size_t k = 0; metric->keys != NULL && k < metric->n_keys; k++) {
        free(metric->keys[k]);
    }
    if (metric->series != NULL) {
        atomic_fetch_sub(&metric->series->n_refs, 1);
    }
    free(metric->keys);
    free(metric->bounds);
    prom_histogram_buckets_destroy(metric->buckets);
    free(metric->name);
    free(metric->help);
    free(metric);
    return 0;
}

/* "le" and "quantile" are Prometheus' own. */
static bool copy_keys(struct prom_metric *metric, size_t n, const char **keys) {
    metric->keys = calloc(n + 1, sizeof(*metric->keys));
    for (size_t k = 0; metric->keys != NULL && k < n; k++) {
        if (keys[k] == NULL || strcmp(keys[k], "le") == 0 || strcmp(keys[k], "quantile") == 0) {
            return false;
        }
        metric->keys[k] = strdup(keys[k]);
        if (metric->keys[k] == NULL) {
            return false;
        }
        metric->n_keys++;
    }
    return metric->keys != NULL;
}

static bool copy_bounds(struct prom_metric *metric, const prom_histogram_buckets_t *buckets) {
    size_t n = buckets->count > 0 ? (size_t)buckets->count : 0;
    metric->bounds = calloc(n + 1, sizeof(*metric->bounds));
    if (metric->bounds != NULL && n > 0) {
        memcpy(metric->bounds, buckets->upper_bounds, n * sizeof(*metric->bounds));
        metric->n_bounds = n;
    }
    return metric->bounds != NULL && n > 0;
}

static struct waap_metric *series_of(const struct prom_metric *metric, const char **values) {
    const char *labels[2 * MAX_KEYS + 1] = {0};
    for (size_t k = 0; k < metric->n_keys; k++) {
        labels[2 * k] = metric->keys[k];
        labels[2 * k + 1] = values[k];
    }
    return waap_metric_new(&(struct waap_metric_spec){.type = metric->type,
                                                      .name = metric->name,
                                                      .help = metric->help,
                                                      .labels = labels,
                                                      .bounds = metric->bounds,
                                                      .n_bounds = metric->n_bounds});
}

static struct prom_metric *metric_new(enum waap_type type, const char *name, const char *help,
                                      prom_histogram_buckets_t *buckets, size_t n_keys,
                                      const char **keys) {
    struct prom_metric *metric = calloc(1, sizeof(*metric));
    if (metric == NULL) {
        return NULL;
    }
    metric->type = type;
    metric->name = name != NULL ? strdup(name) : NULL;
    metric->help = strdup(help != NULL ? help : "");
    metric->buckets = buckets;
    bool good = metric->name != NULL && metric->help != NULL && n_keys <= MAX_KEYS &&
                copy_keys(metric, n_keys, keys) &&
                (type != WAAP_HISTOGRAM ||
                 copy_bounds(metric, buckets != NULL ? buckets : prom_histogram_default_buckets));
    if (good && metric->n_keys == 0) {
        const char *no_values[1] = {NULL};
        metric->series = series_of(metric, no_values);
        good = metric->series != NULL;
    }
    if (!good) {
        metric->buckets = NULL; /* stays the caller's */
        waap_prom_destroy(metric);
        return NULL;
    }
    return metric;
}

/* ---- finding ---- */

static bool values_equal(const struct prom_metric *metric, const struct prom_child *child,
                         const char **values) {
    for (size_t k = 0; k < metric->n_keys; k++) {
        if (strcmp(child->values[k], values[k]) != 0) {
            return false;
        }
    }
    return true;
}

static size_t hash_values(const struct prom_metric *metric, const char **values) {
    size_t hash = 5381;
    for (size_t k = 0; k < metric->n_keys; k++) {
        for (const char *at = values[k]; *at != '\0'; at++) {
            hash = hash * 33 + (unsigned char)*at;
        }
        hash = hash * 33;
    }
    return hash % PROM_N_SLOTS;
}

static struct prom_child *child_create(const struct prom_metric *metric, const char **values) {
    struct prom_child *child = calloc(1, sizeof(*child) + metric->n_keys * sizeof(char *));
    if (child == NULL) {
        return NULL;
    }
    bool good = true;
    for (size_t k = 0; k < metric->n_keys; k++) {
        child->values[k] = strdup(values[k]);
        good = good && child->values[k] != NULL;
    }
    child->series = good ? series_of(metric, values) : NULL;
    if (child->series == NULL) {
        child_destroy(metric, child);
        return NULL;
    }
    return child;
}

/* Threads that make the same child at once both succeed: their children share one series. */
static struct waap_metric *find_series(struct prom_metric *metric, const char **values) {
    if (metric->n_keys == 0) {
        return metric->series;
    }
    for (size_t k = 0; k < metric->n_keys; k++) {
        if (values == NULL || values[k] == NULL) {
            return NULL;
        }
    }
    _Atomic(struct prom_child *) *slot = &metric->slots[hash_values(metric, values)];
    for (struct prom_child *child = atomic_load(slot); child != NULL; child = child->next) {
        if (values_equal(metric, child, values)) {
            return child->series;
        }
    }
    struct prom_child *child = child_create(metric, values);
    if (child == NULL) {
        return NULL;
    }
    child->next = atomic_load(slot);
    while (!atomic_compare_exchange_weak(slot, &child->next, child)) {
    }
    return child->series;
}

/* The series to record into; NULL where the metric is none or of another type. */
static struct waap_metric *series_for(struct prom_metric *metric, enum waap_type type,
                                      const char **values) {
    return metric != NULL && metric->type == type ? find_series(metric, values) : NULL;
}

/* ---- recording: 1 for what the library below drops ---- */

static int series_add(struct waap_metric *series, double value) {
    waap_add(series, value);
    return series == NULL || !isfinite(value) || (series->type != WAAP_GAUGE && value < 0);
}

static int series_set(struct waap_metric *series, double value) {
    waap_set(series, value);
    return series == NULL || series->type != WAAP_GAUGE;
}

static int series_observe(struct waap_metric *series, double value) {
    waap_observe(series, value);
    return series == NULL || !isfinite(value);
}

prom_counter_t *prom_counter_new(const char *name, const char *help, size_t label_key_count,
                                 const char **label_keys) {
    return metric_new(WAAP_COUNTER, name, help, NULL, label_key_count, label_keys);
}

int prom_counter_destroy(prom_counter_t *self) {
    return waap_prom_destroy(self);
}

int prom_counter_inc(prom_counter_t *self, const char **label_values) {
    struct waap_metric *series = series_for(self, WAAP_COUNTER, label_values);
    waap_inc(series);
    return series == NULL;
}

int prom_counter_add(prom_counter_t *self, double r_value, const char **label_values) {
    return series_add(series_for(self, WAAP_COUNTER, label_values), r_value);
}

prom_gauge_t *prom_gauge_new(const char *name, const char *help, size_t label_key_count,
                             const char **label_keys) {
    return metric_new(WAAP_GAUGE, name, help, NULL, label_key_count, label_keys);
}

int prom_gauge_destroy(prom_gauge_t *self) {
    return waap_prom_destroy(self);
}

int prom_gauge_inc(prom_gauge_t *self, const char **label_values) {
    return prom_gauge_add(self, 1, label_values);
}

int prom_gauge_dec(prom_gauge_t *self, const char **label_values) {
    return prom_gauge_add(self, -1, label_values);
}

int prom_gauge_add(prom_gauge_t *self, double r_value, const char **label_values) {
    return series_add(series_for(self, WAAP_GAUGE, label_values), r_value);
}

int prom_gauge_sub(prom_gauge_t *self, double r_value, const char **label_values) {
    return prom_gauge_add(self, -r_value, label_values);
}

int prom_gauge_set(prom_gauge_t *self, double r_value, const char **label_values) {
    return series_set(series_for(self, WAAP_GAUGE, label_values), r_value);
}

prom_histogram_t *prom_histogram_new(const char *name, const char *help,
                                     prom_histogram_buckets_t *buckets, size_t label_key_count,
                                     const char **label_keys) {
    return metric_new(WAAP_HISTOGRAM, name, help, buckets, label_key_count, label_keys);
}

int prom_histogram_destroy(prom_histogram_t *self) {
    return waap_prom_destroy(self);
}

int prom_histogram_observe(prom_histogram_t *self, double value, const char **label_values) {
    return series_observe(series_for(self, WAAP_HISTOGRAM, label_values), value);
}

/* A sample is the series itself under libprom's names. */

prom_metric_sample_t *prom_metric_sample_from_labels(prom_metric_t *self,
                                                     const char **label_values) {
    bool plain = self != NULL && self->type != WAAP_HISTOGRAM;
    struct waap_metric *series = plain ? find_series(self, label_values) : NULL;
    if (series != NULL && waap_metric_is_empty(series)) {
        waap_add(series, 0); /* as libprom shows a sample that was found */
    }
    return (prom_metric_sample_t *)series;
}

prom_metric_sample_histogram_t *
prom_metric_sample_histogram_from_labels(prom_metric_t *self, const char **label_values) {
    return (prom_metric_sample_histogram_t *)series_for(self, WAAP_HISTOGRAM, label_values);
}

int prom_metric_sample_add(prom_metric_sample_t *self, double r_value) {
    return series_add((struct waap_metric *)self, r_value);
}

int prom_metric_sample_sub(prom_metric_sample_t *self, double r_value) {
    return prom_metric_sample_add(self, -r_value);
}

int prom_metric_sample_set(prom_metric_sample_t *self, double r_value) {
    return series_set((struct waap_metric *)self, r_value);
}

int prom_metric_sample_histogram_observe(prom_metric_sample_histogram_t *self, double value) {
    return series_observe((struct waap_metric *)self, value);
}
