#include "profiler/report/html.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "profiler/analysis/report_text.h"
#include "profiler/report/bars.h"
#include "profiler/report/files.h"
#include "profiler/report/tables.h"
#include "profiler/report/timeline.h"

/* Points of all lines of a page: about 11 bytes each keep it well below a megabyte. */
enum { POINTS_PER_PAGE = 48000, CHARTS_PER_TARGET = 12 };

/* ---- top ---- */

static void add_pill(struct buf *out, const char *class, const char *text) {
    buf_printf(out, "<span class=\"pill %s\">", class);
    text_add_escaped(out, text);
    buf_add_str(out, "</span>\n");
}

static void add_verdict(struct buf *out, const struct results *results) {
    size_t gates = 0, broken = 0, failed = 0, unsettled = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct result *result = &results->items[i];
        failed += result->n_failed_runs;
        for (size_t j = 0; j < result->n_gates; j++) {
            gates += result->gates[j].state != GATE_SKIPPED;
            broken += result->gates[j].state == GATE_FAILED;
        }
        for (size_t j = 0; j < result->measures.n; j++) {
            unsettled += result->measures.items[j].unsettled;
        }
    }
    struct buf text CLEANUP_BUF = {0};
    if (gates > 0) {
        buf_printf(&text, broken > 0 ? "%zu of %zu gates broken" : "all gates kept", broken, gates);
        add_pill(out, broken > 0 ? "bad" : "good", buf_str(&text));
    }
    if (failed > 0) {
        buf_reset(&text);
        buf_printf(&text, "%zu run%s failed", failed, failed > 1 ? "s" : "");
        add_pill(out, "bad", buf_str(&text));
    }
    if (unsettled > 0) {
        add_pill(out, "doubt", "runs do not agree");
    }
    if (!results->profile->finished || results->profile->interrupted) {
        add_pill(out, "doubt", results->profile->interrupted ? "interrupted" : "incomplete");
    }
}

static void add_header(struct buf *out, const struct results *results) {
    const struct profile *profile = results->profile;
    time_t began = (time_t)json_number_value(json_object_get(profile->run, "began"));
    struct tm tm;
    char when[32] = "";
    if (began > 0 && gmtime_r(&began, &tm) != NULL) {
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
    }
    const char *board = results_text(results, "environment", "board");
    const char *mode = results_text(results, "environment", "power_mode");
    buf_add_str(out, "<header><div class=\"name\"><h1>");
    text_add_escaped(out, results_text(results, "application", "name"));
    buf_add_str(out, "</h1><p>");
    text_add_escaped(out, results_text(results, "application", "version"));
    const char *const parts[] = {when, board, mode};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i][0] != '\0') {
            buf_add_str(out, " · ");
            text_add_escaped(out, parts[i]);
        }
    }
    buf_add_str(out, "</p></div><p class=\"pills\">\n");
    add_verdict(out, results);
    buf_add_str(out, "</p></header>\n");
}

/* ---- a target ---- */

static void add_note(struct buf *out, const struct headline *headline) {
    const struct measure *measure = headline->measure;
    buf_add_str(out, "<p class=\"note\">");
    if (isfinite(measure->p50)) {
        buf_add_str(out, "<span>p50 ");
        text_add_human(out, measure->p50, measure->unit);
        buf_add_str(out, "</span> <span>p99 ");
        text_add_human(out, measure->p99, measure->unit);
        buf_add_str(out, "</span>");
    } else if (measure->n_runs > 1 && measure->min < measure->max) {
        buf_add_str(out, "<span>");
        text_add_human(out, measure->min, measure->unit);
        buf_add_str(out, "</span> to <span>");
        text_add_human(out, measure->max, measure->unit);
        buf_add_str(out, "</span>");
    }
    buf_add_str(out, "</p>");
}

static void add_card(struct buf *out, const struct headline *headline) {
    struct buf value CLEANUP_BUF = {0};
    text_add_human(&value, measure_stat(headline->measure, headline->stat),
                   headline->measure->unit);
    size_t digits = strcspn(buf_str(&value), " ");
    buf_printf(out, "<div class=\"card%s\"><h3>", headline->measure->unsettled ? " doubt" : "");
    text_add_escaped(out, headline->title);
    buf_printf(out,
               "</h3><p class=\"value\"><span class=\"number\">%.*s</span><span class=\"unit\">",
               (int)digits, buf_str(&value));
    text_add_escaped(out, buf_str(&value) + digits);
    buf_add_str(out, "</span></p>");
    add_note(out, headline);
    report_strip_write(headline, out);
    buf_add_str(out, "</div>\n");
}

/* What was started, in words of a shell's reader. */
static void add_command(struct buf *out, const struct profile_target *target) {
    static const char *const keys[] = {"command", "args"};
    buf_add_str(out, "<p class=\"hint\"><code>");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *list = json_object_get(target->object, keys[i]);
        for (size_t j = 0; j < json_array_size(list); j++) {
            const char *word = json_string_value(json_array_get(list, j));
            text_add_escaped(out, word != NULL ? word : "");
            buf_add_char(out, ' ');
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

static void add_target(struct buf *out, const struct results *results, size_t index) {
    const struct result *result = &results->items[index];
    struct headline headlines[MAX_HEADLINES];
    size_t n = headlines_find(&result->measures, headlines);
    buf_printf(out, "<section id=\"target-%zu\"><h2>", index);
    text_add_escaped(out, result->target->name);
    buf_add_str(out, "</h2>");
    add_command(out, result->target);
    buf_add_str(out, "<div class=\"grid cards\">\n");
    for (size_t i = 0; i < n; i++) {
        add_card(out, &headlines[i]);
    }
    buf_add_str(out, "</div>\n<h3>Over time</h3><div class=\"grid plots\">\n");
    size_t points = POINTS_PER_PAGE / CHARTS_PER_TARGET / results->n;
    report_timelines_write(results, result, points < 2000 ? points : 2000, out);
    buf_add_str(out, "</div>\n");
    add_spreads(out, headlines, n);
    buf_add_str(out, "<h3>Runs</h3>\n");
    report_runs_write(result, out);
    buf_add_str(out, "<details><summary>All measures</summary>\n");
    report_measures_write(result, out);
    buf_add_str(out, "</details></section>\n");
}

/* ---- the page ---- */

static void add_section(struct buf *out, const char *id, const char *title,
                        void (*write)(const struct results *results, struct buf *out),
                        const struct results *results) {
    struct buf content CLEANUP_BUF = {0};
    write(results, &content);
    if (content.len > 0) {
        buf_printf(out, "<section id=\"%s\"><h2>%s</h2><div class=\"grid plots\">\n", id, title);
        buf_add(out, content.data, content.len);
        buf_add_str(out, "</div></section>\n");
    }
}

static void add_navigation(struct buf *out, const struct results *results) {
    if (results->n < 2) {
        return;
    }
    buf_add_str(out, "<nav aria-label=\"Targets\">");
    for (size_t i = 0; i < results->n; i++) {
        buf_printf(out, "<a class=\"pill\" href=\"#target-%zu\">", i);
        text_add_escaped(out, results->items[i].target->name);
        buf_add_str(out, "</a> ");
    }
    buf_add_str(out, "</nav>\n");
}

void report_html_write(const struct results *results, struct buf *out) {
    buf_add_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    buf_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n<title>",
               report_policy);
    text_add_escaped(out, results_text(results, "application", "name"));
    buf_add_str(out, " – waap</title>\n<meta name=\"viewport\" content=\"width=device-width, "
                     "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n");
    buf_printf(out, "<link rel=\"icon\" href=\"data:,\">\n<style>%s</style>\n</head>\n<body>\n",
               report_css);
    add_header(out, results);
    add_navigation(out, results);
    buf_add_str(out, "<main>\n");
    report_gates_write(results, out);
    add_section(out, "sweep", "Sweep", report_sweep_write, results);
    if (!results_is_sweep(results)) {
        add_section(out, "comparison", "Targets compared", report_comparison_write, results);
    }
    for (size_t i = 0; i < results->n; i++) {
        add_target(out, results, i);
    }
    report_environment_write(results, out);
    buf_add_str(out, "</main>\n<footer><p>Made from samples.jsonl by waap report.</p></footer>\n");
    buf_printf(out, "<script>%s</script>\n</body>\n</html>\n", report_js);
}
