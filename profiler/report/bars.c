#include "profiler/report/bars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/analysis/report_text.h"
#include "profiler/report/svg.h"

/* ---- what comes first ---- */

static const struct {
    const char *name;
    const char *title;
    const char *stat;
} known[] = {
    {"cpu.percent", "CPU", "mean"},
    {"memory.peak_bytes", "Peak memory", "max"},
    {"gpu.utilization_ratio", "GPU", "mean"},
    {"gpu.memory_bytes", "GPU memory", "max"},
    {"power.watts", "Power", "mean"},
    {"energy_per_frame.joules", "Energy per frame, net", "mean"},
    {"energy.joules", "Energy", "mean"},
    {"temperature.celsius", "Temperature, highest", "max"},
    {"wall.seconds", "Wall time", "mean"},
};

static const struct measure_stat *stat_named(const char *name) {
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        if (strcmp(measure_stats[i].name, name) == 0) {
            return &measure_stats[i];
        }
    }
    return &measure_stats[0];
}

static size_t add_headline(struct headline *to, size_t n, const struct measure *measure,
                           const char *title, const char *stat) {
    if (measure == NULL || n == MAX_HEADLINES) {
        return n;
    }
    to[n].measure = measure;
    to[n].stat = stat_named(stat);
    snprintf(to[n].title, sizeof(to[n].title), "%s", title);
    return n + 1;
}

/* Of several with the same name and different labels, the one with the highest value. */
static const struct measure *highest(const struct measures *measures, const char *name) {
    const struct measure *found = NULL;
    size_t len = strlen(name);
    for (size_t i = 0; i < measures->n; i++) {
        const struct measure *measure = &measures->items[i];
        bool is = strncmp(measure->name, name, len) == 0 &&
                  (measure->name[len] == '\0' || measure->name[len] == '{');
        if (is && (found == NULL || measure->max > found->max)) {
            found = measure;
        }
    }
    return found;
}

/* The application's own: rates, then times. Names of ours have a dot before any label. */
static size_t add_app(const struct measures *measures, struct headline *to, size_t n, bool rates) {
    enum { MAX_APP = 4 };
    for (size_t i = 0; i < measures->n && n < MAX_APP; i++) {
        const struct measure *measure = &measures->items[i];
        bool own = measure->name[strcspn(measure->name, ".{")] == '.';
        bool rate = strcmp(measure->unit, "/s") == 0 && measure->better == BETTER_HIGHER;
        bool time = strcmp(measure->unit, "s") == 0 && measure->spread != NULL;
        if (!own && (rates ? rate : time)) {
            n = add_headline(to, n, measure, measure->name, rate ? "mean" : "p95");
            if (!rate) {
                strncat(to[n - 1].title, ", p95", sizeof(to->title) - strlen(to[n - 1].title) - 1);
            }
        }
    }
    return n;
}

size_t headlines_find(const struct measures *measures, struct headline ret[MAX_HEADLINES]) {
    size_t n = add_app(measures, ret, 0, true);
    n = add_app(measures, ret, n, false);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        n = add_headline(ret, n, highest(measures, known[i].name), known[i].title, known[i].stat);
    }
    return n;
}

/* ---- distributions ---- */

struct bar {
    double from, to, height;
};

enum { BARS = 40 };

/* Equal widths over the range of all values. */
static size_t bars_of_values(const struct measure *measure, struct bar bars[BARS]) {
    double low = measure->min, width = (measure->max - low) / BARS;
    for (size_t i = 0; i < BARS; i++) {
        bars[i] = (struct bar){low + (double)i * width, low + (double)(i + 1) * width, 0};
    }
    for (size_t i = 0; i < measure->n_spread; i++) {
        double place = (measure->spread[i].value - low) / width;
        bars[(size_t)fmin(fmax(0, place), BARS - 1)].height += measure->spread[i].weight;
    }
    return BARS;
}

/* A bar per bucket, as high as it is dense; without the empty ones at both ends. */
static size_t bars_of_buckets(const struct measure *measure, struct bar bars[BARS]) {
    size_t n = 0;
    for (size_t i = 0; i < measure->n_spread && n < BARS; i++) {
        double from = i > 0 ? measure->spread[i - 1].value : fmin(0, measure->spread[0].value);
        double width = measure->spread[i].value - from;
        bars[n] = (struct bar){from, measure->spread[i].value,
                               width > 0 ? fmax(0, measure->spread[i].weight / width) : 0};
        n += n > 0 || bars[n].height > 0;
    }
    while (n > 0 && bars[n - 1].height == 0) {
        n--;
    }
    return n;
}

static void add_marks(struct svg_plot *plot, const struct measure *measure) {
    const struct {
        const char *name;
        double value;
    } marks[] = {{"p50", measure->p50}, {"p95", measure->p95}, {"p99", measure->p99}};
    double last = -INFINITY;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (!isfinite(marks[i].value) || marks[i].value > plot->x1) {
            continue;
        }
        double x = svg_x(plot, marks[i].value);
        buf_printf(plot->out, "<path class=\"mark\" stroke=\"currentColor\" d=\"M%.1f %dV%.1f\"/>",
                   x, SVG_TOP, plot->height - SVG_BOTTOM);
        if (x - last > 24) {
            svg_text(plot->out, x, SVG_TOP - 3, "middle", "phase-name", marks[i].name);
            last = x;
        }
    }
}

/* The scale below is in the measure's unit, with the prefix that suits the largest value. */
static void add_scale(struct svg_plot *plot, const char *unit) {
    struct svg_ticks ticks = svg_ticks(plot->x0, plot->x1, 5);
    for (int i = 0; i < ticks.n; i++) {
        struct buf label CLEANUP_BUF = {0};
        double value = ticks.first + i * ticks.step, x = svg_x(plot, value);
        text_add_human(&label, fabs(value) < ticks.step / 2 ? 0 : value, unit);
        if (x < SVG_WIDTH - SVG_RIGHT - 20) {
            svg_text(plot->out, x, plot->height - 6, "middle", "tick", buf_str(&label));
        }
    }
}

/* Whether the values differ by more than their rounding. */
static bool is_spread(const struct measure *measure) {
    if (measure->spread == NULL || measure->bucketed) {
        return measure->spread != NULL;
    }
    double size = fmax(fabs(measure->min), fabs(measure->max));
    return measure->max - measure->min > size * 1e-6 && svg_can_show(measure->min, measure->max);
}

void report_distribution_write(const struct headline *headline, struct buf *out) {
    const struct measure *measure = headline->measure;
    struct bar bars[BARS];
    if (!is_spread(measure)) {
        return;
    }
    size_t n = measure->bucketed ? bars_of_buckets(measure, bars) : bars_of_values(measure, bars);
    if (n == 0) {
        return;
    }
    struct svg_plot plot = {.out = out,
                            .x0 = bars[0].from,
                            .x1 = bars[n - 1].to,
                            .y0 = 0,
                            .y1 = 0,
                            .unit = "",
                            .x_unit = "",
                            .height = 130};
    for (size_t i = 0; i < n; i++) {
        plot.y1 = fmax(plot.y1, bars[i].height);
    }
    if (!(plot.y1 > 0) || !svg_can_show(plot.y0, plot.y1)) {
        return;
    }
    buf_add_str(out, "<figure class=\"card\"><figcaption>");
    text_add_escaped(out, measure->name);
    buf_add_str(out, "</figcaption><svg class=\"plot spread\" role=\"img\" ");
    buf_printf(out, "viewBox=\"0 0 %d %.0f\"><title>", SVG_WIDTH, plot.height);
    text_add_escaped(out, measure->name);
    buf_add_str(out, "</title>");
    for (size_t i = 0; i < n; i++) {
        double from = svg_x(&plot, bars[i].from), to = svg_x(&plot, bars[i].to);
        double top = svg_y(&plot, bars[i].height);
        buf_printf(out,
                   "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                   from + 0.5, top, fmax(0.5, to - from - 1), svg_y(&plot, 0) - top);
    }
    add_marks(&plot, measure);
    add_scale(&plot, measure->unit);
    buf_add_str(out, "</svg></figure>\n");
}

/* ---- runs of one measure ---- */

void report_strip_write(const struct headline *headline, struct buf *out) {
    enum { WIDTH = 200, HEIGHT = 18 };
    const struct measure *measure = headline->measure;
    if (measure->n_runs < 2) {
        return;
    }
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    double half = fmax((moments.max - moments.min) / 1.6, fabs(moments.mean) * 0.05);
    half = half > 0 ? half : 1;
    double ci = fmin(moments_ci95(&moments), half);
    buf_printf(out,
               "<svg class=\"strip\" viewBox=\"0 0 %d %d\" role=\"img\"><title>%zu runs, from ",
               WIDTH, HEIGHT, measure->n_runs);
    text_add_human(out, moments.min, measure->unit);
    buf_add_str(out, " to ");
    text_add_human(out, moments.max, measure->unit);
    buf_printf(out, "</title><path class=\"rule\" stroke=\"#ccc\" d=\"M0 %dH%d\"/>", HEIGHT / 2,
               WIDTH);
    buf_printf(out,
               "<rect class=\"ci\" x=\"%.1f\" y=\"3\" width=\"%.1f\" height=\"%d\" rx=\"3\" "
               "fill-opacity=\"0.15\"/>",
               (1 - ci / half) * WIDTH / 2, ci / half * WIDTH, HEIGHT - 6);
    for (size_t i = 0; i < measure->n_runs; i++) {
        buf_printf(out,
                   "<circle class=\"dot\" cx=\"%.1f\" cy=\"%d\" r=\"3\" fill-opacity=\"0.7\"/>",
                   (1 + (measure->runs[i] - moments.mean) / half * 0.96) * WIDTH / 2, HEIGHT / 2);
    }
    buf_add_str(out, "</svg>");
}
