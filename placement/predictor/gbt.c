#include "placement/predictor/gbt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "placement/predictor/gbt_private.h"

enum { ROUNDS = 145 };

/* base_score is given, as versions differ in what they estimate, and how they write that down. One
 * thread makes training come out the same everywhere. */
static const char *const params[][2] = {
    {"objective", "reg:squarederror"},
    {"base_score", "0.5"},
    {"max_depth", "6"},
    {"eta", "0.1"},
    {"seed", "42"},
    {"nthread", "1"},
    {"tree_method", "hist"},
};

struct gbt *gbt_create(struct error *err) {
    const struct gbt_library *library = gbt_library_get(err);
    if (library == NULL) {
        return NULL;
    }
    struct gbt *gbt = calloc(1, sizeof(*gbt));
    if (gbt == NULL) {
        error_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    gbt->library = library;
    return gbt;
}

void gbt_destroy(struct gbt *gbt) {
    if (gbt != NULL && gbt->booster != NULL) {
        gbt->library->free(gbt->booster);
    }
    free(gbt);
}

static int check_data(const struct gbt_data *data, struct error *err) {
    if (data->n_rows == 0) {
        return error_set(err, -EINVAL, "no rows to train with");
    }
    if (data->n_features == 0 || data->n_features > GBT_MAX_FEATURES) {
        return error_set(err, -EINVAL, "%zu features: expected 1 to %d", data->n_features,
                         GBT_MAX_FEATURES);
    }
    for (size_t i = 0; i < data->n_rows * data->n_features; i++) {
        if (!isfinite(data->rows[i])) {
            return error_set(err, -EINVAL, "row %zu: %s is no number", i / data->n_features + 1,
                             data->names[i % data->n_features]);
        }
    }
    for (size_t i = 0; i < data->n_rows; i++) {
        if (!isfinite(data->labels[i])) {
            return error_set(err, -EINVAL, "row %zu: what is to be predicted is no number", i + 1);
        }
    }
    return 0;
}

static void note_features(const struct gbt_data *data, struct gbt *gbt) {
    gbt->n_features = data->n_features;
    gbt->about.n_rows = data->n_rows;
    for (size_t i = 0; i < data->n_features; i++) {
        struct gbt_feature *feature = &gbt->features[i];
        snprintf(feature->name, sizeof(feature->name), "%s", data->names[i]);
        feature->min = feature->max = data->rows[i];
        for (size_t row = 1; row < data->n_rows; row++) {
            float value = data->rows[row * data->n_features + i];
            feature->min = fminf(feature->min, value);
            feature->max = fmaxf(feature->max, value);
        }
    }
}

/* Rows from all over the data, with what comes out for them here. */
static int note_checks(const struct gbt_data *data, struct gbt *gbt, struct error *err) {
    gbt->n_checks = data->n_rows < GBT_MAX_CHECKS ? data->n_rows : GBT_MAX_CHECKS;
    for (size_t i = 0; i < gbt->n_checks; i++) {
        struct gbt_check *check = &gbt->checks[i];
        const float *row = &data->rows[i * data->n_rows / gbt->n_checks * data->n_features];
        memcpy(check->row, row, data->n_features * sizeof(*row));
        int r = gbt_predict(gbt, check->row, 1, &check->expected, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int boost(const struct gbt_data *data, struct gbt *gbt, void *matrix, struct error *err) {
    const struct gbt_library *library = gbt->library;
    if (library->matrix_set_floats(matrix, "label", data->labels, data->n_rows) < 0 ||
        library->create(&matrix, 1, &gbt->booster) < 0) {
        return gbt_library_fail(library, err, "training");
    }
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        if (library->set_param(gbt->booster, params[i][0], params[i][1]) < 0) {
            return gbt_library_fail(library, err, params[i][0]);
        }
    }
    const char *names[GBT_MAX_FEATURES];
    memcpy(names, data->names, data->n_features * sizeof(names[0]));
    if (library->set_feature_texts(gbt->booster, "feature_name", names, data->n_features) < 0) {
        return gbt_library_fail(library, err, "training");
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (library->update(gbt->booster, round, matrix) < 0) {
            return gbt_library_fail(library, err, "training");
        }
    }
    return 0;
}

int gbt_train(const struct gbt_data *data, struct gbt **ret_gbt, struct error *err) {
    int r = check_data(data, err);
    if (r < 0) {
        return r;
    }
    struct gbt *gbt CLEANUP_GBT = gbt_create(err);
    if (gbt == NULL) {
        return -ENOENT;
    }
    void *matrix;
    if (gbt->library->matrix_create(data->rows, data->n_rows, data->n_features, NAN, &matrix) < 0) {
        return gbt_library_fail(gbt->library, err, "training data");
    }
    r = boost(data, gbt, matrix, err);
    gbt->library->matrix_free(matrix);
    if (r < 0) {
        return r;
    }
    note_features(data, gbt);
    r = note_checks(data, gbt, err);
    if (r == 0) {
        *ret_gbt = TAKE(gbt);
    }
    return r;
}

int gbt_predict(struct gbt *gbt, const float *rows, size_t n_rows, float *ret, struct error *err) {
    static const char config[] = "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, "
                                 "\"iteration_end\": 0, \"strict_shape\": false}";
    const struct gbt_library *library = gbt->library;
    void *matrix;
    if (n_rows == 0) {
        return 0;
    }
    if (library->matrix_create(rows, n_rows, gbt->n_features, NAN, &matrix) < 0) {
        return gbt_library_fail(library, err, "prediction");
    }
    const uint64_t *shape;
    uint64_t n_dims;
    const float *result;
    int r = library->predict_matrix(gbt->booster, matrix, config, &shape, &n_dims, &result);
    if (r < 0) {
        r = gbt_library_fail(library, err, "prediction");
    } else if (n_dims < 1 || shape[0] != n_rows) {
        r = error_set(err, -EINVAL, "prediction: a model of several numbers");
    } else {
        memcpy(ret, result, n_rows * sizeof(*ret));
    }
    library->matrix_free(matrix);
    return r;
}

void gbt_range(const struct gbt *gbt, size_t feature, float *ret_min, float *ret_max) {
    *ret_min = gbt->features[feature].min;
    *ret_max = gbt->features[feature].max;
}

const struct gbt_about *gbt_about(const struct gbt *gbt) {
    return &gbt->about;
}
