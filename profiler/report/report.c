#include "profiler/report/report.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/settings/problems.h"
#include "profiler/analysis/report_text.h"
#include "profiler/report/pages.h"

int run_report_exit_code(const struct profile *profile) {
    return profile->n_failed_runs > 0 ? 3 : profile->n_failed_gates > 0 ? 1 : 0;
}

void run_report_explain(const struct profile *profile, FILE *to) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    for (size_t i = 0; i < profile->n_targets; i++) {
        const struct profile_target *target = &profile->targets[i];
        for (size_t j = 0; j < target->n_gates; j++) {
            const struct gate *gate = &target->gates[j];
            struct buf place CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
            if (gate->state == GATE_FAILED) {
                gate_explain(gate, &target->measures, &text);
                buf_printf(&place, "gate %s", target->name);
                problems_add(&problems, buf_str(&place), 0, 0, "%s", buf_str(&text));
            }
        }
    }
    problems_print(&problems, to);
}

/* Made in memory, or written sample by sample if it grows with the record. */
static const struct report {
    const char *name;
    void (*write)(const struct profile *profile, struct buf *out);
    int (*stream)(const struct profile *profile, FILE *to, struct error *err);
} reports[] = {
    {"junit.xml", report_junit_write, NULL},       {"metrics.om", NULL, report_openmetrics_write},
    {"report.html", report_html_write, NULL},      {"samples.csv", NULL, report_csv_write},
    {"summary.json", profile_write_summary, NULL},
};

void run_report_remove(const char *dir) {
    for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
        char *path CLEANUP_FREE = file_path_join(dir, reports[i].name);
        unlink(path);
    }
}

/* A report of a record. */
struct writing {
    const struct report *report;
    const struct profile *profile;
};

static int write_report(FILE *to, const void *context, struct error *err) {
    const struct writing *writing = context;
    struct buf text CLEANUP_BUF = {0};
    if (writing->report->stream != NULL) {
        return writing->report->stream(writing->profile, to, err);
    }
    writing->report->write(writing->profile, &text);
    fwrite(buf_str(&text), 1, text.len, to);
    return 0;
}

int run_report_write(const char *dir, struct profile **ret_profile, struct error *err) {
    struct profile *profile CLEANUP_PROFILE = NULL;
    char *record CLEANUP_FREE = file_path_join(dir, "samples.jsonl");
    int r = profile_read(record, &profile, err);
    for (size_t i = 0; i < ARRAY_LEN(reports) && r == 0; i++) {
        struct writing writing = {&reports[i], profile};
        r = text_file_replace(dir, reports[i].name, write_report, &writing, err);
    }
    if (r == 0) {
        *ret_profile = TAKE(profile);
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
        struct profile *profile CLEANUP_PROFILE = NULL;
        struct error err = {0};
        if (run_report_write(argv[i], &profile, &err) != 0) {
            fprintf(stderr, "waap report: %s\n", err.text);
            return 2;
        }
        int code = run_report_exit_code(profile);
        exit_code = code > exit_code ? code : exit_code;
        printf("%s/report.html\n", argv[i]);
    }
    return exit_code;
}
