#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/file.h"
#include "exporter/core/number.h"
#include "profiler/analysis/results.h"
#include "profiler/compare/compare.h"

enum { SUMMARY_MAX = 64 << 20 };

static const char usage[] =
    "usage: waap compare A B [--gate] [--json] [--all] [--threshold=5%]\n"
    "\n"
    "Says what changed from A to B: directories of waap run, or their summary.json.\n"
    "\n"
    "  --gate          exit with 1 where B is worse, 3 where its application failed,\n"
    "                  4 where board or power mode differ\n"
    "  --json          everything as JSON\n"
    "  --all           also measures that are neither good nor bad and did not change\n"
    "  --threshold=N%  take smaller changes for none (5%)\n";

struct options {
    const char *sides[2];
    size_t n_sides;
    bool gate, json, all;
    double threshold;
};

static int parse_threshold(const char *text, double *ret) {
    size_t len = strlen(text);
    bool percent = len > 0 && text[len - 1] == '%';
    double value;
    if (number_parse(text, len - percent, &value) < 0 || !(value >= 0 && value < 1e6)) {
        fprintf(stderr, "waap compare: --threshold=%s: expected a share, as 5%% or 0.05\n", text);
        return -EINVAL;
    }
    *ret = percent ? value / 100 : value;
    return 0;
}

static int parse_option(struct options *options, const char *arg) {
    static const char threshold[] = "--threshold=";
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--all", &options->all}, {"--gate", &options->gate}, {"--json", &options->json}};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (strcmp(arg, flags[i].name) == 0) {
            *flags[i].flag = true;
            return 0;
        }
    }
    if (strncmp(arg, threshold, strlen(threshold)) == 0) {
        return parse_threshold(arg + strlen(threshold), &options->threshold);
    }
    fprintf(stderr, "waap compare: unknown option \"%s\"\n", arg);
    return -EINVAL;
}

static int parse_options(struct options *options, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            int r = parse_option(options, argv[i]);
            if (r < 0) {
                return r;
            }
        } else if (options->n_sides < 2) {
            options->sides[options->n_sides++] = argv[i];
        } else {
            options->n_sides++;
        }
    }
    if (options->n_sides != 2) {
        fprintf(stderr, "waap compare: expected two runs, A and B, got %zu\n\n%s", options->n_sides,
                usage);
        return -EINVAL;
    }
    return 0;
}

/* The summary of a directory: computed from its record if there is one, so that it is never that of
 * another record. */
static int read_directory(const char *path, struct buf *out, struct error *err) {
    char *record CLEANUP_FREE = file_path_join(path, "samples.jsonl");
    char *summary CLEANUP_FREE = file_path_join(path, "summary.json");
    if (record == NULL || summary == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", path);
    }
    if (access(record, F_OK) != 0) {
        return file_read_stored(summary, SUMMARY_MAX, out, err);
    }
    struct results results CLEANUP_RESULTS = {0};
    int r = results_read(path, &results, err);
    if (r < 0) {
        return r;
    }
    summary_write(&results, out);
    return out->failed ? error_set(err, -ENOMEM, "%s: out of memory", path) : 0;
}

static int read_text(const char *path, struct buf *out, struct error *err) {
    struct stat st;
    if (stat(path, &st) < 0) {
        return error_set(err, -errno, "%s: %m", path);
    }
    return S_ISDIR(st.st_mode) ? read_directory(path, out, err)
                               : file_read_stored(path, SUMMARY_MAX, out, err);
}

/* A side is a directory with samples.jsonl or summary.json, or a summary itself. */
static int read_side(const char *path, struct compare_side *ret_side, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = read_text(path, &text, err);
    return r < 0 ? r : compare_side_parse(path, buf_str(&text), text.len, ret_side, err);
}

int compare_main(int argc, char **argv) {
    struct options options = {.threshold = 0.05};
    struct comparison comparison CLEANUP_COMPARISON = {0};
    struct buf text CLEANUP_BUF = {0};
    struct error err = {0};
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (parse_options(&options, argc, argv) < 0) {
        return 2;
    }
    comparison.threshold = options.threshold;
    int r = read_side(options.sides[0], &comparison.a, &err);
    r = r < 0 ? r : read_side(options.sides[1], &comparison.b, &err);
    r = r < 0 ? r : compare_make(&comparison, &err);
    if (r < 0) {
        fprintf(stderr, "waap compare: %s\n", err.text);
        return 2;
    }
    if (options.json) {
        compare_write_json(&comparison, &text);
    } else {
        compare_write_text(&comparison, options.all, isatty(STDOUT_FILENO), &text);
    }
    if (text.failed || fputs(buf_str(&text), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap compare: standard output");
        return 2;
    }
    return options.gate ? compare_exit_code(&comparison) : 0;
}
