#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/number.h"
#include "profiler/compare.h"

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
    int r = compare_side_read(options.sides[0], &comparison.a, &err);
    r = r < 0 ? r : compare_side_read(options.sides[1], &comparison.b, &err);
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
