#define _GNU_SOURCE 1
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_metric.h"
#include "prom_types.h"

/* A registry as text, for a program that serves it without the exporter. */

static void put_escaped(FILE *out, const char *text, bool quotes) {
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\n') {
            fputs("\\n", out);
            continue;
        }
        if (*at == '\\' || (*at == '"' && quotes)) {
            fputc('\\', out);
        }
        fputc(*at, out);
    }
}

void waap_prom_put_number(FILE *out, double value) {
    if (!isfinite(value)) {
        fputs(isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf", out);
        return;
    }
    char digits[40];
    snprintf(digits, sizeof(digits), "%.15g", value);
    if (strtod(digits, NULL) != value) {
        snprintf(digits, sizeof(digits), "%.17g", value);
    }
    fputs(digits, out);
}

/* The name and labels of a sample; `le` as one more where it is given. */
static void put_series(FILE *out, const struct prom_metric *metric, const struct prom_child *child,
                       const char *suffix, const double *le) {
    fprintf(out, "%s%s", metric->name, suffix);
    const char *before = "{";
    for (size_t k = 0; k < metric->n_keys; k++) {
        fprintf(out, "%s%s=\"", before, metric->keys[k]);
        put_escaped(out, child->values[k], true);
        fputc('"', out);
        before = ",";
    }
    if (le != NULL) {
        char digits[40];
        snprintf(digits, sizeof(digits), "%.15g", *le);
        /* As libprom and OpenMetrics have it: "5.0", not "5". */
        fprintf(out, "%sle=\"", before);
        waap_prom_put_number(out, *le);
        fputs(digits[strspn(digits, "-0123456789")] == '\0' ? ".0\"" : "\"", out);
        before = ",";
    }
    fputs(*before == ',' ? "} " : " ", out);
}

static void put_histogram(FILE *out, const struct prom_metric *metric,
                          const struct prom_child *child, struct waap_metric *series) {
    size_t n = waap_read_buckets(series, NULL, 0);
    uint64_t *counts = calloc(n, sizeof(*counts));
    if (counts == NULL) {
        return;
    }
    waap_read_buckets(series, counts, n);
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double bound = i + 1 < n ? metric->bounds[i] : INFINITY;
        count += counts[i];
        put_series(out, metric, child, "_bucket", &bound);
        fprintf(out, "%" PRIu64 "\n", count);
    }
    free(counts);
    put_series(out, metric, child, "_count", NULL);
    fprintf(out, "%" PRIu64 "\n", count);
    put_series(out, metric, child, "_sum", NULL);
    waap_prom_put_number(out, waap_read(series));
    fputc('\n', out);
}

static void put_sample(FILE *out, const struct prom_metric *metric, const struct prom_child *child,
                       struct waap_metric *series) {
    if (metric->type == WAAP_HISTOGRAM) {
        put_histogram(out, metric, child, series);
        return;
    }
    if (waap_metric_is_empty(series)) {
        return; /* it has no value; NaN is one */
    }
    put_series(out, metric, child, "", NULL);
    waap_prom_put_number(out, waap_read(series));
    fputc('\n', out);
}

/* Two threads may have made a child for the same series. */
static bool is_repeated(const struct prom_child *first, const struct prom_child *child) {
    while (first != child && first->series != child->series) {
        first = first->next;
    }
    return first != child;
}

static void put_metric(FILE *out, const struct prom_metric *metric) {
    static const char *const types[] = {
        [WAAP_COUNTER] = "counter", [WAAP_GAUGE] = "gauge", [WAAP_HISTOGRAM] = "histogram"};
    fprintf(out, "# HELP %s ", metric->name);
    put_escaped(out, metric->help, false);
    fprintf(out, "\n# TYPE %s %s\n", metric->name, types[metric->type]);
    if (metric->n_keys == 0) {
        put_sample(out, metric, NULL, metric->series);
    }
    for (size_t i = 0; i < PROM_N_SLOTS; i++) {
        const struct prom_child *first = atomic_load(&metric->slots[i]);
        for (const struct prom_child *c = first; c != NULL; c = c->next) {
            if (!is_repeated(first, c)) {
                put_sample(out, metric, c, c->series);
            }
        }
    }
}

static void put_registry(FILE *out, struct prom_collector_registry *registry) {
    waap_prom_collect(registry);
    pthread_mutex_lock(&waap_prom_lock);
    for (struct prom_collector *c = registry->collectors; c != NULL; c = c->next) {
        if (c->is_process) {
            waap_prom_put_process(out, c);
        }
        for (struct prom_metric *metric = c->metrics; metric != NULL; metric = metric->next) {
            put_metric(out, metric);
        }
    }
    pthread_mutex_unlock(&waap_prom_lock);
}

const char *prom_collector_registry_bridge(prom_collector_registry_t *self) {
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        return NULL;
    }
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    locale_t before = uselocale(plain);
    if (self != NULL) {
        put_registry(out, self);
    }
    uselocale(before);
    if (plain != NULL) {
        freelocale(plain);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
