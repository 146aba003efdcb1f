#include "placement/predictor/validation.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { MAX_FOLDS = 10, N_DEVICES = 3 };

/* Rows laid out as the trees want them. Trained is the logarithm: a tenth more or less counts the
 * same for a model of milliseconds as for one of seconds, and no prediction is below zero. */
struct matrix {
    float *rows;
    float *labels;
    size_t n_rows;
};

static int matrix_init(struct matrix *matrix, size_t max_rows, struct error *err) {
    *matrix = (struct matrix){
        .rows = malloc((max_rows + 1) * N_FEATURES * sizeof(float)),
        .labels = malloc((max_rows + 1) * sizeof(float)),
    };
    if (matrix->rows == NULL || matrix->labels == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

static void matrix_finish(struct matrix *matrix) {
    free(matrix->rows);
    free(matrix->labels);
}
#define CLEANUP_MATRIX CLEANUP(matrix_finish)

static void matrix_add(struct matrix *matrix, const struct training_row *row) {
    memcpy(&matrix->rows[matrix->n_rows * N_FEATURES], row->features, sizeof(row->features));
    matrix->labels[matrix->n_rows++] = logf(row->seconds);
}

static int train(const struct matrix *matrix, struct gbt **ret_gbt, struct error *err) {
    struct gbt_data data = {
        .names = feature_names,
        .n_features = N_FEATURES,
        .rows = matrix->rows,
        .labels = matrix->labels,
        .n_rows = matrix->n_rows,
    };
    return gbt_train(&data, ret_gbt, err);
}

int validation_train(const struct training *training, struct gbt **ret_gbt, struct error *err) {
    struct matrix matrix CLEANUP_MATRIX = {0};
    int r = matrix_init(&matrix, training->n_rows, err);
    for (size_t i = 0; r == 0 && i < training->n_rows; i++) {
        matrix_add(&matrix, &training->rows[i]);
    }
    return r < 0 ? r : train(&matrix, ret_gbt, err);
}

/* A number per row that only depends on where it stands: the same folds every time. */
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
    struct matrix with CLEANUP_MATRIX = {0}, without CLEANUP_MATRIX = {0};
    struct gbt *gbt CLEANUP_GBT = NULL;
    int r = matrix_init(&with, training->n_rows, err);
    r = r < 0 ? r : matrix_init(&without, training->n_rows, err);
    for (size_t i = 0; r == 0 && i < training->n_rows; i++) {
        matrix_add(folds[i] == fold ? &without : &with, &training->rows[i]);
    }
    if (r < 0 || without.n_rows == 0) {
        return r;
    }
    r = train(&with, &gbt, err);
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
    float *predicted CLEANUP_FREE = calloc(training->n_rows, sizeof(*predicted));
    size_t *folds CLEANUP_FREE = calloc(training->n_rows, sizeof(*folds));
    if (predicted == NULL || folds == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
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

/* The rows of one model, by kind of device, in the order of the file. */
struct runs {
    size_t *rows[N_DEVICES];
    size_t n[N_DEVICES];
};

/* The n-th runs on each kind of device are what a placement chooses from. */
static void score_choice(const struct training *training, const float *predicted,
                         const struct runs *runs, size_t turn, struct validation *validation) {
    size_t chosen = SIZE_MAX, best = SIZE_MAX, n = 0;
    for (size_t device = 0; device < N_DEVICES; device++) {
        if (turn >= runs->n[device]) {
            continue;
        }
        size_t row = runs->rows[device][turn];
        n++;
        chosen = chosen == SIZE_MAX || predicted[row] < predicted[chosen] ? row : chosen;
        best = best == SIZE_MAX || training->rows[row].seconds < training->rows[best].seconds
                   ? row
                   : best;
    }
    if (n > 1) {
        validation->n_choices++;
        validation->top1 += chosen == best;
        validation->regret +=
            (double)training->rows[chosen].seconds / (double)training->rows[best].seconds - 1;
    }
}

static void score_choices(const struct training *training, const float *predicted, size_t *room,
                          struct validation *validation) {
    for (size_t model = 0; model < training->n_models; model++) {
        struct runs runs = {.rows = {room, room + training->n_rows, room + 2 * training->n_rows}};
        size_t n_turns = 0;
        for (size_t i = 0; i < training->n_rows; i++) {
            const struct training_row *row = &training->rows[i];
            size_t device = (size_t)((int)row->features[FEATURE_DEVICE] - DEVICE_OTHER);
            if (row->model == model && device < N_DEVICES) {
                runs.rows[device][runs.n[device]++] = i;
                n_turns = runs.n[device] > n_turns ? runs.n[device] : n_turns;
            }
        }
        for (size_t turn = 0; turn < n_turns; turn++) {
            score_choice(training, predicted, &runs, turn, validation);
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
    size_t *room CLEANUP_FREE = malloc(N_DEVICES * training->n_rows * sizeof(*room));
    if (room != NULL) {
        score_choices(training, predicted_seconds, room, validation);
    }
    if (validation->n_choices > 0) {
        validation->top1 /= (double)validation->n_choices;
        validation->regret /= (double)validation->n_choices;
    }
}
