#include "profiler/report/svg.h"

#include <math.h>

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

struct svg_ticks svg_ticks(double from, double to, double parts) {
    enum { MANY = 50 };
    double step = round_step(to - from, parts);
    double first = ceil(from / step - 1e-9), last = floor(to / step + 1e-9);
    double n = fmax(0, last - first + 1);
    return (struct svg_ticks){first * step, step, isfinite(n) && n < MANY ? (int)n : 0};
}

double svg_x(const struct svg_plot *plot, double x) {
    double share = (x - plot->x0) / (plot->x1 - plot->x0);
    return SVG_LEFT + share * (SVG_WIDTH - SVG_LEFT - SVG_RIGHT);
}

double svg_y(const struct svg_plot *plot, double y) {
    double share = (y - plot->y0) / (plot->y1 - plot->y0);
    return plot->height - SVG_BOTTOM - share * (plot->height - SVG_TOP - SVG_BOTTOM);
}

void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text) {
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
               class);
    text_add_escaped(out, text);
    buf_add_str(out, "</text>");
}

/* Memory comes in powers of two: rules at 256 MiB, not at 250000000. */
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
        struct buf label CLEANUP_BUF = {0};
        text_add_human(&label, fabs(value) < step * 1e-6 ? 0 : value, plot->unit);
        buf_printf(plot->out, "<path class=\"rule\" stroke=\"#ccc\" d=\"M%d %.1fH%d\"/>", SVG_LEFT,
                   y, SVG_WIDTH - SVG_RIGHT);
        svg_text(plot->out, SVG_LEFT - 6, y + 3.5, "end", "tick", buf_str(&label));
    }
}

static bool in_minutes(const struct svg_plot *plot) {
    return strcmp(plot->x_unit, "s") == 0 && plot->x1 - plot->x0 > 240;
}

static void add_x_labels(struct svg_plot *plot) {
    double unit = in_minutes(plot) ? 60 : 1;
    const char *name = in_minutes(plot) ? "min" : plot->x_unit;
    struct svg_ticks ticks = svg_ticks(plot->x0 / unit, plot->x1 / unit, 5);
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
    buf_add_str(plot->out, " data-unit=\"");
    text_add_escaped(plot->out, plot->unit);
    buf_add_str(plot->out, "\"><title>");
    text_add_escaped(plot->out, title);
    buf_add_str(plot->out, "</title>");
    add_y_rules(plot);
    add_x_labels(plot);
}

void svg_end(struct svg_plot *plot) {
    buf_add_str(plot->out, "</svg>");
}

void svg_line(struct svg_plot *plot, const struct svg_point *points, size_t n, size_t colour,
              bool faint, const char *name) {
    enum { COLOURS = 8 };
    buf_printf(plot->out,
               "<path class=\"line c%zu%s\" fill=\"none\" stroke=\"currentColor\" data-name=\"",
               colour % COLOURS, faint ? " faint" : "");
    text_add_escaped(plot->out, name);
    buf_add_str(plot->out, "\" d=\"");
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
