#include "placement/predictor/gbt.h"

#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* XGBoost's C interface, looked up at run time: only training and predicting need it, and building
 * needs nothing of it. The calls are those that versions 1.7 to 3 have in common; they return 0, or
 * -1 and a text. */
struct library {
    void (*version)(int *major, int *minor, int *patch);
    const char *(*last_error)(void);
    int (*set_global_config)(const char *json);
    int (*matrix_create)(const float *data, uint64_t n_rows, uint64_t n_columns, float missing,
                         void **ret);
    int (*matrix_set_floats)(void *matrix, const char *field, const float *array, uint64_t len);
    int (*matrix_free)(void *matrix);
    int (*create)(void *const *matrices, uint64_t len, void **ret);
    int (*free)(void *booster);
    int (*set_param)(void *booster, const char *name, const char *value);
    int (*update)(void *booster, int round, void *matrix);
    int (*n_features)(void *booster, uint64_t *ret);
    int (*predict_matrix)(void *booster, void *matrix, const char *config,
                          const uint64_t **ret_shape, uint64_t *ret_dim, const float **ret_result);
    int (*load)(void *booster, const void *data, uint64_t len);
    int (*save)(void *booster, const char *config, uint64_t *ret_len, const char **ret_data);
    int (*get_attribute)(void *booster, const char *key, const char **ret_value, int *ret_found);
    int (*set_attribute)(void *booster, const char *key, const char *value);
    int (*set_feature_texts)(void *booster, const char *field, const char **texts, uint64_t len);
};

struct gbt {
    const struct library *library;
    void *booster;
    struct gbt_notes notes;
};

/* ---- the library ---- */

/* Debian 12 and 13, then what follows. */
static const char *const library_names[] = {"libxgboost.so.0", "libxgboost.so.3", "libxgboost.so"};

static const struct {
    const char *name;
    size_t where;
} symbols[] = {
    {"XGBGetLastError", offsetof(struct library, last_error)},
    {"XGBSetGlobalConfig", offsetof(struct library, set_global_config)},
    {"XGBoostVersion", offsetof(struct library, version)},
    {"XGBoosterCreate", offsetof(struct library, create)},
    {"XGBoosterFree", offsetof(struct library, free)},
    {"XGBoosterGetAttr", offsetof(struct library, get_attribute)},
    {"XGBoosterGetNumFeature", offsetof(struct library, n_features)},
    {"XGBoosterLoadModelFromBuffer", offsetof(struct library, load)},
    {"XGBoosterPredictFromDMatrix", offsetof(struct library, predict_matrix)},
    {"XGBoosterSaveModelToBuffer", offsetof(struct library, save)},
    {"XGBoosterSetAttr", offsetof(struct library, set_attribute)},
    {"XGBoosterSetParam", offsetof(struct library, set_param)},
    {"XGBoosterSetStrFeatureInfo", offsetof(struct library, set_feature_texts)},
    {"XGBoosterUpdateOneIter", offsetof(struct library, update)},
    {"XGDMatrixCreateFromMat", offsetof(struct library, matrix_create)},
    {"XGDMatrixFree", offsetof(struct library, matrix_free)},
    {"XGDMatrixSetFloatInfo", offsetof(struct library, matrix_set_floats)},
};

/* The library, loaded at the first call; NULL with an error if this machine has none. */
static const struct library *load_library(struct error *err) {
    static struct library library;
    static bool loaded;
    if (loaded) {
        return &library;
    }
    /* Read by OpenMP while it is loaded: its threads would take memory and, by spinning, CPU time.
     */
    setenv("OMP_NUM_THREADS", "1", 0);
    void *dl = NULL;
    for (size_t i = 0; dl == NULL && i < ARRAY_LEN(library_names); i++) {
        dl = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (dl == NULL) {
        error_set(err, -ENOENT, "no libxgboost on this machine (Debian: apt install libxgboost0)");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *symbol = dlsym(dl, symbols[i].name);
        if (symbol == NULL) {
            error_set(err, -ENOSYS, "libxgboost has no %s: too old", symbols[i].name);
            dlclose(dl);
            return NULL;
        }
        memcpy((char *)&library + symbols[i].where, &symbol, sizeof(symbol));
    }
    library.set_global_config("{\"verbosity\": 0}");
    loaded = true;
    return &library;
}

/* Words what the library reports, without the stack trace that it adds; returns -EINVAL.
 * "[14:02:11] ../src/learner.cc:1009: Check failed: …\nStack trace:\n  [bt] (0) …": the words
 * behind the place in the source. */
static int library_fail(const struct library *library, struct error *err, const char *what) {
    const char *text = library->last_error();
    size_t len = strcspn(text, "\n");
    const char *words = text[0] == '[' ? memmem(text, len, ": ", 2) : NULL;
    if (words != NULL) {
        len -= (size_t)(words + 2 - text);
        text = words + 2;
    }
    while (len > 0 && text[len - 1] == ' ') {
        len--;
    }
    return error_set(err, -EINVAL, "%s: %.*s", what, (int)len, text);
}

/* ---- training ---- */

enum { ROUNDS = 145 };

/* base_score is fixed, as versions estimate and store it differently. With one thread, training
 * gives the same result everywhere. */
static const char *const params[][2] = {
    {"objective", "reg:squarederror"},
    {"base_score", "0.5"},
    {"max_depth", "6"},
    {"eta", "0.1"},
    {"seed", "42"},
    {"nthread", "1"},
    {"tree_method", "hist"},
};

/* NULL with an error if there is no library. */
static struct gbt *gbt_create(struct error *err) {
    const struct library *library = load_library(err);
    struct gbt *gbt = NULL;
    if (library != NULL) {
        gbt = mem_zalloc(1, sizeof(*gbt));
        gbt->library = library;
    }
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
            return error_set(err, -EINVAL, "row %zu: %s is not a number", i / data->n_features + 1,
                             data->names[i % data->n_features]);
        }
    }
    for (size_t i = 0; i < data->n_rows; i++) {
        if (!isfinite(data->labels[i])) {
            return error_set(err, -EINVAL, "row %zu: the label is not a number", i + 1);
        }
    }
    return 0;
}

static void note_features(const struct gbt_data *data, struct gbt *gbt) {
    gbt->notes.n_features = data->n_features;
    gbt->notes.n_rows = data->n_rows;
    for (size_t i = 0; i < data->n_features; i++) {
        struct gbt_feature *feature = &gbt->notes.features[i];
        snprintf(feature->name, sizeof(feature->name), "%s", data->names[i]);
        feature->min = feature->max = data->rows[i];
        for (size_t row = 1; row < data->n_rows; row++) {
            float value = data->rows[row * data->n_features + i];
            feature->min = fminf(feature->min, value);
            feature->max = fmaxf(feature->max, value);
        }
    }
}

static int predict_checks(struct gbt *gbt, struct error *err) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < gbt->notes.n_checks; i++) {
        struct gbt_check *check = &gbt->notes.checks[i];
        r = gbt_predict(gbt, check->row, 1, &check->expected, err);
    }
    return r;
}

/* Rows from all over the data, with their predictions. */
static int note_checks(const struct gbt_data *data, struct gbt *gbt, struct error *err) {
    gbt->notes.n_checks = data->n_rows < GBT_MAX_CHECKS ? data->n_rows : GBT_MAX_CHECKS;
    for (size_t i = 0; i < gbt->notes.n_checks; i++) {
        const float *row = &data->rows[i * data->n_rows / gbt->notes.n_checks * data->n_features];
        memcpy(gbt->notes.checks[i].row, row, data->n_features * sizeof(*row));
    }
    return predict_checks(gbt, err);
}

static int boost(const struct gbt_data *data, struct gbt *gbt, void *matrix, struct error *err) {
    const struct library *library = gbt->library;
    if (library->matrix_set_floats(matrix, "label", data->labels, data->n_rows) < 0 ||
        library->create(&matrix, 1, &gbt->booster) < 0) {
        return library_fail(library, err, "training");
    }
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        if (library->set_param(gbt->booster, params[i][0], params[i][1]) < 0) {
            return library_fail(library, err, params[i][0]);
        }
    }
    const char *names[GBT_MAX_FEATURES];
    memcpy(names, data->names, data->n_features * sizeof(names[0]));
    if (library->set_feature_texts(gbt->booster, "feature_name", names, data->n_features) < 0) {
        return library_fail(library, err, "training");
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (library->update(gbt->booster, round, matrix) < 0) {
            return library_fail(library, err, "training");
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
        return library_fail(gbt->library, err, "training data");
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
    const struct library *library = gbt->library;
    void *matrix;
    if (n_rows == 0) {
        return 0;
    }
    if (library->matrix_create(rows, n_rows, gbt->notes.n_features, NAN, &matrix) < 0) {
        return library_fail(library, err, "prediction");
    }
    const uint64_t *shape;
    uint64_t n_dims;
    const float *result;
    int r = library->predict_matrix(gbt->booster, matrix, config, &shape, &n_dims, &result);
    if (r < 0) {
        r = library_fail(library, err, "prediction");
    } else if (n_dims != 1 || shape[0] != n_rows) {
        r = error_set(err, -EINVAL, "prediction: a model with more than one output");
    } else {
        memcpy(ret, result, n_rows * sizeof(*ret));
    }
    library->matrix_free(matrix);
    return r;
}

const struct gbt_notes *gbt_notes(const struct gbt *gbt) {
    return &gbt->notes;
}

/* ---- notes ---- */

/* {"format": 1, "xgboost": "1.7.4", "simulated": false, "seconds": false, "rows": 2400, "trained":
 * "…", "features": [{"name": "conv_layers", "min": 5, "max": 488}, …], "checks": [{"row": [5, …],
 * "expected": -1.5}, …]} */

enum { FORMAT = 1 };

static void json_cleanup(json_t **json) {
    json_decref(*json);
}
#define CLEANUP_JSON CLEANUP(json_cleanup)

void gbt_notes_write(const struct gbt_notes *notes, struct buf *out) {
    json_t *features = json_array(), *checks = json_array();
    for (size_t i = 0; i < notes->n_features; i++) {
        const struct gbt_feature *feature = &notes->features[i];
        json_array_append_new(features,
                              json_pack("{s:s,s:f,s:f}", "name", feature->name, "min",
                                        (double)feature->min, "max", (double)feature->max));
    }
    for (size_t i = 0; i < notes->n_checks; i++) {
        const struct gbt_check *check = &notes->checks[i];
        json_t *row = json_array();
        for (size_t k = 0; k < notes->n_features; k++) {
            json_array_append_new(row, json_real((double)check->row[k]));
        }
        json_array_append_new(
            checks, json_pack("{s:o,s:f}", "row", row, "expected", (double)check->expected));
    }
    json_t *root CLEANUP_JSON =
        json_pack("{s:i,s:s,s:b,s:b,s:I,s:s,s:o,s:o}", "format", FORMAT, "xgboost", notes->version,
                  "simulated", notes->simulated, "seconds", notes->in_seconds, "rows",
                  (json_int_t)notes->n_rows, "trained", notes->trained, "features", features,
                  "checks", checks);
    char *text CLEANUP_FREE = json_dumps(root, 0);
    buf_add_str(out, text != NULL ? text : "");
}

static int copy_text(char *to, size_t size, const char *text, struct error *err) {
    if (strlen(text) >= size) {
        return error_set(err, -EINVAL, "a text of more than %zu bytes", size - 1);
    }
    memcpy(to, text, strlen(text) + 1);
    return 0;
}

static int to_float(double number, float *ret, struct error *err) {
    if (fabs(number) > (double)FLT_MAX) {
        return error_set(err, -EINVAL, "%g does not fit a float", number);
    }
    *ret = (float)number;
    return 0;
}

static int read_feature(json_t *json, struct gbt_feature *feature, struct error *err) {
    json_error_t why;
    const char *name;
    double min, max;
    if (json_unpack_ex(json, &why, 0, "{s:s,s:F,s:F}", "name", &name, "min", &min, "max", &max) <
        0) {
        return error_set(err, -EINVAL, "features: %s", why.text);
    }
    int r = copy_text(feature->name, sizeof(feature->name), name, err);
    r = r < 0 ? r : to_float(min, &feature->min, err);
    return r < 0 ? r : to_float(max, &feature->max, err);
}

static int read_check(json_t *json, struct gbt_check *check, struct error *err) {
    json_error_t why;
    json_t *row, *number;
    double expected;
    size_t i;
    if (json_unpack_ex(json, &why, 0, "{s:o,s:F}", "row", &row, "expected", &expected) < 0) {
        return error_set(err, -EINVAL, "checks: %s", why.text);
    }
    int r = to_float(expected, &check->expected, err);
    if (json_array_size(row) > GBT_MAX_FEATURES) {
        r = error_set(err, -EINVAL, "a row of more than %d numbers", GBT_MAX_FEATURES);
    }
    json_array_foreach(row, i, number) {
        r = r < 0 ? r : to_float(json_number_value(number), &check->row[i], err);
    }
    return r;
}

static int read_lists(json_t *features, json_t *checks, struct gbt_notes *notes,
                      struct error *err) {
    int r = 0;
    if (json_array_size(features) > GBT_MAX_FEATURES || json_array_size(checks) > GBT_MAX_CHECKS) {
        return error_set(err, -EINVAL, "more than %d features or %d checks", GBT_MAX_FEATURES,
                         GBT_MAX_CHECKS);
    }
    for (; r == 0 && notes->n_features < json_array_size(features); notes->n_features++) {
        r = read_feature(json_array_get(features, notes->n_features),
                         &notes->features[notes->n_features], err);
    }
    for (; r == 0 && notes->n_checks < json_array_size(checks); notes->n_checks++) {
        r = read_check(json_array_get(checks, notes->n_checks), &notes->checks[notes->n_checks],
                       err);
    }
    return r;
}

int gbt_notes_read(const char *text, size_t len, struct gbt_notes *ret_notes, struct error *err) {
    json_error_t why;
    json_t *root CLEANUP_JSON = json_loadb(text, len, 0, &why);
    int format = FORMAT, simulated = 0, in_seconds = 0;
    json_int_t n_rows = 0;
    const char *version = "", *trained = "";
    json_t *features = NULL, *checks = NULL;
    if (root == NULL || json_unpack_ex(root, &why, 0, "{s?i,s?s,s?b,s?b,s?I,s?s,s?o,s?o}", "format",
                                       &format, "xgboost", &version, "simulated", &simulated,
                                       "seconds", &in_seconds, "rows", &n_rows, "trained", &trained,
                                       "features", &features, "checks", &checks) < 0) {
        return error_set(err, -EINVAL, "notes: %s", why.text);
    }
    if (format > FORMAT) {
        return error_set(err, -EINVAL, "notes: format %d is later than this program", format);
    }
    *ret_notes = (struct gbt_notes){.simulated = simulated,
                                    .in_seconds = in_seconds,
                                    .n_rows = n_rows > 0 ? (size_t)n_rows : 0};
    int r = copy_text(ret_notes->version, sizeof(ret_notes->version), version, err);
    r = r < 0 ? r : copy_text(ret_notes->trained, sizeof(ret_notes->trained), trained, err);
    return r < 0 ? r : read_lists(features, checks, ret_notes, err);
}

/* ---- files ---- */

enum { MAX_FILE = 256 << 20 };

/* The attribute of the model that has our notes. */
static const char notes_key[] = "waap";

static const char *format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".json") == 0) {
        return "{\"format\": \"json\"}";
    }
    return dot != NULL && strcmp(dot, ".ubj") == 0 ? "{\"format\": \"ubj\"}" : NULL;
}

int gbt_save(struct gbt *gbt, bool simulated, const char *trained, const char *path,
             struct error *err) {
    const struct library *library = gbt->library;
    const char *format = format_of(path);
    if (format == NULL) {
        return error_set(err, -EINVAL, "%s: a model's name ends in .json or .ubj", path);
    }
    gbt->notes.simulated = simulated;
    snprintf(gbt->notes.trained, sizeof(gbt->notes.trained), "%s", trained);
    int major, minor, patch;
    library->version(&major, &minor, &patch);
    snprintf(gbt->notes.version, sizeof(gbt->notes.version), "%d.%d.%d", major, minor, patch);
    struct buf notes CLEANUP_BUF = {0};
    gbt_notes_write(&gbt->notes, &notes);
    uint64_t len;
    const char *data;
    if (library->set_attribute(gbt->booster, notes_key, buf_str(&notes)) < 0 ||
        library->save(gbt->booster, format, &len, &data) < 0) {
        return library_fail(library, err, path);
    }
    return file_replace(path, 0666, data, len, err);
}

static int check_version(const struct gbt *gbt, struct error *err) {
    int wrote[2], here[3];
    gbt->library->version(&here[0], &here[1], &here[2]);
    if (sscanf(gbt->notes.version, "%d.%d", &wrote[0], &wrote[1]) != 2) {
        return error_set(err, -EINVAL, "it has no version of XGBoost");
    }
    if (wrote[0] > here[0] || (wrote[0] == here[0] && wrote[1] > here[1])) {
        return error_set(err, -EINVAL,
                         "written by XGBoost %s, which is later than this machine's %d.%d.%d",
                         gbt->notes.version, here[0], here[1], here[2]);
    }
    return 0;
}

static int check_features(const struct gbt *gbt, const char *const *names, size_t n_features,
                          struct error *err) {
    uint64_t n;
    if (gbt->library->n_features(gbt->booster, &n) < 0) {
        return library_fail(gbt->library, err, "features");
    }
    if (gbt->notes.n_features != n_features || n != n_features) {
        return error_set(err, -EINVAL, "a model of %zu features, not of %zu", gbt->notes.n_features,
                         n_features);
    }
    for (size_t i = 0; i < n_features; i++) {
        if (strcmp(gbt->notes.features[i].name, names[i]) != 0) {
            return error_set(err, -EINVAL, "its feature %zu is \"%s\", not \"%s\"", i + 1,
                             gbt->notes.features[i].name, names[i]);
        }
    }
    return 0;
}

/* Versions add up in different orders, so the last bits may differ. */
static int verify_checks(struct gbt *gbt, struct error *err) {
    if (gbt->notes.n_checks == 0) {
        return error_set(err, -EINVAL, "it has no rows to check it with");
    }
    for (size_t i = 0; i < gbt->notes.n_checks; i++) {
        const struct gbt_check *check = &gbt->notes.checks[i];
        float result;
        int r = gbt_predict(gbt, check->row, 1, &result, err);
        if (r < 0) {
            return r;
        }
        if (!(fabsf(result - check->expected) <= 1e-4F * fmaxf(1, fabsf(check->expected)))) {
            return error_set(err, -EINVAL,
                             "check row %zu gives %g here and %g where it was trained: damaged, or "
                             "of another XGBoost",
                             i + 1, (double)result, (double)check->expected);
        }
    }
    return 0;
}

static int read_notes(struct gbt *gbt, struct error *err) {
    const char *notes;
    int found = 0;
    if (gbt->library->get_attribute(gbt->booster, notes_key, &notes, &found) < 0) {
        return library_fail(gbt->library, err, "notes");
    }
    if (found == 0) {
        return error_set(err, -EINVAL,
                         "not made by waap place train: it has no notes (waap place import takes "
                         "the models of others)");
    }
    return gbt_notes_read(notes, strlen(notes), &gbt->notes, err);
}

static int load_trees(struct gbt *gbt, const char *text, size_t len, struct error *err) {
    if (gbt->library->create(NULL, 0, &gbt->booster) < 0 ||
        gbt->library->set_param(gbt->booster, "nthread", "1") < 0 ||
        gbt->library->load(gbt->booster, text, len) < 0) {
        return library_fail(gbt->library, err, "not a model of XGBoost");
    }
    return 0;
}

static int load(struct gbt *gbt, const struct buf *file, const char *const *names,
                size_t n_features, struct error *err) {
    int r = load_trees(gbt, buf_str(file), file->len, err);
    r = r < 0 ? r : read_notes(gbt, err);
    r = r < 0 ? r : check_version(gbt, err);
    r = r < 0 ? r : check_features(gbt, names, n_features, err);
    return r < 0 ? r : verify_checks(gbt, err);
}

int gbt_load(const char *path, const char *const *names, size_t n_features, struct gbt **ret_gbt,
             struct error *err) {
    struct buf file CLEANUP_BUF = {0};
    int r = file_read_stored(path, MAX_FILE, &file, err);
    if (r < 0) {
        return r;
    }
    /* XGBoost would try anything else as formats on which it can crash. */
    if (file.len < 2 || file.data[0] != '{') {
        return error_set(err, -EINVAL, "%s: not a model of XGBoost", path);
    }
    struct gbt *gbt CLEANUP_GBT = gbt_create(err);
    if (gbt == NULL) {
        return -ENOENT;
    }
    struct error why = {0};
    r = load(gbt, &file, names, n_features, &why);
    if (r < 0) {
        return error_set(err, r, "%s: %s", path, why.text);
    }
    *ret_gbt = TAKE(gbt);
    return 0;
}

int gbt_load_text(const char *text, size_t len, const struct gbt_notes *notes, struct gbt **ret_gbt,
                  struct error *err) {
    struct gbt *gbt CLEANUP_GBT = gbt_create(err);
    if (gbt == NULL) {
        return -ENOENT;
    }
    gbt->notes = *notes;
    int r = check_version(gbt, err);
    r = r < 0 ? r : load_trees(gbt, text, len, err);
    r = r < 0 ? r : predict_checks(gbt, err);
    if (r == 0) {
        *ret_gbt = TAKE(gbt);
    }
    return r;
}
