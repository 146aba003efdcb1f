#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/analysis/report_text.h"
#include "profiler/report/bars.h"
#include "profiler/report/svg.h"

/* Plots over several targets. */

static bool find_headline(const struct result *result, const char *title, struct headline *ret) {
    struct headline headlines[MAX_HEADLINES];
    size_t n = headlines_find(&result->measures, headlines);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(headlines[i].title, title) == 0) {
            *ret = headlines[i];
            return true;
        }
    }
    return false;
}

static double value_of(const struct headline *headline) {
    return measure_stat(headline->measure, headline->stat);
}

/* Half the confidence interval of the runs; 0 for one run. */
static double margin_of(const struct headline *headline) {
    struct moments moments = moments_of(headline->measure->runs, headline->measure->n_runs);
    return moments.n > 1 ? moments_ci95(&moments) : 0;
}

static void begin_figure(struct buf *out, const char *title) {
    buf_add_str(out, "<figure class=\"card\"><figcaption>");
    text_add_escaped(out, title);
    buf_add_str(out, "</figcaption>");
}

/* ---- bars ---- */

enum { ROW = 22, BAR_FROM = 110, BAR_TO = 318 };

static void add_row(struct buf *out, const struct headline *headline, const char *target,
                    double top, double y) {
    enum { SHOWN = 17 };
    double value = value_of(headline), scale = top > 0 ? (BAR_TO - BAR_FROM) / top : 0;
    double margin = margin_of(headline);
    struct buf label CLEANUP_BUF = {0}, name CLEANUP_BUF = {0};
    text_add_human(&label, value, headline->measure->unit);
    size_t len = strlen(target);
    buf_printf(&name, "%s%s", len > SHOWN ? "…" : "", target + (len > SHOWN ? len - SHOWN : 0));
    svg_text(out, BAR_FROM - 8, y + 14, "end", "tick", buf_str(&name));
    buf_printf(out,
               "<rect class=\"bar\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"15\" rx=\"2\"/>",
               BAR_FROM, y + 2, fmax(value * scale, 0.5));
    if (margin > 0) {
        buf_printf(out, "<path class=\"whisker\" stroke=\"currentColor\" d=\"M%.1f %.1fH%.1f\"/>",
                   BAR_FROM + fmax(0, value - margin) * scale, y + 9.5,
                   BAR_FROM + fmin(value + margin, top * 1.05) * scale);
    }
    double end = fmin(value + margin, top * 1.05) * scale;
    svg_text(out, BAR_FROM + fmax(end, 0) + 6, y + 14, "start", "label", buf_str(&label));
}

static void add_bars(struct buf *out, const struct results *results, const char *title) {
    struct headline headline;
    double top = 0;
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        if (find_headline(&results->items[i], title, &headline)) {
            top = fmax(top, value_of(&headline));
            n++;
        }
    }
    begin_figure(out, title);
    buf_printf(out, "<svg class=\"plot bars\" role=\"img\" viewBox=\"0 0 %d %zu\"><title>",
               SVG_WIDTH, n * ROW + 4);
    text_add_escaped(out, title);
    buf_add_str(out, "</title>");
    size_t row = 0;
    for (size_t i = 0; i < results->n; i++) {
        if (find_headline(&results->items[i], title, &headline)) {
            add_row(out, &headline, results->items[i].target->name, top, (double)(row++ * ROW));
        }
    }
    buf_add_str(out, "</svg></figure>\n");
}

void report_comparison_write(const struct results *results, struct buf *out) {
    struct headline headlines[MAX_HEADLINES];
    size_t n = results->n > 1 ? headlines_find(&results->items[0].measures, headlines) : 0;
    for (size_t i = 0; i < n; i++) {
        add_bars(out, results, headlines[i].title);
    }
}

/* ---- sweeps ---- */

enum { MAX_SETTINGS = 64 };

/* The name of the one knob that has a number in every setting; NULL where there is no such. */
static const char *the_knob(const struct results *results) {
    const char *name = NULL;
    for (size_t i = 0; i < results->n; i++) {
        json_t *knobs = json_object_get(results->items[i].target->object, "knobs");
        void *first = json_object_iter(knobs);
        if (json_object_size(knobs) == 0) {
            continue;
        }
        if (json_object_size(knobs) > 1 || !json_is_number(json_object_iter_value(first)) ||
            (name != NULL && strcmp(name, json_object_iter_key(first)) != 0)) {
            return NULL;
        }
        name = json_object_iter_key(first);
    }
    return name;
}

static int compare_points(const void *a, const void *b) {
    const struct svg_point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static size_t find_settings(const struct results *results, const char *knob, const char *title,
                            struct svg_point points[MAX_SETTINGS], const char **ret_unit) {
    size_t n = 0;
    for (size_t i = 0; i < results->n && n < MAX_SETTINGS; i++) {
        const json_t *knobs = json_object_get(results->items[i].target->object, "knobs");
        struct headline headline;
        if (json_object_get(knobs, knob) != NULL &&
            find_headline(&results->items[i], title, &headline)) {
            double x = json_number_value(json_object_get(knobs, knob));
            points[n++] = (struct svg_point){x, value_of(&headline)};
            *ret_unit = headline.measure->unit;
        }
    }
    if (n > 0) {
        qsort(points, n, sizeof(*points), compare_points);
    }
    return n;
}

static void add_curve(struct buf *out, const struct results *results, const char *knob,
                      const char *title) {
    struct svg_point points[MAX_SETTINGS];
    const char *unit = "";
    size_t n = find_settings(results, knob, title, points, &unit);
    if (n < 2) {
        return;
    }
    struct svg_plot plot = {.out = out,
                            .x0 = points[0].x,
                            .x1 = points[n - 1].x,
                            .y0 = INFINITY,
                            .y1 = -INFINITY,
                            .unit = unit,
                            .x_unit = ""};
    for (size_t i = 0; i < n; i++) {
        plot.y0 = fmin(plot.y0, points[i].y);
        plot.y1 = fmax(plot.y1, points[i].y);
    }
    if (!svg_can_show(plot.x0, plot.x1) || !svg_can_show(plot.y0, plot.y1)) {
        return;
    }
    begin_figure(out, title);
    svg_begin(&plot, "plot curve", title, strcmp(unit, "celsius") != 0);
    svg_line(&plot, points, n, 0, false, title);
    for (size_t i = 0; i < n; i++) {
        struct buf label CLEANUP_BUF = {0};
        text_add_human(&label, points[i].y, unit);
        double x = svg_x(&plot, points[i].x), y = svg_y(&plot, points[i].y);
        buf_printf(out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>", x, y);
        text_add_escaped(out, knob);
        buf_printf(out, " = %.9g: ", points[i].x);
        text_add_escaped(out, buf_str(&label));
        buf_add_str(out, "</title></circle>");
    }
    svg_end(&plot);
    buf_add_str(out, "<p class=\"note axis\">");
    text_add_escaped(out, knob);
    buf_add_str(out, "</p></figure>\n");
}

void report_sweep_write(const struct results *results, struct buf *out) {
    struct headline headlines[MAX_HEADLINES];
    const char *knob = the_knob(results);
    size_t n = knob != NULL ? headlines_find(&results->items[0].measures, headlines) : 0;
    for (size_t i = 0; i < n; i++) {
        add_curve(out, results, knob, headlines[i].title);
    }
}
