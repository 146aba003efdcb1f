#include "profiler/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/file.h"
#include "exporter/core/json_write.h"
#include "exporter/core/number.h"
#include "exporter/settings/flags.h"
#include "profiler/analysis/profile.h"
#include "profiler/analysis/report_text.h"

static const struct {
    const char *word;
    const char *colour;
} changes[] = {
    [CHANGE_NONE] = {"same", ""},
    [CHANGE_UNCLEAR] = {"too few runs", "\033[33m"},
    [CHANGE_BETTER] = {"better", "\033[32m"},
    [CHANGE_WORSE] = {"worse", "\033[31m"},
    [CHANGE_OTHER] = {"differs", "\033[33m"},
};

/* ---- for people ---- */

/* Columns on a terminal: the bytes that begin a character. */
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return n;
}

static void pad(struct buf *out, const char *text, size_t width, bool right) {
    size_t n = width_of(text), blanks = n < width ? width - n : 0;
    if (right) {
        buf_printf(out, "%*s%s", (int)blanks, "", text);
    } else {
        buf_printf(out, "%s%*s", text, (int)blanks, "");
    }
}

static void add_mean(struct buf *out, const struct measure *measure) {
    buf_add_str(out, text_human(measure->mean, measure->unit).text);
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    if (moments.n > 1 && moments.mean != 0) {
        buf_printf(out, " ±%.1f %%", 100 * moments_ci95(&moments) / fabs(moments.mean));
    }
}

static void add_row(struct buf *out, const struct compare_row *row, size_t name_width,
                    bool colours) {
    struct buf a CLEANUP_BUF = {0}, b CLEANUP_BUF = {0}, change CLEANUP_BUF = {0};
    add_mean(&a, row->a);
    add_mean(&b, row->b);
    /* "+inf" if there was nothing before. */
    buf_printf(&change, isfinite(row->change) ? "%+.1f %%" : "%+f", 100 * row->change);
    buf_add_str(out, "  ");
    pad(out, row->b->name, name_width, false);
    pad(out, buf_str(&a), 23, true);
    pad(out, buf_str(&b), 23, true);
    pad(out, buf_str(&change), 11, true);
    buf_printf(out, "  p=%-8.3g", row->p);
    const char *colour = colours ? changes[row->kind].colour : "";
    buf_printf(out, "%s%s%s\n", colour, changes[row->kind].word,
               colour[0] != '\0' ? "\033[0m" : "");
}

static bool is_shown(const struct compare_row *row, bool all) {
    return all || row->kind != CHANGE_NONE || row->b->better != BETTER_NEITHER;
}

static void add_rows(struct buf *out, const struct comparison *comparison, bool all, bool colours) {
    size_t width = 24;
    for (size_t i = 0; i < comparison->n_rows; i++) {
        size_t n = width_of(comparison->rows[i].b->name);
        width = is_shown(&comparison->rows[i], all) && n > width ? n : width;
    }
    const char *target = NULL;
    for (size_t i = 0; i < comparison->n_rows; i++) {
        const struct compare_row *row = &comparison->rows[i];
        if (!is_shown(row, all)) {
            continue;
        }
        if (target == NULL || strcmp(target, row->target) != 0) {
            target = row->target;
            buf_printf(out, "%s (%zu runs, then %zu)\n", target, row->a->n_runs, row->b->n_runs);
        }
        add_row(out, row, width, colours);
    }
}

/* "cpu: only before has fps, inference_seconds": one line per target and side. */
static void add_absences(struct buf *out, const struct comparison *comparison) {
    const struct compare_absence *last = NULL;
    for (size_t i = 0; i < comparison->n_absences; i++) {
        const struct compare_absence *absence = &comparison->absences[i];
        const char *side = (absence->lost ? &comparison->a : &comparison->b)->name;
        bool goes_on = last != NULL && last->measure != NULL && last->lost == absence->lost &&
                       strcmp(last->target, absence->target) == 0;
        if (goes_on) {
            buf_printf(out, ", %s", absence->measure->name);
        } else {
            buf_printf(out, "%s%s: only %s has %s", last != NULL ? "\n" : "", absence->target, side,
                       absence->measure != NULL ? absence->measure->name : "this target");
        }
        last = absence;
    }
    buf_add_str(out, last != NULL ? "\n" : "");
}

static void add_gates(struct buf *out, const struct comparison *comparison) {
    static const char *const verdicts[] = {
        [GATE_OK] = "kept", [GATE_FAILED] = "broken", [GATE_SKIPPED] = "not judged"};
    for (size_t i = 0; i < comparison->n_gates; i++) {
        const struct compare_gate *gate = &comparison->gates[i];
        buf_printf(out, "gate %s: %s %s %.6g: ", gate->target, gate->gate.metric,
                   gate_kinds[gate->gate.kind], gate->gate.limit);
        buf_printf(out, "%s (",
                   gate->by_chance ? "within what the runs differ" : verdicts[gate->gate.state]);
        if (gate_is_relative(&gate->gate)) {
            buf_printf(out, "%s, then ", text_human(gate->gate.base, gate->gate.unit).text);
        }
        buf_printf(out, "%s)\n", text_human(gate->gate.value, gate->gate.unit).text);
    }
}

void compare_write_text(const struct comparison *comparison, bool all, bool colours,
                        struct buf *out) {
    for (size_t i = 0; i < comparison->n_differences; i++) {
        const struct compare_difference *difference = &comparison->differences[i];
        buf_printf(out, "%s: %s, then %s%s\n", difference->key, difference->a, difference->b,
                   difference->matters ? ": these cannot be compared" : "");
    }
    add_rows(out, comparison, all, colours);
    add_absences(out, comparison);
    add_gates(out, comparison);
    if (comparison->b.n_failed_runs > 0) {
        buf_printf(out, "%s: the application failed in %zu runs\n", comparison->b.name,
                   comparison->b.n_failed_runs);
    }
}

/* ---- for programs ---- */

static void add_json_row(struct buf *out, const struct compare_row *row) {
    json_open(out, NULL, '{');
    json_put_string(out, "target", row->target);
    json_put_string(out, "measure", row->b->name);
    json_put_string(out, "unit", row->b->unit);
    text_put_number(out, "a", row->a->mean);
    text_put_number(out, "b", row->b->mean);
    text_put_number(out, "change", row->change);
    text_put_number(out, "p", row->p);
    text_put_number(out, "runs_a", (double)row->a->n_runs);
    text_put_number(out, "runs_b", (double)row->b->n_runs);
    json_put_string(out, "verdict", changes[row->kind].word);
    json_close(out, '}');
}

static void add_json_gate(struct buf *out, const struct compare_gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "true", [GATE_FAILED] = "false", [GATE_SKIPPED] = "null"};
    json_open(out, NULL, '{');
    json_put_string(out, "target", gate->target);
    json_put_string(out, "metric", gate->gate.metric);
    json_put_string(out, "kind", gate_kinds[gate->gate.kind]);
    text_put_number(out, "limit", gate->gate.limit);
    text_put_number(out, "base", gate->gate.base);
    text_put_number(out, "value", gate->gate.value);
    json_put_bool(out, "by_chance", gate->by_chance);
    json_put(out, "ok", "%s", gate->by_chance ? "true" : verdicts[gate->gate.state]);
    json_close(out, '}');
}

static void add_json_absences(struct buf *out, const struct comparison *comparison, bool lost) {
    const char *between = "";
    json_open(out, lost ? "only_in_a" : "only_in_b", '[');
    for (size_t i = 0; i < comparison->n_absences; i++) {
        const struct compare_absence *absence = &comparison->absences[i];
        if (absence->lost != lost) {
            continue;
        }
        buf_printf(out, "%s\n", between);
        json_open(out, NULL, '{');
        between = ",";
        json_put_string(out, "target", absence->target);
        if (absence->measure != NULL) {
            json_put_string(out, "measure", absence->measure->name);
        }
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void add_json_difference(struct buf *out, const struct compare_difference *difference) {
    json_open(out, NULL, '{');
    json_put_string(out, "key", difference->key);
    json_put_string(out, "a", difference->a);
    json_put_string(out, "b", difference->b);
    json_put_bool(out, "matters", difference->matters);
    json_close(out, '}');
}

void compare_write_json(const struct comparison *comparison, struct buf *out) {
    json_open(out, NULL, '{');
    json_put_string(out, "format", "waap-compare/1");
    json_put_string(out, "a", comparison->a.name);
    json_put_string(out, "b", comparison->b.name);
    text_put_number(out, "threshold", comparison->threshold);
    text_put_number(out, "exit_code", compare_exit_code(comparison));
    json_open(out, "differences", '[');
    for (size_t i = 0; i < comparison->n_differences; i++) {
        buf_add_str(out, i == 0 ? "\n" : ",\n");
        add_json_difference(out, &comparison->differences[i]);
    }
    json_close(out, ']');
    json_open(out, "measures", '[');
    for (size_t i = 0; i < comparison->n_rows; i++) {
        buf_add_str(out, i == 0 ? "\n" : ",\n");
        add_json_row(out, &comparison->rows[i]);
    }
    json_close(out, ']');
    add_json_absences(out, comparison, true);
    add_json_absences(out, comparison, false);
    json_open(out, "gates", '[');
    for (size_t i = 0; i < comparison->n_gates; i++) {
        buf_add_str(out, i == 0 ? "\n" : ",\n");
        add_json_gate(out, &comparison->gates[i]);
    }
    buf_add_str(out, "]}\n");
}

/* ---- the command ---- */

enum { SUMMARY_MAX = 64 << 20 };

/* A share, as "5%" or "0.05". */
static int parse_threshold(const char *text, double *ret) {
    size_t len = strlen(text);
    bool percent = len > 0 && text[len - 1] == '%';
    if (number_parse(text, len - percent, ret) < 0 || !(*ret >= 0 && *ret < 1e6)) {
        return -EINVAL;
    }
    *ret /= percent ? 100 : 1;
    return 0;
}

static int check_threshold(const char *text, struct error *err) {
    double threshold;
    return parse_threshold(text, &threshold) == 0
               ? 0
               : error_set(err, -EINVAL, "expected a share, as 5%% or 0.05, got \"%s\"", text);
}

static const struct option options[] = {
    {"all", OPTION_BOOL,
     .help = "Also show measures that are neither good nor bad and did not change"},
    {"gate", OPTION_BOOL,
     .help =
         "Exit with 1 if B is worse, 3 if its application failed, 4 if board or power mode differ"},
    {"json", OPTION_BOOL, .help = "Print everything as JSON"},
    {"threshold", OPTION_STRING, .default_text = "5%", .check = check_threshold,
     .help = "Ignore smaller changes"},
    {0},
};

/* Computed from the record if there is one: summary.json might belong to another. */
static int read_directory(const char *path, struct buf *out, struct error *err) {
    char *record CLEANUP_FREE = file_path_join(path, "samples.jsonl");
    char *summary CLEANUP_FREE = file_path_join(path, "summary.json");
    if (access(record, F_OK) != 0) {
        return file_read_stored(summary, SUMMARY_MAX, out, err);
    }
    struct profile *profile CLEANUP_PROFILE = NULL;
    int r = profile_read(record, &profile, err);
    if (r == 0) {
        profile_write_summary(profile, out);
    }
    return r;
}

/* A side is a directory with samples.jsonl or summary.json, or a summary itself. */
static int read_side(const char *path, struct compare_side *ret_side, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    struct stat st;
    if (stat(path, &st) < 0) {
        return error_set(err, -errno, "%s: %m", path);
    }
    int r = S_ISDIR(st.st_mode) ? read_directory(path, &text, err)
                                : file_read_stored(path, SUMMARY_MAX, &text, err);
    return r < 0 ? r : compare_side_parse(path, buf_str(&text), text.len, ret_side, err);
}

static int run(struct flags *flags) {
    const struct settings *settings = flags->settings;
    struct comparison comparison CLEANUP_COMPARISON = {0};
    struct buf text CLEANUP_BUF = {0};
    struct error err = {0};
    parse_threshold(settings_string(settings, "threshold"), &comparison.threshold);
    int r = read_side(flags->words[0], &comparison.a, &err);
    r = r < 0 ? r : read_side(flags->words[1], &comparison.b, &err);
    r = r < 0 ? r : compare_make(&comparison, &err);
    if (r < 0) {
        fprintf(stderr, "waap compare: %s\n", err.text);
        return 2;
    }
    if (settings_bool(settings, "json")) {
        compare_write_json(&comparison, &text);
    } else {
        compare_write_text(&comparison, settings_bool(settings, "all"), isatty(STDOUT_FILENO),
                           &text);
    }
    if (fputs(buf_str(&text), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap compare: standard output");
        return 2;
    }
    return settings_bool(settings, "gate") ? compare_exit_code(&comparison) : 0;
}

int compare_main(int argc, char **argv) {
    static const char usage[] =
        "usage: waap compare A B [flags]\n\n"
        "Shows what changed from A to B: directories of waap run, or their summary.json.\n\n";
    struct flags flags CLEANUP_FLAGS;
    int code = flags_begin(&flags, usage, options, argc, argv);
    if (code >= 0) {
        return code;
    }
    if (flags.n_words != 2) {
        fprintf(stderr, "waap compare: expected two runs, A and B, got %zu\n", flags.n_words);
        return 2;
    }
    return run(&flags);
}
