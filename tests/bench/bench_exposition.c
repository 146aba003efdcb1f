#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/metrics/exposition.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one series on its way from the collector to the page, without HTTP: snapshot, part,
 * page. The values change from round to round, or all of them stay. */

enum { N_SERIES = 100000, N_ROUNDS = 10, N_TURNS = 5 };

static const struct metric_desc requests = {
    .name = "bench_requests_total",
    .help = "Requests.",
    .type = METRIC_COUNTER,
};
static struct labels *series[N_SERIES];

static void make_series(void) {
    for (size_t i = 0; i < N_SERIES; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/api/v1/item/%06zu", i);
        series[i] = labels_render("method", "GET", "path", path, "node", "edge-17");
        if (series[i] == NULL) {
            abort();
        }
    }
}

static double whole(size_t i, size_t round) {
    return (double)(i + round);
}

static double fraction(size_t i, size_t round) {
    return (double)((i * 7919 + round) % 9973) / 9973;
}

static double constant(size_t i, size_t round) {
    (void)round;
    return (double)i;
}

static void fill(struct snapshot *snapshot, double (*value)(size_t, size_t), size_t round) {
    snapshot_reset(snapshot);
    for (size_t i = 0; i < N_SERIES; i++) {
        snapshot_add(snapshot, &requests, series[i], value(i, round));
    }
}

static void serve(struct exposition_renderer *renderer, const struct snapshot *snapshot) {
    struct exposition_part *part = exposition_render(renderer, snapshot, NULL);
    struct exposition_page page CLEANUP_EXPOSITION_PAGE = {0};
    exposition_page_write(&page, (struct exposition_choice){0}, &part, 1, NULL);
    exposition_part_unref(part);
}

/* The best of some turns: what others do to the machine only adds. */
static double measure(double (*value)(size_t, size_t)) {
    const size_t n_rounds = (size_t)stopwatch_count(N_ROUNDS);
    const size_t n_turns = (size_t)stopwatch_count(N_TURNS);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct exposition_renderer renderer = {0};
    double best = 1e9;
    for (size_t turn = 0; turn < n_turns; turn++) {
        double begin = stopwatch_cpu_seconds();
        for (size_t round = 0; round < n_rounds; round++) {
            fill(&snapshot, value, turn * n_rounds + round);
            serve(&renderer, &snapshot);
        }
        double seconds = stopwatch_cpu_seconds() - begin;
        best = seconds < best ? seconds : best;
    }
    exposition_renderer_finish(&renderer);
    return best / (double)n_rounds / N_SERIES;
}

int main(void) {
    static const struct {
        const char *name;
        double (*value)(size_t, size_t);
    } kinds[] = {
        {"whole numbers", whole},
        {"fractions", fraction},
        {"unchanged", constant},
    };
    make_series();
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        printf("one series to the page, %s\t%.4g\n", kinds[i].name, measure(kinds[i].value));
    }
    for (size_t i = 0; i < N_SERIES; i++) {
        labels_destroy(series[i]);
    }
    return 0;
}
