#include "profiler/report/pages.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "profiler/analysis/report_text.h"
#include "profiler/report/plot.h"

static void add_cell(struct buf *out, const char *class, const char *text) {
    text_markup(out, "<td class=\"%s\">%s</td>", class, text);
}

static void add_value_cell(struct buf *out, double value, const char *unit) {
    add_cell(out, "n", text_human(value, unit).text);
}

/* A title that begins with '#' heads a column of numbers. */
static void begin_table(struct buf *out, const char *const *titles, size_t n) {
    buf_add_str(out, "<div class=\"wide\"><table><thead><tr>");
    for (size_t i = 0; i < n; i++) {
        bool number = titles[i][0] == '#';
        buf_printf(out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "",
                   titles[i] + number);
    }
    buf_add_str(out, "</tr></thead><tbody>\n");
}

static void end_table(struct buf *out) {
    buf_add_str(out, "</tbody></table></div>\n");
}

/* ---- table of gates ---- */

static void add_gate(struct buf *out, const char *target, const struct gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "kept", [GATE_FAILED] = "broken", [GATE_SKIPPED] = "needs a baseline"};
    static const char *const classes[] = {
        [GATE_OK] = "good", [GATE_FAILED] = "bad", [GATE_SKIPPED] = "quiet"};
    static const char *const signs[] = {
        [GATE_MAX] = "at most ",
        [GATE_MAX_DECREASE] = "falls by at most ",
        [GATE_MAX_INCREASE] = "grows by at most ",
        [GATE_MIN] = "at least ",
    };
    buf_add_str(out, "<tr>");
    add_cell(out, classes[gate->state], verdicts[gate->state]);
    add_cell(out, "", target);
    add_cell(out, "", gate->metric);
    if (isnan(gate->value)) {
        add_cell(out, "n", "not measured");
    } else {
        add_value_cell(out, gate->value, gate->unit);
    }
    text_markup(out, "<td>%s%s</td></tr>\n", signs[gate->kind],
                text_human(gate->limit, gate_is_relative(gate) ? "ratio" : gate->unit).text);
}

static void add_gates(const struct profile *profile, struct buf *out) {
    static const char *const titles[] = {"Gate", "Target", "Measure", "#Value", "Limit"};
    size_t n = 0;
    for (size_t i = 0; i < profile->n_targets; i++) {
        for (size_t j = 0; j < profile->targets[i].n_gates; j++) {
            if (n++ == 0) {
                buf_add_str(out, "<section id=\"gates\"><h2>Gates</h2>");
                begin_table(out, titles, ARRAY_LEN(titles));
            }
            add_gate(out, profile->targets[i].name, &profile->targets[i].gates[j]);
        }
    }
    if (n > 0) {
        end_table(out);
        buf_add_str(out, "</section>\n");
    }
}

/* ---- table of runs ---- */

static const struct {
    const char *title, *measure;
} run_columns[] = {
    {"#Wall time", "wall.seconds"}, {"#fps", "fps"},
    {"#CPU", "cpu.percent"},        {"#Peak memory", "memory.peak_bytes"},
    {"#Energy", "energy.joules"},   {"#Energy per frame", "energy_per_frame.joules"},
};

static void add_run(struct buf *out, const struct profile_target *target,
                    const struct profile_run *run) {
    struct buf outcome CLEANUP_BUF = {0};
    buf_printf(out, "<tr><th scope=\"row\">%u%s</th>", run->number,
               run->measured ? "" : ", warm-up");
    profile_run_outcome(run, &outcome);
    add_cell(out, profile_run_failed(run) ? "bad" : "", buf_str(&outcome));
    for (size_t i = 0; i < ARRAY_LEN(run_columns); i++) {
        const struct measure *measure = measures_find(&target->measures, run_columns[i].measure);
        if (measure != NULL) {
            add_value_cell(out, run->measured ? measure_of_run(measure, run->number) : NAN,
                           measure->unit);
        }
    }
    add_value_cell(out, (double)run->n_lost, "");
    buf_add_str(out, "</tr>\n");
}

static void add_runs(const struct profile_target *target, struct buf *out) {
    const char *titles[ARRAY_LEN(run_columns) + 3] = {"Run", "Outcome"};
    size_t n = 2;
    for (size_t i = 0; i < ARRAY_LEN(run_columns); i++) {
        if (measures_find(&target->measures, run_columns[i].measure) != NULL) {
            titles[n++] = run_columns[i].title;
        }
    }
    titles[n++] = "#Lost samples";
    begin_table(out, titles, n);
    for (size_t i = 0; i < target->n_runs; i++) {
        add_run(out, target, &target->runs[i]);
    }
    end_table(out);
}

/* ---- table of measures ---- */

static void add_measures(const struct profile_target *target, struct buf *out) {
    static const char *const titles[] = {"Measure", "#n",   "#mean",          "#sd",
                                         "#min",    "#p50", "#p90",           "#p95",
                                         "#p99",    "#max", "#runs differ by"};
    begin_table(out, titles, ARRAY_LEN(titles));
    for (size_t i = 0; i < target->measures.n; i++) {
        const struct measure *measure = &target->measures.items[i];
        struct moments moments = moments_of(measure->runs, measure->n_runs);
        text_markup(out, "<tr><th scope=\"row\">%s</th>", measure->name);
        add_value_cell(out, measure->n, "");
        for (size_t j = 0; j < N_MEASURE_STATS; j++) {
            add_value_cell(out, measure->stats[j], measure->unit);
        }
        add_cell(out, measure->unstable ? "n bad" : "n",
                 text_human(moments.n > 1 ? moments_cv(&moments) : NAN, "ratio").text);
        buf_add_str(out, "</tr>\n");
    }
    end_table(out);
}

/* ---- environment ---- */

/* Nested objects become paths: "clocks.gpu". */
static void add_facts(struct buf *out, const char *path, json_t *object, int depth) {
    enum { MAX_DEPTH = 4 };
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        struct buf name CLEANUP_BUF = {0};
        buf_printf(&name, "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        if (json_is_object(value) && depth < MAX_DEPTH) {
            add_facts(out, buf_str(&name), value, depth + 1);
            continue;
        }
        char *text CLEANUP_FREE = text_of_json(value);
        text_markup(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", buf_str(&name), text);
    }
}

static void add_environment(const struct profile *profile, struct buf *out) {
    json_t *run = profile->run;
    buf_add_str(out, "<section id=\"environment\"><h2>Environment</h2>\n<dl class=\"facts\">\n");
    add_facts(out, "", json_object_get(run, "environment"), 0);
    add_facts(out, "application", json_object_get(run, "application"), 0);
    add_facts(out, "settings", json_object_get(run, "settings"), 0);
    buf_add_str(out, "</dl></section>\n");
}

/* Points of all lines of a page; at about 11 bytes each the page stays well below a megabyte. */
enum { POINTS_PER_PAGE = 48000, CHARTS_PER_TARGET = 12 };

/* ---- top ---- */

static void add_pill(struct buf *out, const char *class, const char *text) {
    text_markup(out, "<span class=\"pill %s\">%s</span>\n", class, text);
}

static void add_verdict(struct buf *out, const struct profile *profile) {
    size_t failed = profile->n_failed_gates, unstable = 0;
    for (size_t i = 0; i < profile->n_targets; i++) {
        for (size_t j = 0; j < profile->targets[i].measures.n; j++) {
            unstable += profile->targets[i].measures.items[j].unstable;
        }
    }
    struct buf text CLEANUP_BUF = {0};
    if (profile->n_gates > 0) {
        buf_printf(&text, failed > 0 ? "%zu of %zu gates broken" : "all gates kept", failed,
                   profile->n_gates);
        add_pill(out, failed > 0 ? "bad" : "good", buf_str(&text));
    }
    if (profile->n_failed_runs > 0) {
        buf_reset(&text);
        buf_printf(&text, "%zu run%s failed", profile->n_failed_runs,
                   profile->n_failed_runs > 1 ? "s" : "");
        add_pill(out, "bad", buf_str(&text));
    }
    if (unstable > 0) {
        add_pill(out, "doubt", "runs do not agree");
    }
    if (!profile->finished || profile->interrupted) {
        add_pill(out, "doubt", profile->interrupted ? "interrupted" : "incomplete");
    }
}

static void add_header(struct buf *out, const struct profile *profile) {
    time_t began = (time_t)json_number_value(json_object_get(profile->run, "began"));
    struct tm tm;
    char when[32] = "";
    if (began > 0 && gmtime_r(&began, &tm) != NULL) {
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
    }
    const char *board = profile_text(profile, "environment", "board");
    const char *mode = profile_text(profile, "environment", "power_mode");
    text_markup(out, "<header><div class=\"name\"><h1>%s</h1><p>%s",
                profile_text(profile, "application", "name"),
                profile_text(profile, "application", "version"));
    const char *const parts[] = {when, board, mode};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i][0] != '\0') {
            text_markup(out, " · %s", parts[i]);
        }
    }
    buf_add_str(out, "</p></div><p class=\"pills\">\n");
    add_verdict(out, profile);
    buf_add_str(out, "</p></header>\n");
}

/* ---- a target ---- */

static void add_note(struct buf *out, const struct measure *measure) {
    const char *unit = measure->unit;
    buf_add_str(out, "<p class=\"note\">");
    if (isfinite(measure->p50)) {
        text_markup(out, "<span>p50 %s</span> <span>p99 %s</span>",
                    text_human(measure->p50, unit).text, text_human(measure->p99, unit).text);
    } else if (measure->n_runs > 1 && measure->min < measure->max) {
        text_markup(out, "<span>%s</span> to <span>%s</span>", text_human(measure->min, unit).text,
                    text_human(measure->max, unit).text);
    }
    buf_add_str(out, "</p>");
}

static void add_card(struct buf *out, const struct headline *headline) {
    const struct measure *measure = headline->measure;
    struct text_human value = text_human(measure->stats[headline->stat], measure->unit);
    char *unit = strchrnul(value.text, ' ');
    text_markup(out, "<div class=\"card%s\"><h3>%s</h3><p class=\"value\"><span class=\"number\">",
                measure->unstable ? " doubt" : "", headline->title);
    buf_add(out, value.text, (size_t)(unit - value.text));
    text_markup(out, "</span><span class=\"unit\">%s</span></p>", unit);
    add_note(out, measure);
    report_strip_write(measure, out);
    buf_add_str(out, "</div>\n");
}

/* The command as a user would type it. */
static void add_command(struct buf *out, const struct profile_target *target) {
    static const char *const keys[] = {"command", "args"};
    buf_add_str(out, "<p class=\"hint\"><code>");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *list = json_object_get(target->object, keys[i]);
        for (size_t j = 0; j < json_array_size(list); j++) {
            const char *word = json_string_value(json_array_get(list, j));
            text_markup(out, "%s ", word != NULL ? word : "");
        }
    }
    buf_add_str(out, "</code></p>\n");
}

static void add_spreads(struct buf *out, const struct headline *headlines, size_t n) {
    struct buf plots CLEANUP_BUF = {0};
    for (size_t i = 0; i < n; i++) {
        report_distribution_write(&headlines[i], &plots);
    }
    if (plots.len > 0) {
        buf_printf(out, "<h3>Distributions</h3><div class=\"grid plots\">%s</div>\n",
                   buf_str(&plots));
    }
}

static void add_target(struct buf *out, const struct profile *profile, size_t index) {
    const struct profile_target *target = &profile->targets[index];
    struct headline headlines[MAX_HEADLINES];
    size_t n = headlines_find(&target->measures, headlines);
    text_markup(out, "<section id=\"target-%zu\"><h2>%s</h2>", index, target->name);
    add_command(out, target);
    buf_add_str(out, "<div class=\"grid cards\">\n");
    for (size_t i = 0; i < n; i++) {
        add_card(out, &headlines[i]);
    }
    buf_add_str(out, "</div>\n<h3>Over time</h3><div class=\"grid plots\">\n");
    size_t points = POINTS_PER_PAGE / CHARTS_PER_TARGET / profile->n_targets;
    report_timelines_write(profile, target, points < 2000 ? points : 2000, out);
    buf_add_str(out, "</div>\n");
    add_spreads(out, headlines, n);
    buf_add_str(out, "<h3>Runs</h3>\n");
    add_runs(target, out);
    buf_add_str(out, "<details><summary>All measures</summary>\n");
    add_measures(target, out);
    buf_add_str(out, "</details></section>\n");
}

/* ---- the page ---- */

static void add_navigation(struct buf *out, const struct profile *profile) {
    if (profile->n_targets < 2) {
        return;
    }
    buf_add_str(out, "<nav aria-label=\"Targets\">");
    for (size_t i = 0; i < profile->n_targets; i++) {
        text_markup(out, "<a class=\"pill\" href=\"#target-%zu\">%s</a> ", i,
                    profile->targets[i].name);
    }
    buf_add_str(out, "</nav>\n");
}

void report_html_write(const struct profile *profile, struct buf *out) {
    buf_add_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    buf_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n",
               report_policy);
    text_markup(out,
                "<title>%s – waap</title>\n<meta name=\"viewport\" content=\"width=device-width, "
                "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n",
                profile_text(profile, "application", "name"));
    buf_printf(out, "<link rel=\"icon\" href=\"data:,\">\n<style>%s</style>\n</head>\n<body>\n",
               report_css);
    add_header(out, profile);
    add_navigation(out, profile);
    buf_add_str(out, "<main>\n");
    add_gates(profile, out);
    report_targets_write(profile, out);
    for (size_t i = 0; i < profile->n_targets; i++) {
        add_target(out, profile, i);
    }
    add_environment(profile, out);
    buf_add_str(out, "</main>\n<footer><p>Made from samples.jsonl by waap report.</p></footer>\n");
    buf_printf(out, "<script>%s</script>\n</body>\n</html>\n", report_js);
}
