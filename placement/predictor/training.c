#include "placement/predictor/training.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/number.h"

enum {
    MAX_FILE = 512 << 20,
    MAX_COLUMNS = 128,
    COLUMN_TIME = N_FEATURES,
    COLUMN_MODEL,
    COLUMN_CORES,
    N_COLUMNS,
};

/* The original's stressor counts its cores out of this many. */
static const float original_cores = 4;

struct field {
    const char *text;
    size_t len;
};

struct reader {
    const char *name;
    size_t line;
    int columns[N_COLUMNS]; /* where each is; -1: nowhere */
    struct error *err;
};

static const char *column_name(int column) {
    static const char *const others[] = {"execution_time", "model_name", "device_cpu_cores"};
    return column < N_FEATURES ? feature_names[column] : others[column - N_FEATURES];
}

static bool is_quoted(struct field field) {
    return field.len >= 2 && field.text[0] == '"' && field.text[field.len - 1] == '"';
}

/* Splits a line at its commas, of which those in quotes are none; returns how many fields. */
static size_t split(const char *line, size_t len, struct field *fields) {
    size_t n = 0;
    const char *end = line + len;
    for (const char *at = line; n < MAX_COLUMNS; at++) {
        const char *start = at;
        bool quoted = false;
        for (; at < end && (*at != ',' || quoted); at++) {
            quoted = quoted != (*at == '"');
        }
        struct field field = {start, (size_t)(at - start)};
        if (is_quoted(field)) {
            field = (struct field){field.text + 1, field.len - 2};
        }
        fields[n++] = field;
        if (at >= end) {
            break;
        }
    }
    return n;
}

static int read_header(struct reader *reader, const char *line, size_t len) {
    struct field fields[MAX_COLUMNS];
    size_t n = split(line, len, fields);
    for (int column = 0; column < N_COLUMNS; column++) {
        const char *name = column_name(column);
        reader->columns[column] = -1;
        for (size_t i = 0; i < n; i++) {
            if (fields[i].len == strlen(name) && memcmp(fields[i].text, name, fields[i].len) == 0) {
                reader->columns[column] = (int)i;
            }
        }
        if (reader->columns[column] < 0 && column != COLUMN_CORES) {
            return error_set(reader->err, -EINVAL, "%s: line 1: no column %s", reader->name, name);
        }
    }
    return 0;
}

static int fail(const struct reader *reader, int column, struct field field, const char *expected) {
    return error_set(reader->err, -EINVAL, "%s: line %zu: %s: expected %s, got \"%.*s\"",
                     reader->name, reader->line, column_name(column), expected,
                     (int)(field.len < 64 ? field.len : 64), field.text);
}

static int read_number(const struct reader *reader, int column, struct field field,
                       float *ret_number) {
    double number;
    if (number_parse(field.text, field.len, &number) < 0 || !isfinite(number)) {
        return fail(reader, column, field, "a number");
    }
    *ret_number = (float)number;
    return 0;
}

/* Seconds, or "HH:MM:SS.ffffff". */
static int read_time(const struct reader *reader, struct field field, float *ret_seconds) {
    double seconds = 0;
    struct field part = field;
    const char *colon;
    bool ok = true;
    do {
        colon = memchr(part.text, ':', part.len);
        size_t len = colon != NULL ? (size_t)(colon - part.text) : part.len;
        double number = 0;
        ok = number_parse(part.text, len, &number) == 0;
        seconds = 60 * seconds + number;
        part = (struct field){part.text + len + 1, part.len - len - (colon != NULL)};
    } while (ok && colon != NULL);
    if (!ok || !isfinite(seconds) || seconds <= 0) {
        return fail(reader, COLUMN_TIME, field, "seconds or HH:MM:SS above 0");
    }
    *ret_seconds = (float)seconds;
    return 0;
}

/* A number, or the name of a kind of device. */
static int read_device(const struct reader *reader, struct field field, float *ret_device) {
    double number;
    if (number_parse(field.text, field.len, &number) == 0) {
        *ret_device = (float)number;
        return number >= DEVICE_OTHER && number <= DEVICE_JETSON
                   ? 0
                   : fail(reader, FEATURE_DEVICE, field, "-1, 0 or 1");
    }
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, field.text, field.len);
    *ret_device = (float)device_of(buf_str(&name));
    return 0;
}

static int read_column(const struct reader *reader, int column, struct field field,
                       struct training_row *row, float *cores) {
    switch (column) {
    case FEATURE_DEVICE:
        return read_device(reader, field, &row->features[column]);
    case COLUMN_TIME:
        return read_time(reader, field, &row->seconds);
    case COLUMN_MODEL:
        return field.len > 0 ? 0 : fail(reader, column, field, "a name");
    case COLUMN_CORES:
        return read_number(reader, column, field, cores);
    default:
        return read_number(reader, column, field, &row->features[column]);
    }
}

static int read_row(struct training *training, const struct reader *reader, const char *line,
                    size_t len) {
    struct field fields[MAX_COLUMNS];
    size_t n = split(line, len, fields);
    struct training_row row = {0};
    float cores = original_cores;
    for (int column = 0; column < N_COLUMNS; column++) {
        int at = reader->columns[column];
        if (at < 0) {
            continue;
        }
        if ((size_t)at >= n) {
            return error_set(reader->err, -EINVAL, "%s: line %zu: %s is missing", reader->name,
                             reader->line, column_name(column));
        }
        int r = read_column(reader, column, fields[at], &row, &cores);
        if (r < 0) {
            return r;
        }
    }
    cores = cores <= 0 || cores > original_cores ? original_cores : cores;
    row.features[FEATURE_LOAD] *= cores / original_cores;
    struct field model = fields[reader->columns[COLUMN_MODEL]];
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, model.text, model.len);
    return training_add(training, &row, buf_str(&name), reader->err);
}

static int find_model(struct training *training, const char *model, size_t *ret_index) {
    for (size_t i = 0; i < training->n_models; i++) {
        if (strcmp(training->models[i], model) == 0) {
            *ret_index = i;
            return 0;
        }
    }
    char **models = realloc(training->models, (training->n_models + 1) * sizeof(*models));
    if (models == NULL) {
        return -ENOMEM;
    }
    training->models = models;
    models[training->n_models] = strdup(model);
    *ret_index = training->n_models;
    return models[training->n_models++] != NULL ? 0 : -ENOMEM;
}

int training_add(struct training *training, const struct training_row *row, const char *model,
                 struct error *err) {
    if (training->n_rows == training->cap_rows) {
        size_t cap = training->cap_rows == 0 ? 256 : 2 * training->cap_rows;
        struct training_row *rows = realloc(training->rows, cap * sizeof(*rows));
        if (rows == NULL) {
            return error_set(err, -ENOMEM, "out of memory");
        }
        training->rows = rows;
        training->cap_rows = cap;
    }
    struct training_row *added = &training->rows[training->n_rows];
    *added = *row;
    if (find_model(training, model, &added->model) < 0) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    training->n_rows++;
    return 0;
}

int training_parse(struct training *training, const char *name, const char *text, size_t len,
                   struct error *err) {
    struct reader reader = {.name = name, .line = 0, .err = err};
    const char *end = text + len;
    int r = 0;
    for (const char *line = text; r == 0 && line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *next = newline != NULL ? newline + 1 : end;
        size_t line_len = (size_t)((newline != NULL ? newline : end) - line);
        line_len -= line_len > 0 && line[line_len - 1] == '\r';
        if (++reader.line == 1) {
            r = read_header(&reader, line, line_len);
        } else if (line_len > 0) {
            r = read_row(training, &reader, line, line_len);
        }
        line = next;
    }
    return r == 0 && reader.line == 0 ? error_set(err, -EINVAL, "%s: empty file", name) : r;
}

int training_read(struct training *training, const char *path, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read_stored(path, MAX_FILE, &text, err);
    return r < 0 ? r : training_parse(training, path, buf_str(&text), text.len, err);
}

void training_finish(struct training *training) {
    for (size_t i = 0; i < training->n_models; i++) {
        free(training->models[i]);
    }
    free(training->models);
    free(training->rows);
    *training = (struct training){.n_rows = 0};
}
