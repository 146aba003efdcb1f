#include "profiler/report/report.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "profiler/analysis/report_text.h"
#include "profiler/analysis/results.h"
#include "profiler/report/pages.h"

void run_verdict_finish(struct run_verdict *verdict) {
    problems_finish(&verdict->missing);
}

static struct run_verdict verdict_of(const struct results *results) {
    struct run_verdict verdict = {
        .n_gates = results->n_gates,
        .n_failed_gates = results->n_failed_gates,
        .n_failed_runs = results->n_failed_runs,
        .complete = results->profile->finished,
        .exit_code = results->n_failed_runs > 0    ? 3
                     : results->n_failed_gates > 0 ? 1
                                                   : 0,
    };
    for (size_t i = 0; i < results->n; i++) {
        const struct result *result = &results->items[i];
        for (size_t j = 0; j < result->n_gates; j++) {
            const struct gate *gate = &result->gates[j];
            struct buf place CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
            if (gate->state == GATE_FAILED && isnan(gate->value)) {
                gate_explain(gate, &result->measures, &text);
                buf_printf(&place, "gate %s", result->target->name);
                problems_add(&verdict.missing, buf_str(&place), 0, 0, "%s", buf_str(&text));
            }
        }
    }
    return verdict;
}

/* Reports whose size does not depend on the length of the record. */
static const struct {
    const char *name;
    void (*write)(const struct results *results, struct buf *out);
} pages[] = {
    {"junit.xml", report_junit_write},
    {"report.html", report_html_write},
    {"summary.json", summary_write},
};

void run_report_remove(const char *dir) {
    static const char *const names[] = {"junit.xml", "metrics.om", "report.html", "samples.csv",
                                        "summary.json"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path CLEANUP_FREE = file_path_join(dir, names[i]);
        unlink(path);
    }
}

int run_report_write(const char *dir, struct run_verdict *ret_verdict, struct error *err) {
    struct results results CLEANUP_RESULTS = {0};
    int r = results_read(dir, &results, err);
    for (size_t i = 0; i < ARRAY_LEN(pages) && r == 0; i++) {
        struct buf page CLEANUP_BUF = {0};
        pages[i].write(&results, &page);
        r = text_write_file(dir, pages[i].name, &page, err);
    }
    r = r < 0 ? r : report_csv_write(dir, results.profile, err);
    r = r < 0 ? r : report_openmetrics_write(dir, results.profile, err);
    if (r < 0) {
        return r;
    }
    *ret_verdict = verdict_of(&results);
    return 0;
}

int report_main(int argc, char **argv) {
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: waap report DIR...\n");
        return 2;
    }
    int exit_code = 0;
    for (int i = 1; i < argc; i++) {
        struct run_verdict verdict CLEANUP_VERDICT = {0};
        struct error err = {0};
        if (run_report_write(argv[i], &verdict, &err) < 0) {
            fprintf(stderr, "waap report: %s\n", err.text);
            return 2;
        }
        exit_code = verdict.exit_code > exit_code ? verdict.exit_code : exit_code;
        printf("%s/report.html\n", argv[i]);
    }
    return exit_code;
}
