#include "profiler/report/pages.h"

#include <math.h>

#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/utf8.h"

/* ---- samples.csv ---- */

/* Quotes are doubled (RFC 4180). A target "=1+1" must not become a formula in a spreadsheet. */
static void add_cell(struct buf *out, const char *text) {
    buf_add_char(out, '"');
    if (text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL) {
        buf_add_char(out, '\'');
    }
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            buf_add_char(out, '"');
        }
        buf_add_char(out, *text);
    }
    buf_add_char(out, '"');
}

static void add_number(struct buf *out, double value) {
    char digits[NUMBER_MAX_LEN];
    buf_add(out, digits, number_format(value, digits));
}

/* Writes the line and empties it. */
static void flush(struct buf *line, FILE *to) {
    fwrite(buf_str(line), 1, line->len, to);
    buf_reset(line);
}

static void add_header(struct buf *out, const struct record *record) {
    buf_add_str(out, "target,run,phase,t,at");
    for (size_t i = 0; i < record->n_series; i++) {
        buf_add_char(out, ',');
        add_cell(out, record->series[i]->key);
    }
    buf_add_char(out, '\n');
}

static void add_csv_row(struct buf *out, const struct record_line *line, enum record_phase phase,
                        double *values, size_t n) {
    add_cell(out, line->target);
    buf_printf(out, ",%u,%s,", line->run, record_phases[phase]);
    add_number(out, line->t);
    buf_add_char(out, ',');
    add_number(out, line->at);
    for (size_t i = 0; i < line->n_values; i++) {
        values[line->values[i].series->index] = line->values[i].value;
    }
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, ',');
        if (!isnan(values[i])) {
            add_number(out, values[i]);
        }
        values[i] = NAN;
    }
    buf_add_char(out, '\n');
}

int report_csv_write(const struct profile *profile, FILE *to, struct error *err) {
    struct record *record CLEANUP_RECORD = NULL;
    struct buf row CLEANUP_BUF = {0};
    size_t n = profile->record->n_series;
    double *values CLEANUP_FREE = mem_alloc(n * sizeof(*values));
    for (size_t i = 0; i < n; i++) {
        values[i] = NAN;
    }
    add_header(&row, profile->record);
    flush(&row, to);
    enum record_phase phase = PHASE_NONE;
    struct record_line line;
    int r = record_open(profile->record->path, &record, err);
    while (r >= 0 && (r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_PHASE || line.kind == RECORD_END) {
            phase = line.phase;
        } else if (line.kind == RECORD_SAMPLE && record->n_series <= n) {
            add_csv_row(&row, &line, phase, values, n);
            flush(&row, to);
        }
    }
    return r;
}

/* ---- metrics.om ---- */

enum { MAX_POINTS = 1000 * 1000 };

/* OpenMetrics groups samples by family, the record by time; so they are transposed in memory. */

struct row {
    double at;
    size_t source; /* index of the run in `sources` */
};

struct point {
    size_t row;
    double value;
};

struct points {
    struct point *items;
    size_t n, cap;
};

struct table {
    const struct profile *profile;
    const struct record *record; /* of the profile: all series */
    struct row *rows;
    size_t n_rows, cap_rows;
    struct points *series; /* by index of the series */
    char **sources;        /* the labels of each run: target="cpu",run="1" */
    size_t n_sources, cap_sources;
    double step; /* least seconds between two samples */
    double next_t;
    FILE *to;
    struct buf line;
};

static void table_finish(struct table *table) {
    for (size_t i = 0; i < table->record->n_series; i++) {
        free(table->series[i].items);
    }
    for (size_t i = 0; i < table->n_sources; i++) {
        free(table->sources[i]);
    }
    free(table->series);
    free(table->sources);
    free(table->rows);
    buf_finish(&table->line);
}

static void add_source(struct table *table, const struct record_line *line) {
    struct buf labels CLEANUP_BUF = {0};
    buf_add_str(&labels, "target=\"");
    utf8_add_escaped(&labels, line->target, true);
    buf_printf(&labels, "\",run=\"%u\"", line->run);
    if (table->n_sources == 0 ||
        strcmp(table->sources[table->n_sources - 1], buf_str(&labels)) != 0) {
        ARRAY_GROW(&table->sources, &table->cap_sources, table->n_sources + 1);
        table->sources[table->n_sources++] = buf_take(&labels);
        table->next_t = line->t;
    }
}

static void add_row(struct table *table, const struct record_line *line) {
    add_source(table, line);
    if (line->t < table->next_t - 1e-3) {
        return;
    }
    table->next_t = line->t + table->step;
    for (size_t i = 0; i < line->n_values; i++) {
        size_t index = line->values[i].series->index;
        if (index < table->record->n_series) {
            struct points *points = &table->series[index];
            ARRAY_GROW(&points->items, &points->cap, points->n + 1);
            points->items[points->n++] = (struct point){table->n_rows, line->values[i].value};
        }
    }
    ARRAY_GROW(&table->rows, &table->cap_rows, table->n_rows + 1);
    table->rows[table->n_rows++] = (struct row){line->at, table->n_sources - 1};
}

/* "cpu.user_seconds" becomes "waap_run_cpu_user_seconds". */
static void add_name(struct buf *out, const char *name, size_t len) {
    buf_add_str(out, "waap_run_");
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        buf_add_char(out, fits ? c : '_');
    }
}

static void write_head(struct table *table, const struct record_series *series, const char *type,
                       size_t len) {
    struct buf *line = &table->line;
    buf_add_str(line, "# TYPE ");
    add_name(line, series->name, len);
    buf_printf(line, " %s\n", type);
    if (series->help[0] != '\0') {
        buf_add_str(line, "# HELP ");
        add_name(line, series->name, len);
        buf_add_char(line, ' ');
        utf8_add_escaped(line, series->help, true);
        buf_add_char(line, '\n');
    }
    flush(line, table->to);
}

/* One line; `len` bytes of the series' name, then `suffix`. */
static void write_point(struct table *table, const struct record_series *series, size_t len,
                        const char *suffix, const struct point *point) {
    const struct row *row = &table->rows[point->row];
    struct buf *line = &table->line;
    add_name(line, series->name, len);
    buf_printf(line, "%s{%s%s", suffix, table->sources[row->source],
               series->labels[0] != '\0' ? "," : "");
    for (const char *c = series->labels; *c != '\0'; c++) {
        if (*c == '\n') {
            buf_add_str(line, "\\n");
        } else {
            buf_add_char(line, *c);
        }
    }
    buf_add_str(line, "} ");
    add_number(line, point->value);
    buf_printf(line, " %.3f\n", row->at);
    flush(line, table->to);
}

/* Writes a family, all series of the same name and type, at the first of them. */
static void write_plain(struct table *table, const struct record_series *first) {
    const struct record *record = table->record;
    bool is_counter = first->type == RECORD_COUNTER;
    size_t len = strlen(first->name), n_suffix = strlen("_total");
    if (is_counter && len >= n_suffix && strcmp(first->name + len - n_suffix, "_total") == 0) {
        len -= n_suffix;
    }
    for (size_t i = 0; i < record->n_series; i++) {
        const struct record_series *series = record->series[i];
        if (series->type != first->type || strcmp(series->name, first->name) != 0) {
            continue;
        }
        if (i < first->index) {
            return;
        }
        if (i == first->index) {
            write_head(table, first, is_counter ? "counter" : "gauge", len);
        }
        for (size_t j = 0; j < table->series[i].n; j++) {
            write_point(table, series, len, is_counter ? "_total" : "", &table->series[i].items[j]);
        }
    }
}

/* Writes the columns of a histogram row by row: all buckets, the count, the sum. */
static void write_histogram(struct table *table, const struct profile_histogram *histogram) {
    size_t n = histogram->n_buckets;
    size_t *cursors CLEANUP_FREE = mem_zalloc(n + 2, sizeof(*cursors));
    for (size_t row = 0; row < table->n_rows; row++) {
        for (size_t i = 0; i < n + 2; i++) {
            int column = i < n    ? histogram->buckets[i].column
                         : i == n ? histogram->count
                                  : histogram->sum;
            const struct points *points = column >= 0 ? &table->series[column - N_DERIVED] : NULL;
            if (points != NULL && cursors[i] < points->n && points->items[cursors[i]].row == row) {
                const struct record_series *series = profile_series(table->profile, column);
                write_point(table, series, strlen(series->name), i < n ? "_bucket" : "",
                            &points->items[cursors[i]++]);
            }
        }
    }
}

/* Writes a family, the histograms of the same name, at the first of them. */
static void write_histograms(struct table *table, const struct profile_histogram *first) {
    const struct profile *profile = table->profile;
    for (size_t i = 0; i < profile->n_histograms; i++) {
        const struct profile_histogram *histogram = &profile->histograms[i];
        if (histogram->name_len != first->name_len ||
            strncmp(histogram->key, first->key, first->name_len) != 0) {
            continue;
        }
        if (histogram < first) {
            return;
        }
        if (histogram == first) {
            write_head(table, profile_series(profile, first->buckets[0].column), "histogram",
                       first->name_len);
        }
        write_histogram(table, histogram);
    }
}

/* The gauge `fps` of a counter `fps_total` would be a family of the same name. */
static bool has_counter(const struct record *record, const struct record_series *gauge) {
    size_t len = strlen(gauge->name);
    for (size_t i = 0; i < record->n_series; i++) {
        const struct record_series *series = record->series[i];
        if (series->type == RECORD_COUNTER && strncmp(series->name, gauge->name, len) == 0 &&
            (strcmp(series->name + len, "_total") == 0 || series->name[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static void write_families(struct table *table) {
    const struct record *record = table->record;
    for (size_t i = 0; i < record->n_series; i++) {
        const struct record_series *series = record->series[i];
        if (series->type == RECORD_COUNTER ||
            (series->type == RECORD_GAUGE && !has_counter(record, series))) {
            write_plain(table, series);
        }
    }
    for (size_t i = 0; i < table->profile->n_histograms; i++) {
        write_histograms(table, &table->profile->histograms[i]);
    }
    fputs("# EOF\n", table->to);
}

static double step_of(const struct profile *profile) {
    double points = (double)profile->n_samples * (double)profile->record->n_series;
    return points <= MAX_POINTS
               ? 0
               : ceil(profile->last_t / (double)profile->n_samples * points / MAX_POINTS);
}

int report_openmetrics_write(const struct profile *profile, FILE *to, struct error *err) {
    struct table table CLEANUP(table_finish) = {
        .profile = profile,
        .record = profile->record,
        .series = mem_zalloc(profile->record->n_series, sizeof(*table.series)),
        .step = step_of(profile),
        .to = to,
    };
    struct record *record CLEANUP_RECORD = NULL;
    struct record_line line;
    int r = record_open(profile->record->path, &record, err);
    while (r >= 0 && (r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_SAMPLE) {
            add_row(&table, &line);
        }
    }
    if (r == 0) {
        write_families(&table);
    }
    return r;
}
