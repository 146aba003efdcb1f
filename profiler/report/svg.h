#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"

/* Plots as SVG inside a page. Colours come from the page's style sheet; without it lines are black.
 */

/* Where values are in a drawing. */
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

/* Whether a range can be drawn: where doubles end, so do scales. */
bool svg_can_show(double from, double to);

/* Widens the range of y to round numbers, from zero unless `from_zero` is false, and opens the
 * drawing: frame, rules, labels. `kind` is its class, `title` what readers without eyes get. */
void svg_begin(struct svg_plot *plot, const char *kind, const char *title, bool from_zero);
void svg_end(struct svg_plot *plot);

double svg_x(const struct svg_plot *plot, double x);
double svg_y(const struct svg_plot *plot, double y);

/* A line through points, `name` for those who ask what it is. */
void svg_line(struct svg_plot *plot, const struct svg_point *points, size_t n, size_t colour,
              bool faint, const char *name);

/* Round numbers from `from` to `to`, about `parts` of them. */
struct svg_ticks {
    double first, step;
    int n;
};
struct svg_ticks svg_ticks(double from, double to, double parts);

/* Text at a place of the drawing itself; `anchor` is "start", "middle" or "end". */
void svg_text(struct buf *out, double x, double y, const char *anchor, const char *class,
              const char *text);
