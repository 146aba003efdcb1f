#include "profiler/report/csv.h"

#include <errno.h>
#include <math.h>

#include "exporter/core/file.h"
#include "exporter/core/number.h"
#include "profiler/analysis/report_text.h"

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
    for (size_t i = 0; i < record_n_series(record); i++) {
        buf_add_char(out, ',');
        add_cell(out, record_series_at(record, i)->key);
    }
    buf_add_char(out, '\n');
}

static void add_row(struct buf *out, const struct record_line *line, enum record_phase phase,
                    double *values, size_t n) {
    add_cell(out, line->target);
    buf_printf(out, ",%u,%s,", line->run, record_phase_name(phase));
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

static int write_rows(FILE *file, struct record *record, size_t n, struct error *err) {
    struct buf row CLEANUP_BUF = {0};
    double *values CLEANUP_FREE = calloc(n + 1, sizeof(*values));
    if (values == NULL) {
        return error_set(err, -ENOMEM, "samples.csv: out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = NAN;
    }
    enum record_phase phase = PHASE_NONE;
    struct record_line line;
    int r;
    while ((r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_PHASE || line.kind == RECORD_END) {
            phase = line.phase;
        } else if (line.kind == RECORD_SAMPLE && record_n_series(record) <= n) {
            buf_reset(&row);
            add_row(&row, &line, phase, values, n);
            fwrite(buf_str(&row), 1, row.len, file);
        }
    }
    return row.failed ? error_set(err, -ENOMEM, "samples.csv: out of memory") : r;
}

int report_csv_write(const char *dir, const struct profile *profile, struct error *err) {
    struct text_file file CLEANUP_TEXT_FILE = {0};
    struct record *record CLEANUP_RECORD = NULL;
    struct buf header CLEANUP_BUF = {0};
    char *path CLEANUP_FREE = file_path_join(dir, "samples.jsonl");
    if (path == NULL) {
        return error_set(err, -ENOMEM, "samples.csv: out of memory");
    }
    int r = record_open(path, &record, err);
    r = r < 0 ? r : text_file_open(&file, dir, "samples.csv", err);
    if (r < 0) {
        return r;
    }
    add_header(&header, profile->record);
    fwrite(buf_str(&header), 1, header.len, file.file);
    r = write_rows(file.file, record, record_n_series(profile->record), err);
    return r < 0 ? r : text_file_commit(&file, err);
}
