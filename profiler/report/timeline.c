#include "profiler/report/plot.h"

#include <math.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "profiler/analysis/report_text.h"

/* How a line is computed from columns. */
enum how {
    AS_IT_IS,
    RATE,  /* growth per second */
    RATIO, /* growth of one column per growth of another: the mean of a histogram */
};

struct source {
    int column, divisor; /* `divisor` is for a ratio */
    const char *name;
};

enum { MAX_LINES = 24, MAX_SOURCES = 6 };

struct chart {
    const char *title;
    const char *unit;
    double scale;
    enum how how;
    bool from_zero;
    struct source sources[MAX_SOURCES];
    size_t n_sources;
};

struct line {
    struct svg_point *points;
    size_t n;
    size_t colour;
    bool faint;
    char name[64];
};

/* ---- one line ---- */

/* When the application started: 0 on the time axis. */
static double start_of(const struct profile_run *run) {
    for (size_t i = 0; i < run->n_phases; i++) {
        if (run->phases[i].phase == PHASE_RUN || run->phases[i].phase == PHASE_WARMUP) {
            return run->phases[i].t;
        }
    }
    return 0;
}

/* Growth per second between the sample `i` and one about a second before it; NaN if there is none.
 * Over a tenth of a second one frame more would be a spike. */
static double growth(const struct timeline *timeline, size_t i, size_t *before) {
    while (*before + 1 < i && timeline->bins[i].t - timeline->bins[*before + 1].t >= 1 - 1e-3) {
        (*before)++;
    }
    double time = timeline->bins[i].t - timeline->bins[*before].t;
    double grown = timeline->bins[i].last - timeline->bins[*before].last;
    return time >= 0.5 && grown >= 0 ? grown / time : NAN;
}

static double value_at(const struct chart *chart, const struct profile_run *run,
                       const struct source *source, size_t i, size_t *before) {
    const struct timeline *timeline = &run->columns[source->column].timeline;
    if (chart->how == AS_IT_IS) {
        return timeline->bins[i].sum / (double)timeline->bins[i].n;
    }
    size_t same = *before;
    double rate = growth(timeline, i, before);
    if (chart->how == RATE) {
        return rate;
    }
    const struct timeline *divisor = &run->columns[source->divisor].timeline;
    return i < divisor->n_bins ? rate / growth(divisor, i, &same) : NAN;
}

/* Makes at most `max` points, each the mean of neighbours. */
static void make_line(const struct chart *chart, const struct profile_run *run,
                      const struct source *source, size_t max, struct line *line) {
    int n_columns = (int)run->n_columns;
    bool there = source->column < n_columns && source->divisor < n_columns;
    size_t n_bins = there ? run->columns[source->column].timeline.n_bins : 0;
    size_t stride = n_bins / max + 1, before = 0, in = 0;
    struct svg_point sum = {0};
    line->points = mem_zalloc(n_bins, sizeof(*line->points));
    for (size_t i = 0; i < n_bins; i++) {
        double value = value_at(chart, run, source, i, &before) * chart->scale;
        if (isfinite(value)) {
            sum.x += run->columns[source->column].timeline.bins[i].t - start_of(run);
            sum.y += value;
            in++;
        }
        if (in > 0 && (i % stride == stride - 1 || i + 1 == n_bins)) {
            line->points[line->n++] = (struct svg_point){sum.x / (double)in, sum.y / (double)in};
            sum = (struct svg_point){0};
            in = 0;
        }
    }
}

/* ---- one chart ---- */

static const struct profile_run *last_measured(const struct profile_target *target) {
    for (size_t i = target->n_runs; i > 0; i--) {
        if (target->runs[i - 1].measured) {
            return &target->runs[i - 1];
        }
    }
    return NULL;
}

/* `zone="cpu"` is named by its value. */
static void name_by_labels(char *name, size_t size, const char *labels) {
    const char *from = strchr(labels, '"');
    const char *to = from != NULL ? strchr(from + 1, '"') : NULL;
    if (to != NULL && to[1] == '\0') {
        snprintf(name, size, "%.*s", (int)(to - from - 1), from + 1);
    } else {
        snprintf(name, size, "%s", labels);
    }
}

/* One source has a line per run; of several, the lines of the last run are shown. */
static size_t make_lines(const struct chart *chart, const struct profile_target *target,
                         size_t max_points, struct line lines[MAX_LINES]) {
    size_t n = 0, n_runs = target->n_measured < MAX_LINES ? target->n_measured : MAX_LINES;
    size_t max = max_points / (chart->n_sources > 1 ? chart->n_sources : n_runs + 1) + 16;
    const struct profile_run *last = last_measured(target);
    for (size_t i = 0; i < target->n_runs && n < MAX_LINES; i++) {
        const struct profile_run *run = &target->runs[i];
        if (!run->measured || (chart->n_sources > 1 && run != last)) {
            continue;
        }
        for (size_t j = 0; j < chart->n_sources && n < MAX_LINES; j++) {
            lines[n] = (struct line){.colour = j, .faint = chart->n_sources == 1 && n_runs > 1};
            if (chart->n_sources > 1) {
                name_by_labels(lines[n].name, sizeof(lines[n].name), chart->sources[j].name);
            } else {
                snprintf(lines[n].name, sizeof(lines[n].name), "run %u", run->number);
            }
            make_line(chart, run, &chart->sources[j], max, &lines[n]);
            if (lines[n].n > 1) {
                n++;
            } else {
                free(lines[n].points);
            }
        }
    }
    return n;
}

/* All charts of a target share the time axis, so that their phases are aligned. */
static void find_range(const struct profile_target *target, const struct line *lines, size_t n,
                       struct svg_plot *plot) {
    plot->y0 = INFINITY;
    plot->y1 = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < lines[i].n; j++) {
            plot->y0 = fmin(plot->y0, lines[i].points[j].y);
            plot->y1 = fmax(plot->y1, lines[i].points[j].y);
        }
    }
    for (size_t i = 0; i < target->n_runs; i++) {
        const struct profile_run *run = &target->runs[i];
        if (run->measured && run->n_phases > 0) {
            plot->x0 = fmin(plot->x0, run->phases[0].t - start_of(run));
            plot->x1 = fmax(plot->x1, run->end_t - start_of(run));
        }
    }
}

static void add_phases(struct svg_plot *plot, const struct profile_run *run) {
    for (size_t i = 0; i < run->n_phases; i++) {
        double end = i + 1 < run->n_phases ? run->phases[i + 1].t : run->end_t;
        double from = svg_x(plot, fmax(run->phases[i].t - start_of(run), plot->x0));
        double to = svg_x(plot, fmin(end - start_of(run), plot->x1));
        const char *name = record_phases[run->phases[i].phase];
        if (to - from < 0.5) {
            continue;
        }
        buf_printf(plot->out,
                   "<rect class=\"phase %s\" fill-opacity=\"0.06\" x=\"%.1f\" y=\"%d\" "
                   "width=\"%.1f\" height=\"%.1f\"/>",
                   name, from, SVG_TOP, to - from, plot->height - SVG_TOP - SVG_BOTTOM);
        if (to - from > 7.0 * (double)strlen(name)) {
            svg_text(plot->out, (from + to) / 2, SVG_TOP - 3, "middle", "phase-name", name);
        }
    }
}

static void add_legend(struct buf *out, const struct line *lines, size_t n) {
    buf_add_str(out, "<ul class=\"legend\">");
    for (size_t i = 0; i < n; i++) {
        text_markup(out, "<li class=\"c%zu\"><i></i><span>%s</span></li>", lines[i].colour,
                    lines[i].name);
    }
    buf_add_str(out, "</ul>");
}

static void draw(struct svg_plot *plot, const struct chart *chart,
                 const struct profile_target *target, const struct line *lines, size_t n) {
    svg_begin_figure(plot->out, chart->title);
    svg_begin(plot, "plot time", chart->title, chart->from_zero);
    add_phases(plot, last_measured(target));
    for (size_t i = 0; i < n; i++) {
        svg_line(plot, lines[i].points, lines[i].n, lines[i].colour, lines[i].faint, lines[i].name);
    }
    buf_add_str(plot->out, "</svg>");
    if (chart->n_sources > 1) {
        add_legend(plot->out, lines, n);
    }
    buf_add_str(plot->out, "</figure>\n");
}

/* The charts of one target. */
struct charts {
    struct buf *out;
    const struct profile *profile;
    const struct profile_target *target;
    size_t max_points; /* of a chart */
};

static void add_chart(const struct charts *charts, const struct chart *chart) {
    struct line lines[MAX_LINES];
    size_t n = make_lines(chart, charts->target, charts->max_points, lines);
    struct svg_plot plot = {.out = charts->out, .unit = chart->unit, .x_unit = "s"};
    find_range(charts->target, lines, n, &plot);
    /* An empty range and one that exceeds doubles cannot be drawn. */
    if (svg_can_show(plot.y0, plot.y1) && svg_can_show(plot.x0, plot.x1)) {
        draw(&plot, chart, charts->target, lines, n);
    }
    for (size_t i = 0; i < n; i++) {
        free(lines[i].points);
    }
}

static void add_simple(const struct charts *charts, const char *title, const char *unit,
                       enum how how, struct source source) {
    struct chart chart = {title, unit, 1, how, true, {source}, 1};
    add_chart(charts, &chart);
}

/* ---- which charts ---- */

/* Charts of the machine; series of one name with different labels are lines of one chart. */
static const struct {
    const char *name;
    struct chart chart;
} machine[] = {
    {"memory.bytes", {"Memory", "B", 1, AS_IT_IS, true}},
    {"gpu.utilization_ratio", {"GPU", "ratio", 1, AS_IT_IS, true}},
    {"gpu.memory_bytes", {"GPU memory", "B", 1, AS_IT_IS, true}},
    {RECORD_NEW_GPU_MEMORY, {"New GPU memory", "B", 1, AS_IT_IS, true}},
    {"power.watts", {"Power", "W", 1, AS_IT_IS, true}},
    {"temperature.celsius", {"Temperature", "celsius", 1, AS_IT_IS, false}},
    {"throttled.ratio", {"Clocks held back", "ratio", 1, AS_IT_IS, true}},
};

static void add_machine_charts(const struct charts *charts) {
    const struct profile *profile = charts->profile;
    for (size_t i = 0; i < ARRAY_LEN(machine); i++) {
        struct chart chart = machine[i].chart;
        for (int j = N_DERIVED; j < profile_n_columns(profile); j++) {
            const struct record_series *series = profile_series(profile, j);
            if (strcmp(series->name, machine[i].name) == 0 && chart.n_sources < MAX_SOURCES) {
                chart.sources[chart.n_sources++] =
                    (struct source){.column = j, .name = series->labels};
            }
        }
        add_chart(charts, &chart);
    }
}

static bool is_rate(const struct profile *profile, const struct record_series *series) {
    return series->type == RECORD_COUNTER && record_key_is_app(series->key) &&
           (profile_find_gauge(profile, series) >= 0 ||
            strcmp(series->name, "app.frames_total") == 0);
}

/* The rates of the application, such as frames per second. */
static void add_rate_charts(const struct charts *charts) {
    const struct profile *profile = charts->profile;
    for (int i = N_DERIVED; i < profile_n_columns(profile); i++) {
        const struct record_series *series = profile_series(profile, i);
        if (is_rate(profile, series)) {
            struct buf title CLEANUP_BUF = {0};
            buf_printf(&title, "%.*s%s", (int)(strlen(series->name) - strlen("app._total")),
                       record_short_key(series->name), series->key + strlen(series->name));
            add_simple(charts, buf_str(&title), "/s", RATE, (struct source){.column = i});
        }
    }
}

/* The mean of a histogram over time: growth of its sum per growth of its count. */
static void add_histogram_charts(const struct charts *charts) {
    const struct profile *profile = charts->profile;
    for (size_t i = 0; i < profile->n_histograms; i++) {
        const struct profile_histogram *histogram = &profile->histograms[i];
        struct buf title CLEANUP_BUF = {0};
        if (histogram->sum >= 0 && histogram->count >= 0) {
            buf_printf(&title, "%s, mean", record_short_key(histogram->key));
            add_simple(charts, buf_str(&title), profile_series(profile, histogram->sum)->unit,
                       RATIO, (struct source){histogram->sum, histogram->count, NULL});
        }
    }
}

static void add_app_gauges(const struct charts *charts) {
    enum { MAX_GAUGES = 6 };
    const struct profile *profile = charts->profile;
    size_t n = 0;
    for (int i = N_DERIVED; i < profile_n_columns(profile) && n < MAX_GAUGES; i++) {
        const struct record_series *series = profile_series(profile, i);
        if (series->type == RECORD_GAUGE && record_key_is_app(series->key) &&
            strncmp(series->name, "app.param", strlen("app.param")) != 0 &&
            profile_find_counter(profile, series) < 0) {
            add_simple(charts, record_short_key(series->key), series->unit, AS_IT_IS,
                       (struct source){.column = i});
            n++;
        }
    }
}

void report_timelines_write(const struct profile *profile, const struct profile_target *target,
                            size_t max_points, struct buf *out) {
    static const struct chart cpu = {"CPU", "%", 100, RATE, true, {{.column = DERIVED_CPU}}, 1};
    if (target->n_measured == 0) {
        return;
    }
    struct charts charts = {out, profile, target, max_points};
    add_rate_charts(&charts);
    add_histogram_charts(&charts);
    add_chart(&charts, &cpu);
    add_machine_charts(&charts);
    add_app_gauges(&charts);
}
