#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "profiler/analysis/profile.h"

/* Plots as SVG in a page. Colours come from its style sheet; without it lines are black. */

/* The coordinates of a plot. */
struct svg_plot {
    struct buf *out;
    double x0, x1, y0, y1; /* the values at its edges */
    const char *unit;      /* of y */
    const char *x_unit;
    double height;
    double step; /* between two rules */
};

struct svg_point {
    double x, y;
};

enum {
    SVG_WIDTH = 400,
    SVG_HEIGHT = 170,
    SVG_LEFT = 54,
    SVG_RIGHT = 10,
    SVG_TOP = 14,
    SVG_BOTTOM = 22,
};

/* Whether a range can be drawn: not if it is near the limits of doubles. */
bool svg_can_show(double from, double to);

/* Opens a <figure> with that caption; the caller closes it. */
void svg_begin_figure(struct buf *out, const char *title);

/* Widens the range of y to round numbers, with zero if `from_zero`, and begins the drawing: frame,
 * rules, labels. `kind` is its class, `title` is for screen readers. */
void svg_begin(struct svg_plot *plot, const char *kind, const char *title, bool from_zero);

double svg_x(const struct svg_plot *plot, double x);

/* A line through points; its name is shown under the pointer. */
void svg_line(struct svg_plot *plot, const struct svg_point *points, size_t n, size_t colour,
              bool faint, const char *name);

/* Text at coordinates of the drawing; `anchor` is "start", "middle" or "end". */
void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text);

/* Plots of measures rather than of samples. */

/* The measures that a page shows first, if the target has them. */
struct headline {
    const struct measure *measure;
    char title[96];
    enum measure_stat stat; /* the one to show */
};
enum { MAX_HEADLINES = 16 };
size_t headlines_find(const struct measures *measures, struct headline ret[MAX_HEADLINES]);

/* The distribution of a measure with its quantiles; nothing if it is unknown or has no width. */
void report_distribution_write(const struct headline *headline, struct buf *out);

/* The values of the runs on one line that covers their range, at least ten percent. */
void report_strip_write(const struct measure *measure, struct buf *out);

/* Each headline measure over all targets, or over the one numeric knob of a sweep. */
void report_targets_write(const struct profile *profile, struct buf *out);

/* The time lines of a target: charts of its main series with the repeats overlaid and the phases
 * marked. All lines of a chart have at most `max_points` together. */
void report_timelines_write(const struct profile *profile, const struct profile_target *target,
                            size_t max_points, struct buf *out);
