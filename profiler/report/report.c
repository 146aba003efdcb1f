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

/* A report is made in memory, or written sample by sample if its size depends on the length of the
 * record. */
static const struct report {
    const char *name;
    void (*write)(const struct results *results, struct buf *out);
    int (*stream)(const struct profile *profile, FILE *to, struct error *err);
} reports[] = {
    {"junit.xml", report_junit_write, NULL},  {"metrics.om", NULL, report_openmetrics_write},
    {"report.html", report_html_write, NULL}, {"samples.csv", NULL, report_csv_write},
    {"summary.json", summary_write, NULL},
};

void run_report_remove(const char *dir) {
    for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
        char *path CLEANUP_FREE = file_path_join(dir, reports[i].name);
        unlink(path);
    }
}

static int write_report(const char *dir, const struct results *results, const struct report *report,
                        struct error *err) {
    struct text_file file CLEANUP_TEXT_FILE = {0};
    struct buf text CLEANUP_BUF = {0};
    int r = text_file_open(&file, dir, report->name, err);
    if (r == 0 && report->stream != NULL) {
        r = report->stream(results->profile, file.file, err);
    } else if (r == 0) {
        report->write(results, &text);
        fwrite(buf_str(&text), 1, text.len, file.file);
    }
    return r < 0 ? r : text_file_commit(&file, err);
}

int run_report_write(const char *dir, struct run_verdict *ret_verdict, struct error *err) {
    struct results results CLEANUP_RESULTS = {0};
    int r = results_read(dir, &results, err);
    for (size_t i = 0; i < ARRAY_LEN(reports) && r == 0; i++) {
        r = write_report(dir, &results, &reports[i], err);
    }
    if (r == 0) {
        *ret_verdict = verdict_of(&results);
    }
    return r;
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
