#pragma once

#include <stdint.h>

#include "exporter/core/error.h"

/* XGBoost's C interface, looked for at run time: who neither trains nor predicts needs none of it,
 * and nothing of it is needed to build. The calls are those that versions 1.7 to 3 have in common;
 * they answer 0, or -1 and a text. */
struct gbt_library {
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

/* The library, loaded at the first call; NULL with words where this machine has none. */
const struct gbt_library *gbt_library_get(struct error *err);

/* Words what the library says, without the stack trace that it adds; returns -EINVAL. */
int gbt_library_fail(const struct gbt_library *library, struct error *err, const char *what);
