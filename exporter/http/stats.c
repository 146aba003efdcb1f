#include "exporter/http/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/core/number.h"

enum { DURATION, REQUESTS, N_METRICS };

const struct metric_desc http_stats_metrics[] = {
    [DURATION] = {"waap_http_request_duration_seconds",
                  "Time from the head of a request to the end of its response.", METRIC_HISTOGRAM,
                  "seconds", "handler, le"},
    [REQUESTS] = {"waap_http_requests_total", "HTTP requests by status code and handler.",
                  METRIC_COUNTER, NULL, "code, handler"},
    [N_METRICS] = {0},
};

static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                0.1,    0.25,  0.5,    1,     2.5,  5,     10};

enum { N_BOUNDS = ARRAY_LEN(bounds), MAX_HANDLERS = 32, MAX_ROWS = 256 };

struct row {
    const char *handler;
    unsigned code;
    uint64_t count;
    struct labels *labels;
};

struct histogram {
    const char *handler;
    uint64_t counts[N_BOUNDS + 1]; /* not cumulative; the last is beyond all bounds */
    double sum;
    struct labels *labels;
    struct labels *bucket_labels[N_BOUNDS + 1];
};

struct http_stats {
    struct row rows[MAX_ROWS];
    size_t n_rows;
    struct histogram *histograms[MAX_HANDLERS];
    size_t n_histograms;
};

struct http_stats *http_stats_create(void) {
    return mem_zalloc(1, sizeof(struct http_stats));
}

void http_stats_destroy(struct http_stats *stats) {
    if (stats == NULL) {
        return;
    }
    for (size_t i = 0; i < stats->n_rows; i++) {
        labels_destroy(stats->rows[i].labels);
    }
    for (size_t i = 0; i < stats->n_histograms; i++) {
        struct histogram *histogram = stats->histograms[i];
        for (size_t k = 0; k <= N_BOUNDS; k++) {
            labels_destroy(histogram->bucket_labels[k]);
        }
        labels_destroy(histogram->labels);
        free(histogram);
    }
    free(stats);
}

static void count_request(struct http_stats *stats, const char *handler, unsigned code) {
    for (size_t i = 0; i < stats->n_rows; i++) {
        struct row *row = &stats->rows[i];
        if (row->code == code && strcmp(row->handler, handler) == 0) {
            row->count++;
            return;
        }
    }
    if (stats->n_rows < MAX_ROWS) {
        char code_text[16];
        snprintf(code_text, sizeof(code_text), "%u", code);
        stats->rows[stats->n_rows++] =
            (struct row){handler, code, 1, labels_render("code", code_text, "handler", handler)};
    }
}

static struct histogram *histogram_of(struct http_stats *stats, const char *handler) {
    for (size_t i = 0; i < stats->n_histograms; i++) {
        if (strcmp(stats->histograms[i]->handler, handler) == 0) {
            return stats->histograms[i];
        }
    }
    if (stats->n_histograms == MAX_HANDLERS) {
        return NULL;
    }
    struct histogram *histogram = mem_zalloc(1, sizeof(*histogram));
    histogram->handler = handler;
    histogram->labels = labels_render("handler", handler);
    for (size_t i = 0; i <= N_BOUNDS; i++) {
        char le[NUMBER_MAX_LEN + 1] = "+Inf";
        if (i < N_BOUNDS) {
            le[number_format_canonical(bounds[i], le)] = '\0';
        }
        histogram->bucket_labels[i] = labels_with(histogram->labels, "le", le);
    }
    stats->histograms[stats->n_histograms++] = histogram;
    return histogram;
}

void http_stats_note(struct http_stats *stats, const char *handler, unsigned code, double seconds) {
    count_request(stats, handler, code);
    struct histogram *histogram = histogram_of(stats, handler);
    if (histogram == NULL) {
        return;
    }
    size_t i = 0;
    while (i < N_BOUNDS && seconds > bounds[i]) {
        i++;
    }
    histogram->counts[i]++;
    histogram->sum += seconds;
}

void http_stats_collect(const struct http_stats *stats, struct snapshot *out) {
    const struct metric_desc *duration = &http_stats_metrics[DURATION];
    for (size_t i = 0; i < stats->n_rows; i++) {
        snapshot_add(out, &http_stats_metrics[REQUESTS], stats->rows[i].labels,
                     (double)stats->rows[i].count);
    }
    for (size_t i = 0; i < stats->n_histograms; i++) {
        const struct histogram *histogram = stats->histograms[i];
        uint64_t total = 0;
        for (size_t k = 0; k <= N_BOUNDS; k++) {
            total += histogram->counts[k];
            snapshot_add_suffixed(out, duration, "_bucket", histogram->bucket_labels[k],
                                  (double)total);
        }
        snapshot_add_suffixed(out, duration, "_sum", histogram->labels, histogram->sum);
        snapshot_add_suffixed(out, duration, "_count", histogram->labels, (double)total);
    }
}
