#include "profiler/report/plot.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/analysis/report_text.h"

/* A round step that divides `range` into about `parts`. */
static double round_step(double range, double parts) {
    double raw = range / parts;
    if (!(raw > 0) || !isfinite(raw)) {
        return 1;
    }
    double power = pow(10, floor(log10(raw)));
    double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

bool svg_can_show(double from, double to) {
    const double large = 1e300, small = 1e-300;
    return fabs(from) < large && fabs(to) < large && (from == to || fabs(to - from) > small) &&
           (to == 0 || fabs(to) > small);
}

/* Round numbers from `from` to `to`, about `parts` of them. */
struct ticks {
    double first, step;
    int n;
};

static struct ticks find_ticks(double from, double to, double parts) {
    enum { MANY = 50 };
    double step = round_step(to - from, parts);
    double first = ceil(from / step - 1e-9), last = floor(to / step + 1e-9);
    double n = fmax(0, last - first + 1);
    return (struct ticks){first * step, step, isfinite(n) && n < MANY ? (int)n : 0};
}

double svg_x(const struct svg_plot *plot, double x) {
    double share = (x - plot->x0) / (plot->x1 - plot->x0);
    return SVG_LEFT + share * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}

static double svg_y(const struct svg_plot *plot, double y) {
    double share = (y - plot->y0) / (plot->y1 - plot->y0);
    return plot->height - SVG_BOTTOM - share * (plot->height - SVG_TOP - SVG_BOTTOM);
}

void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text) {
    text_markup(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>", x, y,
                anchor, class, text);
}

void svg_begin_figure(struct buf *out, const char *title) {
    text_markup(out, "<figure class=\"card\"><figcaption>%s</figcaption>", title);
}

/* Memory has rules at powers of two: at 256 MiB, not at 250000000. */
static double step_of(double range, double parts, const char *unit) {
    if (strcmp(unit, "B") != 0 || !(range > 0)) {
        return round_step(range, parts);
    }
    double step = exp2(round(log2(range / parts)));
    return step >= 1 ? step : 1;
}

static void open_range(struct svg_plot *plot, bool from_zero) {
    if (from_zero) {
        plot->y0 = fmin(plot->y0, 0);
        plot->y1 = fmax(plot->y1, 0);
    }
    if (plot->y1 - plot->y0 <= 0) {
        plot->y1 = plot->y0 + (plot->y0 != 0 ? fabs(plot->y0) : 1);
    }
    double step = step_of(plot->y1 - plot->y0, 3, plot->unit);
    plot->step = step;
    plot->y0 = floor(plot->y0 / step + 1e-9) * step;
    plot->y1 = ceil(plot->y1 / step - 1e-9) * step;
    if (plot->x1 - plot->x0 <= 0) {
        plot->x1 = plot->x0 + 1;
    }
}

static void add_y_rules(struct svg_plot *plot) {
    double step = plot->step;
    double n = round((plot->y1 - plot->y0) / step);
    for (int i = 0; n < 50 && i <= n; i++) {
        double value = plot->y0 + i * step, y = svg_y(plot, value);
        value = fabs(value) < step * 1e-6 ? 0 : value;
        buf_printf(plot->out, "<path class=\"rule\" stroke=\"#ccc\" d=\"M%d %.1fH%d\"/>", SVG_LEFT,
                   y, SVG_WIDTH - SVG_RIGHT);
        svg_text(plot->out, SVG_LEFT - 6, y + 3.5, "end", "tick",
                 text_human(value, plot->unit).text);
    }
}

static bool in_minutes(const struct svg_plot *plot) {
    return strcmp(plot->x_unit, "s") == 0 && plot->x1 - plot->x0 > 240;
}

static void add_x_labels(struct svg_plot *plot) {
    double unit = in_minutes(plot) ? 60 : 1;
    const char *name = in_minutes(plot) ? "min" : plot->x_unit;
    struct ticks ticks = find_ticks(plot->x0 / unit, plot->x1 / unit, 5);
    for (int i = 0; i < ticks.n; i++) {
        double value = ticks.first + i * ticks.step, x = svg_x(plot, value * unit);
        struct buf label CLEANUP_BUF = {0};
        buf_printf(&label, "%.6g", fabs(value) < ticks.step / 2 ? 0 : value);
        if (fabs(value) < ticks.step / 2 || i + 1 == ticks.n) {
            buf_printf(&label, "%s%s", name[0] != '\0' ? " " : "", name);
        }
        bool at_edge = x > SVG_WIDTH - SVG_RIGHT - 14;
        svg_text(plot->out, at_edge ? SVG_WIDTH - 2 : x, plot->height - 6,
                 at_edge ? "end" : "middle", "tick", buf_str(&label));
    }
}

void svg_begin(struct svg_plot *plot, const char *kind, const char *title, bool from_zero) {
    plot->height = plot->height > 0 ? plot->height : SVG_HEIGHT;
    open_range(plot, from_zero);
    buf_printf(plot->out, "<svg class=\"%s\" viewBox=\"0 0 %d %.0f\" role=\"img\"", kind, SVG_WIDTH,
               plot->height);
    buf_printf(plot->out, " data-x=\"%d %.9g %d %.9g\" data-y=\"%.1f %.9g %.1f %.9g\"", SVG_LEFT,
               plot->x0, SVG_WIDTH - SVG_RIGHT, plot->x1, svg_y(plot, plot->y0), plot->y0,
               svg_y(plot, plot->y1), plot->y1);
    text_markup(plot->out, " data-unit=\"%s\"><title>%s</title>", plot->unit, title);
    add_y_rules(plot);
    add_x_labels(plot);
}

void svg_line(struct svg_plot *plot, const struct svg_point *points, size_t n, size_t colour,
              bool faint, const char *name) {
    enum { COLOURS = 8 };
    text_markup(
        plot->out,
        "<path class=\"line c%zu%s\" fill=\"none\" stroke=\"currentColor\" data-name=\"%s\" "
        "d=\"",
        colour % COLOURS, faint ? " faint" : "", name);
    char command = 'M';
    for (size_t i = 0; i < n; i++) {
        double x = svg_x(plot, points[i].x), y = svg_y(plot, points[i].y);
        if (isfinite(x) && isfinite(y)) {
            buf_printf(plot->out, "%c%.1f %.1f", command, x, y);
            command = 'L';
        }
    }
    buf_add_str(plot->out, "\"/>");
}

/* ---- headline measures ---- */

enum { MAX_APP = 4 };

static const struct {
    const char *name, *title;
    enum measure_stat stat;
} known[] = {
    {"cpu.percent", "CPU", STAT_MEAN},
    {"memory.peak_bytes", "Peak memory", STAT_MAX},
    {"gpu.utilization_ratio", "GPU", STAT_MEAN},
    {"gpu.memory_bytes", "GPU memory", STAT_MAX},
    {RECORD_NEW_GPU_MEMORY, "New GPU memory", STAT_MAX},
    {"power.watts", "Power", STAT_MEAN},
    {"energy_per_frame.joules", "Energy per frame, net", STAT_MEAN},
    {"energy.joules", "Energy", STAT_MEAN},
    {"temperature.celsius", "Temperature, highest", STAT_MAX},
    {"wall.seconds", "Wall time", STAT_MEAN},
};

/* Of several measures with the same name, the one with the highest value. */
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

/* Adds the rates or times of the application: only our own names have a dot before the labels. */
static size_t add_app(const struct measures *measures, struct headline *to, size_t n, bool rates) {
    for (size_t i = 0; i < measures->n && n < MAX_APP; i++) {
        const struct measure *measure = &measures->items[i];
        bool own = measure->name[strcspn(measure->name, ".{")] == '.';
        bool rate = strcmp(measure->unit, "/s") == 0 && measure->better == BETTER_HIGHER;
        bool time = strcmp(measure->unit, "s") == 0 && measure->spread != NULL;
        if (!own && (rates ? rate : time)) {
            to[n] = (struct headline){.measure = measure, .stat = rate ? STAT_MEAN : STAT_P95};
            snprintf(to[n++].title, sizeof(to->title), "%s%s", measure->name, rate ? "" : ", p95");
        }
    }
    return n;
}

_Static_assert(MAX_APP + ARRAY_LEN(known) <= MAX_HEADLINES, "too few headlines");

size_t headlines_find(const struct measures *measures, struct headline ret[MAX_HEADLINES]) {
    size_t n = add_app(measures, ret, 0, true);
    n = add_app(measures, ret, n, false);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const struct measure *measure = highest(measures, known[i].name);
        if (measure != NULL) {
            ret[n] = (struct headline){.measure = measure, .stat = known[i].stat};
            bool of_machine = strstr(measure->name, RECORD_OF_MACHINE) != NULL;
            snprintf(ret[n++].title, sizeof(ret->title), "%s%s", known[i].title,
                     of_machine ? ", of the machine" : "");
        }
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

/* A bar per bucket, as high as its density, without the empty ones at both ends. */
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

/* The labels of the x axis, in the measure's unit. */
static void add_scale(struct svg_plot *plot, const char *unit) {
    struct ticks ticks = find_ticks(plot->x0, plot->x1, 5);
    for (int i = 0; i < ticks.n; i++) {
        double value = ticks.first + i * ticks.step, x = svg_x(plot, value);
        value = fabs(value) < ticks.step / 2 ? 0 : value;
        if (x < SVG_WIDTH - SVG_RIGHT - 20) {
            svg_text(plot->out, x, plot->height - 6, "middle", "tick",
                     text_human(value, unit).text);
        }
    }
}

/* Whether the values differ by more than rounding errors. */
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
    size_t n = !is_spread(measure) ? 0
               : measure->bucketed ? bars_of_buckets(measure, bars)
                                   : bars_of_values(measure, bars);
    if (n == 0) {
        return;
    }
    struct svg_plot plot = {.out = out, .x0 = bars[0].from, .x1 = bars[n - 1].to, .height = 130};
    for (size_t i = 0; i < n; i++) {
        plot.y1 = fmax(plot.y1, bars[i].height);
    }
    if (!(plot.y1 > 0) || !svg_can_show(plot.y0, plot.y1)) {
        return;
    }
    svg_begin_figure(out, measure->name);
    text_markup(out,
                "<svg class=\"plot spread\" role=\"img\" viewBox=\"0 0 %d %.0f\"><title>%s</title>",
                SVG_WIDTH, plot.height, measure->name);
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

void report_strip_write(const struct measure *measure, struct buf *out) {
    enum { WIDTH = 200, HEIGHT = 18 };
    if (measure->n_runs < 2) {
        return;
    }
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    double half = fmax((moments.max - moments.min) / 1.6, fabs(moments.mean) * 0.05);
    half = half > 0 ? half : 1;
    double ci = fmin(moments_ci95(&moments), half);
    text_markup(
        out,
        "<svg class=\"strip\" viewBox=\"0 0 %d %d\" role=\"img\"><title>%zu runs, from %s to "
        "%s</title><path class=\"rule\" stroke=\"#ccc\" d=\"M0 %dH%d\"/>",
        WIDTH, HEIGHT, measure->n_runs, text_human(moments.min, measure->unit).text,
        text_human(moments.max, measure->unit).text, HEIGHT / 2, WIDTH);
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

/* ---- plots over several targets ---- */

static bool find_headline(const struct profile_target *target, const char *title,
                          struct headline *ret) {
    struct headline headlines[MAX_HEADLINES];
    size_t n = headlines_find(&target->measures, headlines);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(headlines[i].title, title) == 0) {
            *ret = headlines[i];
            return true;
        }
    }
    return false;
}

static double value_of(const struct headline *headline) {
    return headline->measure->stats[headline->stat];
}

enum { ROW = 22, BAR_FROM = 110, BAR_TO = 318 };

static void add_row(struct buf *out, const struct headline *headline, const char *target,
                    double top, double y) {
    enum { SHOWN = 17 };
    double value = value_of(headline), scale = top > 0 ? (BAR_TO - BAR_FROM) / top : 0;
    struct moments moments = moments_of(headline->measure->runs, headline->measure->n_runs);
    double margin = moments.n > 1 ? moments_ci95(&moments) : 0;
    double end = fmin(value + margin, top * 1.05) * scale;
    struct buf name CLEANUP_BUF = {0};
    size_t len = strlen(target);
    buf_printf(&name, "%s%s", len > SHOWN ? "…" : "", target + (len > SHOWN ? len - SHOWN : 0));
    svg_text(out, BAR_FROM - 8, y + 14, "end", "tick", buf_str(&name));
    buf_printf(out,
               "<rect class=\"bar\" x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"15\" rx=\"2\"/>",
               BAR_FROM, y + 2, fmax(value * scale, 0.5));
    if (margin > 0) {
        buf_printf(out, "<path class=\"whisker\" stroke=\"currentColor\" d=\"M%.1f %.1fH%.1f\"/>",
                   BAR_FROM + fmax(0, value - margin) * scale, y + 9.5, BAR_FROM + end);
    }
    svg_text(out, BAR_FROM + fmax(end, 0) + 6, y + 14, "start", "label",
             text_human(value, headline->measure->unit).text);
}

static void add_bars(struct buf *out, const struct profile *profile, const char *title) {
    struct headline headline;
    double top = 0;
    size_t n = 0;
    for (size_t i = 0; i < profile->n_targets; i++) {
        if (find_headline(&profile->targets[i], title, &headline)) {
            top = fmax(top, value_of(&headline));
            n++;
        }
    }
    svg_begin_figure(out, title);
    text_markup(out,
                "<svg class=\"plot bars\" role=\"img\" viewBox=\"0 0 %d %zu\"><title>%s</title>",
                SVG_WIDTH, n * ROW + 4, title);
    size_t row = 0;
    for (size_t i = 0; i < profile->n_targets; i++) {
        if (find_headline(&profile->targets[i], title, &headline)) {
            add_row(out, &headline, profile->targets[i].name, top, (double)(row++ * ROW));
        }
    }
    buf_add_str(out, "</svg></figure>\n");
}

/* ---- sweeps ---- */

enum { MAX_SETTINGS = 64 };

/* The name of the one numeric knob of a sweep; "" for other sweeps, NULL if there is none. */
static const char *swept_knob(const struct profile *profile) {
    const char *name = NULL;
    for (size_t i = 0; i < profile->n_targets; i++) {
        json_t *knobs = json_object_get(profile->targets[i].object, "knobs");
        void *first = json_object_iter(knobs);
        if (first == NULL) {
            continue;
        }
        const char *key = json_object_iter_key(first);
        if (json_object_size(knobs) > 1 || !json_is_number(json_object_iter_value(first)) ||
            (name != NULL && strcmp(name, key) != 0)) {
            return "";
        }
        name = key;
    }
    return name;
}

static int compare_points(const void *a, const void *b) {
    const struct svg_point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static size_t find_settings(const struct profile *profile, const char *knob, const char *title,
                            struct svg_point points[MAX_SETTINGS], const char **ret_unit) {
    size_t n = 0;
    for (size_t i = 0; i < profile->n_targets && n < MAX_SETTINGS; i++) {
        const json_t *knobs = json_object_get(profile->targets[i].object, "knobs");
        struct headline headline;
        if (json_object_get(knobs, knob) != NULL &&
            find_headline(&profile->targets[i], title, &headline)) {
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

static void add_curve(struct buf *out, const struct profile *profile, const char *knob,
                      const char *title) {
    struct svg_point points[MAX_SETTINGS];
    const char *unit = "";
    size_t n = find_settings(profile, knob, title, points, &unit);
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
    svg_begin_figure(out, title);
    svg_begin(&plot, "plot curve", title, strcmp(unit, "celsius") != 0);
    svg_line(&plot, points, n, 0, false, title);
    for (size_t i = 0; i < n; i++) {
        text_markup(out,
                    "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%s = %.9g: %s"
                    "</title></circle>",
                    svg_x(&plot, points[i].x), svg_y(&plot, points[i].y), knob, points[i].x,
                    text_human(points[i].y, unit).text);
    }
    text_markup(out, "</svg><p class=\"note axis\">%s</p></figure>\n", knob);
}

void report_targets_write(const struct profile *profile, struct buf *out) {
    struct headline headlines[MAX_HEADLINES];
    struct buf plots CLEANUP_BUF = {0};
    const char *knob = swept_knob(profile);
    size_t n =
        profile->n_targets > 1 ? headlines_find(&profile->targets[0].measures, headlines) : 0;
    for (size_t i = 0; i < n; i++) {
        if (knob == NULL) {
            add_bars(&plots, profile, headlines[i].title);
        } else if (knob[0] != '\0') {
            add_curve(&plots, profile, knob, headlines[i].title);
        }
    }
    if (plots.len > 0) {
        buf_printf(out,
                   "<section id=\"%s\"><h2>%s</h2><div class=\"grid plots\">\n%s</div></section>\n",
                   knob != NULL ? "sweep" : "comparison",
                   knob != NULL ? "Sweep" : "Targets compared", buf_str(&plots));
    }
}
