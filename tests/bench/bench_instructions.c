#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/number.h"
#include "exporter/metrics/exposition.h"
#include "exporter/metrics/parse.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

/* bench_instructions TASK prepares a task and does it once inside measured(), where callgrind
 * counts instructions (--toggle-collect=measured). Without a task it lists them. */

enum { N_SERIES = 10000, N_FAMILIES = 200 };

static const struct metric_desc level = {
    .name = "bench_level_ratio",
    .help = "Levels.",
    .type = METRIC_GAUGE,
};
static struct labels *series[N_SERIES];
static struct snapshot snapshot;
static struct exposition_renderer renderer;
static struct exposition_part *part;
static struct exposition_page page;
static struct buf text;
static struct exposition_doc doc;
static volatile size_t sink; /* keeps results from being optimised away */

static double value_of(size_t i) {
    return i % 2 == 0 ? (double)(i * 12345) : (double)(i * 7919 % 9973) / 9973;
}

static void make_series(void) {
    for (size_t i = 0; i < N_SERIES; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/api/v1/item/%06zu", i);
        series[i] = labels_render("method", "GET", "path", path, "node", "edge-17");
    }
}

static void fill(void) {
    snapshot_reset(&snapshot);
    for (size_t i = 0; i < N_SERIES; i++) {
        snapshot_add(&snapshot, &level, series[i], value_of(i));
    }
}

static void render(void) {
    part = exposition_render(&renderer, &snapshot, NULL);
}

static void write_page(void) {
    exposition_page_write(&page, (struct exposition_choice){0}, &part, 1, NULL);
}

static void prepare_fill(void) {
    make_series();
    fill();
}

static void prepare_unchanged(void) {
    prepare_fill();
    render();
    exposition_part_unref(part);
}

static void prepare_again(void) {
    prepare_unchanged();
    for (size_t i = 0; i < N_SERIES; i++) {
        snapshot.families[0].samples[i].value += 1;
    }
}

static void prepare_page(void) {
    prepare_fill();
    render();
}

static void prepare_text(void) {
    prepare_page();
    exposition_text(&text, (struct exposition_choice){0}, &part, 1, NULL);
}

static void parse(void) {
    struct exposition_limits limits = {.max_families = 100,
                                       .max_samples = 1000000,
                                       .max_labels = 64,
                                       .max_name_len = 1024,
                                       .max_value_len = 4096};
    struct error err;
    if (exposition_parse(text.data, text.len, &limits, &doc, &err) < 0) {
        errx(EXIT_FAILURE, "%s", err.text);
    }
}

static void negotiate(void) {
    static const char *const headers[] = {
        "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version="
        "0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
        "delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
        "text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
        "*/*",
    };
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        sink += exposition_negotiate(headers[i]).format;
    }
}

static void format(void) {
    char out[NUMBER_MAX_LEN];
    for (size_t i = 0; i < N_SERIES; i++) {
        sink += number_format(value_of(i), out);
    }
}

static void prepare_families(void) {
    static struct metric_desc descs[N_FAMILIES];
    static char names[N_FAMILIES][32];
    for (size_t i = 0; i < N_FAMILIES; i++) {
        snprintf(names[i], sizeof(names[i]), "bench_level_%03zu_bytes", i);
        descs[i] = (struct metric_desc){names[i], "How high it stands.", METRIC_GAUGE, "bytes"};
        snapshot_add(&snapshot, &descs[i], NULL, value_of(i));
    }
    render();
}

static void nothing(void) {
}

static const struct task {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
} tasks[] = {
    {"format 10 k numbers", nothing, format},
    {"label 10 k series", nothing, make_series},
    {"negotiate 3 headers", nothing, negotiate},
    {"parse 10 k series", prepare_text, parse},
    {"render 10 k series again", prepare_again, render},
    {"render 10 k series once", prepare_fill, render},
    {"render 10 k series unchanged", prepare_unchanged, render},
    {"snapshot of 10 k series", prepare_fill, fill},
    {"write a page of 10 k series", prepare_page, write_page},
    {"write a page of 200 families", prepare_families, write_page},
};

static void measured(void (*run)(void)) {
    run();
}

int main(int argc, char **argv) {
    void (*volatile measure)(void (*)(void)) = measured; /* so that it stays a function */
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        if (argc < 2) {
            puts(tasks[i].name);
        } else if (strcmp(argv[1], tasks[i].name) == 0) {
            tasks[i].prepare();
            measure(tasks[i].run);
            return 0;
        }
    }
    return argc > 1;
}
