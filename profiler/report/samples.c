#include "profiler/report/pages.h"

#include <math.h>

#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/utf8.h"
#include "profiler/analysis/report_text.h"

/* ---- samples.csv ---- */

/* Quotes are doubled (RFC 4180). A target named "=1+1" must not become a formula in a spreadsheet.
 */
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
    fwrite(buf_str(&row), 1, row.len, to);
    enum record_phase phase = PHASE_NONE;
    struct record_line line;
    int r = record_open(profile->record->path, &record, err);
    while (r >= 0 && (r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_PHASE || line.kind == RECORD_END) {
            phase = line.phase;
        } else if (line.kind == RECORD_SAMPLE && record->n_series <= n) {
            buf_reset(&row);
            add_csv_row(&row, &line, phase, values, n);
            fwrite(buf_str(&row), 1, row.len, to);
        }
    }
    return r;
}

/* ---- metrics.om ---- */

enum { MAX_POINTS = 1000 * 1000 };

/* OpenMetrics groups samples by family, the record by time; so the samples are transposed in
 * memory. */

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
    struct row *rows;
    size_t n_rows, cap_rows;
    struct points *series; /* by index of the series */
    size_t n_series;
    char **sources; /* the labels of each run: target="cpu",run="1" */
    size_t n_sources, cap_sources;
    double step; /* least seconds between two samples */
    double next_t;
};

static void table_finish(struct table *table) {
    for (size_t i = 0; i < table->n_series; i++) {
        free(table->series[i].items);
    }
    for (size_t i = 0; i < table->n_sources; i++) {
        free(table->sources[i]);
    }
    free(table->series);
    free(table->sources);
    free(table->rows);
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
        if (index < table->n_series) {
            struct points *points = &table->series[index];
            ARRAY_GROW(&points->items, &points->cap, points->n + 1);
            points->items[points->n++] = (struct point){table->n_rows, line->values[i].value};
        }
    }
    ARRAY_GROW(&table->rows, &table->cap_rows, table->n_rows + 1);
    table->rows[table->n_rows++] = (struct row){line->at, table->n_sources - 1};
}

struct writer {
    const struct profile *profile;
    const struct table *table;
    bool *done; /* series that have been written */
    FILE *file;
    struct buf line;
};

/* "cpu.user_seconds" becomes "waap_run_cpu_user_seconds". */
static void add_name(struct buf *out, const char *name, size_t len) {
    buf_add_str(out, "waap_run_");
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        buf_add_char(out, fits ? c : '_');
    }
}

static void flush(struct writer *writer) {
    fwrite(buf_str(&writer->line), 1, writer->line.len, writer->file);
    buf_reset(&writer->line);
}

static void write_head(struct writer *writer, const struct record_series *series, const char *type,
                       size_t len) {
    struct buf *line = &writer->line;
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
    flush(writer);
}

/* One line; `len` bytes of the series' name, then `suffix`. */
static void write_point(struct writer *writer, const struct record_series *series, size_t len,
                        const char *suffix, const struct point *point) {
    const struct row *row = &writer->table->rows[point->row];
    struct buf *line = &writer->line;
    char digits[NUMBER_MAX_LEN];
    add_name(line, series->name, len);
    buf_printf(line, "%s{%s", suffix, writer->table->sources[row->source]);
    if (series->labels[0] != '\0') {
        buf_add_char(line, ',');
    }
    for (const char *c = series->labels; *c != '\0'; c++) {
        if (*c == '\n') {
            buf_add_str(line, "\\n");
        } else {
            buf_add_char(line, *c);
        }
    }
    buf_add_str(line, "} ");
    buf_add(line, digits, number_format(point->value, digits));
    buf_printf(line, " %.3f\n", row->at);
    flush(writer);
}

/* All series of the same name and type. */
static void write_plain(struct writer *writer, const struct record_series *first) {
    const struct record *record = writer->profile->record;
    bool is_counter = first->type == RECORD_COUNTER;
    size_t len = strlen(first->name), n_suffix = strlen("_total");
    if (is_counter && len >= n_suffix && strcmp(first->name + len - n_suffix, "_total") == 0) {
        len -= n_suffix;
    }
    write_head(writer, first, is_counter ? "counter" : "gauge", len);
    for (size_t i = first->index; i < writer->table->n_series; i++) {
        const struct record_series *series = record->series[i];
        if (series->type != first->type || strcmp(series->name, first->name) != 0) {
            continue;
        }
        writer->done[i] = true;
        for (size_t j = 0; j < writer->table->series[i].n; j++) {
            write_point(writer, series, len, is_counter ? "_total" : "",
                        &writer->table->series[i].items[j]);
        }
    }
}

/* Writes the columns of a histogram row by row: all buckets, the count, the sum. */
static void write_histogram(struct writer *writer, const struct profile_histogram *histogram) {
    size_t n = histogram->n_buckets;
    size_t *cursors CLEANUP_FREE = mem_zalloc(n + 2, sizeof(*cursors));
    for (size_t row = 0; row < writer->table->n_rows; row++) {
        for (size_t i = 0; i < n + 2; i++) {
            int column = i < n    ? histogram->buckets[i].column
                         : i == n ? histogram->count
                                  : histogram->sum;
            const struct points *points =
                column >= 0 ? &writer->table->series[column - N_DERIVED] : NULL;
            if (points != NULL && cursors[i] < points->n && points->items[cursors[i]].row == row) {
                const struct record_series *series = profile_series(writer->profile, column);
                write_point(writer, series, strlen(series->name), i < n ? "_bucket" : "",
                            &points->items[cursors[i]++]);
            }
        }
    }
}

static bool same_name(const struct profile_histogram *a, const struct profile_histogram *b) {
    return a->name_len == b->name_len && strncmp(a->key, b->key, a->name_len) == 0;
}

/* A family has the histograms of one name, with different labels. */
static void write_histograms(struct writer *writer) {
    const struct profile *profile = writer->profile;
    bool *done CLEANUP_FREE = mem_zalloc(profile->n_histograms, sizeof(*done));
    for (size_t i = 0; i < profile->n_histograms; i++) {
        const struct profile_histogram *first = &profile->histograms[i];
        if (done[i]) {
            continue;
        }
        write_head(writer, profile_series(profile, first->buckets[0].column), "histogram",
                   first->name_len);
        for (size_t j = i; j < profile->n_histograms; j++) {
            if (same_name(first, &profile->histograms[j])) {
                write_histogram(writer, &profile->histograms[j]);
                done[j] = true;
            }
        }
    }
}

/* The gauge `fps` of a counter `fps_total` would be a family of the same name, so it is left out;
 * its values follow from the counter's. */
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

static void write_families(struct writer *writer) {
    const struct record *record = writer->profile->record;
    for (size_t i = 0; i < writer->table->n_series; i++) {
        const struct record_series *series = record->series[i];
        bool is_plain = series->type == RECORD_COUNTER ||
                        (series->type == RECORD_GAUGE && !has_counter(record, series));
        if (is_plain && !writer->done[i]) {
            write_plain(writer, series);
        }
    }
    write_histograms(writer);
    fputs("# EOF\n", writer->file);
}

static double step_of(const struct profile *profile) {
    double points = (double)profile->n_samples * (double)profile->record->n_series;
    return points <= MAX_POINTS
               ? 0
               : ceil(profile->last_t / (double)profile->n_samples * points / MAX_POINTS);
}

static int read_table(const struct profile *profile, struct table *table, struct error *err) {
    struct record *record CLEANUP_RECORD = NULL;
    table->n_series = profile->record->n_series;
    table->series = mem_zalloc(table->n_series, sizeof(*table->series));
    table->step = step_of(profile);
    int r = record_open(profile->record->path, &record, err);
    struct record_line line;
    while (r >= 0 && (r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_SAMPLE) {
            add_row(table, &line);
        }
    }
    return r;
}

int report_openmetrics_write(const struct profile *profile, FILE *to, struct error *err) {
    struct table table CLEANUP(table_finish) = {0};
    bool *done CLEANUP_FREE = mem_zalloc(profile->record->n_series, sizeof(*done));
    int r = read_table(profile, &table, err);
    if (r < 0) {
        return r;
    }
    struct writer writer = {profile, &table, done, to, {0}};
    write_families(&writer);
    buf_finish(&writer.line);
    return 0;
}
