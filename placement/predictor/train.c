#include "placement/predictor/train.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/scan.h"
#include "exporter/settings/flags.h"

/* ---- runs ---- */

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

struct reader {
    const char *name;
    size_t line;
    int columns[N_COLUMNS]; /* index of each; -1: missing */
    struct error *err;
};

static const char *column_name(int column) {
    static const char *const others[] = {"execution_time", "model_name", "device_cpu_cores"};
    return column < N_FEATURES ? feature_names[column] : others[column - N_FEATURES];
}

/* Splits a line at its commas outside of quotes; returns how many fields. */
static size_t split(const char *line, size_t len, struct scan_word *fields) {
    size_t n = 0;
    const char *end = line + len;
    for (const char *at = line; n < MAX_COLUMNS; at++) {
        const char *start = at;
        bool quoted = false;
        for (; at < end && (*at != ',' || quoted); at++) {
            quoted = quoted != (*at == '"');
        }
        struct scan_word field = {start, (size_t)(at - start)};
        if (field.len >= 2 && start[0] == '"' && start[field.len - 1] == '"') {
            field = (struct scan_word){start + 1, field.len - 2};
        }
        fields[n++] = field;
        if (at >= end) {
            break;
        }
    }
    return n;
}

static int read_header(struct reader *reader, const char *line, size_t len) {
    struct scan_word fields[MAX_COLUMNS];
    size_t n = split(line, len, fields);
    for (int column = 0; column < N_COLUMNS; column++) {
        const char *name = column_name(column);
        reader->columns[column] = -1;
        for (size_t i = 0; i < n; i++) {
            if (scan_word_equal(fields[i], name)) {
                reader->columns[column] = (int)i;
            }
        }
        if (reader->columns[column] < 0 && column != COLUMN_CORES) {
            return error_set(reader->err, -EINVAL, "%s: line 1: no column %s", reader->name, name);
        }
    }
    return 0;
}

static int fail(const struct reader *reader, int column, struct scan_word field,
                const char *expected) {
    return error_set(reader->err, -EINVAL, "%s: line %zu: %s: expected %s, got \"%.*s\"",
                     reader->name, reader->line, column_name(column), expected,
                     (int)(field.len < 64 ? field.len : 64), field.text);
}

static int read_number(const struct reader *reader, int column, struct scan_word field,
                       float *ret_number) {
    double number;
    if (number_parse(field.text, field.len, &number) < 0 || !isfinite(number)) {
        return fail(reader, column, field, "a number");
    }
    *ret_number = (float)number;
    return 0;
}

/* Seconds, or "HH:MM:SS.ffffff". */
static int read_time(const struct reader *reader, struct scan_word field, float *ret_seconds) {
    double seconds = 0;
    struct scan_word part = field;
    const char *colon;
    bool ok = true;
    do {
        colon = memchr(part.text, ':', part.len);
        size_t len = colon != NULL ? (size_t)(colon - part.text) : part.len;
        double number = 0;
        ok = number_parse(part.text, len, &number) == 0;
        seconds = 60 * seconds + number;
        part = (struct scan_word){part.text + len + 1, part.len - len - (colon != NULL)};
    } while (ok && colon != NULL);
    if (!ok || !isfinite(seconds) || seconds <= 0) {
        return fail(reader, COLUMN_TIME, field, "seconds or HH:MM:SS above 0");
    }
    *ret_seconds = (float)seconds;
    return 0;
}

/* A number, or the name of a kind of device. */
static int read_device(const struct reader *reader, struct scan_word field, float *ret_device) {
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

static int read_column(const struct reader *reader, int column, struct scan_word field,
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
    struct scan_word fields[MAX_COLUMNS];
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
    struct scan_word model = fields[reader->columns[COLUMN_MODEL]];
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, model.text, model.len);
    training_add(training, &row, buf_str(&name));
    return 0;
}

static size_t find_model(struct training *training, const char *model) {
    size_t i = 0;
    while (i < training->n_models && strcmp(training->models[i], model) != 0) {
        i++;
    }
    if (i == training->n_models) {
        ARRAY_GROW(&training->models, &training->cap_models, i + 1);
        training->models[training->n_models++] = mem_strdup(model);
    }
    return i;
}

void training_add(struct training *training, const struct training_row *row, const char *model) {
    ARRAY_GROW(&training->rows, &training->cap_rows, training->n_rows + 1);
    struct training_row *added = &training->rows[training->n_rows++];
    *added = *row;
    added->model = find_model(training, model);
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

static int training_read(struct training *training, const char *path, struct error *err) {
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

/* ---- validation ---- */

enum { MAX_FOLDS = 10, N_DEVICES = 3 };

static struct gbt_data data_of(size_t max_rows) {
    return (struct gbt_data){
        .names = feature_names,
        .n_features = N_FEATURES,
        .rows = mem_zalloc((max_rows + 1) * N_FEATURES, sizeof(float)),
        .labels = mem_zalloc(max_rows + 1, sizeof(float)),
    };
}

static void data_finish(struct gbt_data *data) {
    free(data->rows);
    free(data->labels);
}
#define CLEANUP_DATA CLEANUP(data_finish)

/* The label is the logarithm of the run time: an error of 10 % counts the same for short and long
 * runs, and no prediction is below zero. */
static void data_add(struct gbt_data *data, const struct training_row *row) {
    memcpy(&data->rows[data->n_rows * N_FEATURES], row->features, sizeof(row->features));
    data->labels[data->n_rows++] = logf(row->seconds);
}

/* A number that depends only on the row's index: the same folds every time. */
static uint64_t shuffled(uint64_t i) {
    i = (i + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    i = (i ^ i >> 27) * UINT64_C(0x94d049bb133111eb);
    return i ^ i >> 31;
}

static size_t fold_of(const struct training *training, enum validation_kind kind, size_t row,
                      size_t n_folds) {
    return kind == VALIDATION_GROUPED ? training->rows[row].model % n_folds
                                      : (size_t)(shuffled(row) % n_folds);
}

static int run_fold(const struct training *training, const size_t *folds, size_t fold,
                    float *predicted_seconds, struct error *err) {
    struct gbt_data with CLEANUP_DATA = data_of(training->n_rows);
    struct gbt_data without CLEANUP_DATA = data_of(training->n_rows);
    struct gbt *gbt CLEANUP_GBT = NULL;
    for (size_t i = 0; i < training->n_rows; i++) {
        data_add(folds[i] == fold ? &without : &with, &training->rows[i]);
    }
    if (without.n_rows == 0) {
        return 0;
    }
    int r = gbt_train(&with, &gbt, err);
    r = r < 0 ? r : gbt_predict(gbt, without.rows, without.n_rows, without.labels, err);
    size_t taken = 0;
    for (size_t i = 0; r == 0 && i < training->n_rows; i++) {
        if (folds[i] == fold) {
            predicted_seconds[i] = expf(without.labels[taken++]);
        }
    }
    return r;
}

int validation_run(const struct training *training, enum validation_kind kind,
                   struct validation *ret_validation, struct error *err) {
    size_t n_units = kind == VALIDATION_GROUPED ? training->n_models : training->n_rows;
    size_t n_folds = n_units < MAX_FOLDS ? n_units : MAX_FOLDS;
    if (n_folds < 2) {
        return error_set(err, -EINVAL, "cannot be validated: %zu %s, and at least 2 are needed",
                         n_units, kind == VALIDATION_GROUPED ? "model" : "row");
    }
    float *predicted CLEANUP_FREE = mem_zalloc(training->n_rows, sizeof(*predicted));
    size_t *folds CLEANUP_FREE = mem_zalloc(training->n_rows, sizeof(*folds));
    for (size_t i = 0; i < training->n_rows; i++) {
        folds[i] = fold_of(training, kind, i, n_folds);
    }
    for (size_t fold = 0; fold < n_folds; fold++) {
        int r = run_fold(training, folds, fold, predicted, err);
        if (r < 0) {
            return r;
        }
    }
    struct validation validation = {.n_folds = n_folds};
    validation_score(training, predicted, &validation);
    *ret_validation = validation;
    return 0;
}

/* ---- scores ---- */

/* Indices of rows: a placement chooses among the n-th runs of a model on each kind of device. */
struct choice {
    size_t n_devices, chosen, best;
};

static void add_run(const struct training *training, const float *predicted, size_t row,
                    struct choice *choice) {
    if (choice->n_devices++ == 0) {
        choice->chosen = choice->best = row;
    }
    if (predicted[row] < predicted[choice->chosen]) {
        choice->chosen = row;
    }
    if (training->rows[row].seconds < training->rows[choice->best].seconds) {
        choice->best = row;
    }
}

static void score_model(const struct training *training, const float *predicted, size_t model,
                        struct choice *choices, struct validation *validation) {
    size_t n[N_DEVICES] = {0}, n_choices = 0;
    for (size_t i = 0; i < training->n_rows; i++) {
        const struct training_row *row = &training->rows[i];
        size_t device = (size_t)((int)row->features[FEATURE_DEVICE] - DEVICE_OTHER);
        if (row->model != model || device >= N_DEVICES) {
            continue;
        }
        if (n[device] == n_choices) {
            choices[n_choices++].n_devices = 0;
        }
        add_run(training, predicted, i, &choices[n[device]++]);
    }
    for (const struct choice *choice = choices; choice < choices + n_choices; choice++) {
        if (choice->n_devices > 1) {
            validation->n_choices++;
            validation->top1 += choice->chosen == choice->best;
            validation->regret += (double)training->rows[choice->chosen].seconds /
                                      (double)training->rows[choice->best].seconds -
                                  1;
        }
    }
}

void validation_score(const struct training *training, const float *predicted_seconds,
                      struct validation *validation) {
    double absolute = 0, squared = 0, relative = 0, n = (double)training->n_rows;
    for (size_t i = 0; i < training->n_rows; i++) {
        double measured = (double)training->rows[i].seconds;
        double error = fabs((double)predicted_seconds[i] - measured);
        absolute += error;
        squared += error * error;
        relative += error / measured;
    }
    validation->mae_seconds = absolute / n;
    validation->rmse_seconds = sqrt(squared / n);
    validation->mape = relative / n;
    struct choice *choices CLEANUP_FREE = mem_zalloc(training->n_rows, sizeof(*choices));
    for (size_t model = 0; model < training->n_models; model++) {
        score_model(training, predicted_seconds, model, choices, validation);
    }
    if (validation->n_choices > 0) {
        validation->top1 /= (double)validation->n_choices;
        validation->regret /= (double)validation->n_choices;
    }
}

/* ---- the command ---- */

static const char usage[] =
    "usage: waap place train DATA.csv... --out=MODEL.json [flags]\n\n"
    "Trains the predictor of waap place with measured runs. The columns are those of the\n"
    "original's data, found by their names: conv_layers, device (raspberrypi, jetson,\n"
    "desktop), device_disk_usage_percent, device_load_percent, disk_io_read_bytes,\n"
    "disk_io_write_bytes, execution_time (seconds or HH:MM:SS), filter_details,\n"
    "fully_conn_layers, model_name, pool_layers, total_parameters; others are passed over.\n"
    "With a column device_cpu_cores the load is that of each of so many of four cores.\n\n"
    "First it shows how well models are predicted that it was not trained with, and beside\n"
    "that rows at random, which flatters. Then it trains with everything and saves that.\n"
    "The same data give the same file.\n\n";

static const struct option options[] = {
    {"out", OPTION_STRING, .help = "File of the predictor, .json or .ubj"},
    {"simulated", OPTION_BOOL, .help = "Mark it as trained with made-up data"},
    {"validation", OPTION_BOOL, .default_text = "true", .help = "Show how well it predicts"},
    {0},
};

static int validate(const struct training *training, struct error *err) {
    static const char *const titles[] = {
        [VALIDATION_GROUPED] = "models it has not seen",
        [VALIDATION_RANDOM] = "rows at random",
    };
    printf("%-26s %5s %10s %10s %9s %8s %8s\n", "cross-validation", "folds", "MAE", "RMSE", "MAPE",
           "top-1", "regret");
    for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
        struct validation v;
        int r = validation_run(training, (enum validation_kind)i, &v, err);
        if (r < 0) {
            return r;
        }
        printf("%-26s %5zu %8.3f s %8.3f s %7.1f %%", titles[i], v.n_folds, v.mae_seconds,
               v.rmse_seconds, 100 * v.mape);
        if (v.n_choices > 0) {
            printf(" %6.1f %% %6.1f %%\n", 100 * v.top1, 100 * v.regret);
        } else {
            printf("   (one kind of device only)\n");
        }
    }
    return 0;
}

static int save(const struct training *training, const char *path, bool simulated,
                struct error *err) {
    struct gbt *gbt CLEANUP_GBT = NULL;
    struct gbt_data data CLEANUP_DATA = data_of(training->n_rows);
    for (size_t i = 0; i < training->n_rows; i++) {
        data_add(&data, &training->rows[i]);
    }
    int r = gbt_train(&data, &gbt, err);
    if (r < 0) {
        return r;
    }
    struct buf trained CLEANUP_BUF = {0};
    buf_printf(&trained, "%zu %s runs of %zu models", training->n_rows,
               simulated ? "simulated" : "measured", training->n_models);
    r = gbt_save(gbt, simulated, buf_str(&trained), path, err);
    if (r == 0) {
        printf("%s: trained with %s\n", path, buf_str(&trained));
    }
    return r;
}

int train_main(int argc, char **argv) {
    struct flags flags CLEANUP_FLAGS;
    int code = flags_begin(&flags, usage, options, argc, argv);
    if (code >= 0) {
        return code;
    }
    const char *out = settings_string(flags.settings, "out");
    if (flags.n_words == 0 || out[0] == '\0') {
        fprintf(stderr, "waap place train: expected %s (see --help)\n",
                flags.n_words == 0 ? "a DATA.csv" : "--out=MODEL.json");
        return 2;
    }
    struct training training CLEANUP_TRAINING = {0};
    struct error err = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < flags.n_words; i++) {
        r = training_read(&training, flags.words[i], &err);
    }
    if (r == 0 && settings_bool(flags.settings, "validation")) {
        r = validate(&training, &err);
    }
    r = r < 0 ? r : save(&training, out, settings_bool(flags.settings, "simulated"), &err);
    if (r < 0) {
        fflush(stdout);
        fprintf(stderr, "waap place train: %s\n", err.text);
        return 1;
    }
    return 0;
}
