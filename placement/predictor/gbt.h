#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Gradient-boosted trees for one number, by XGBoost. Not for two threads at once. */
struct gbt;

enum { GBT_MAX_FEATURES = 64, GBT_MAX_CHECKS = 8 };

/* Rows of features, one after the other, and the number that belongs to each. */
struct gbt_data {
    const char *const *names; /* of the features */
    size_t n_features;
    const float *rows;
    const float *labels;
    size_t n_rows;
};

/* What the file says about itself. */
struct gbt_about {
    bool simulated;    /* trained with made-up data */
    size_t n_rows;     /* it was trained with */
    char version[32];  /* of the library that wrote it */
    char trained[256]; /* what with, in words */
};

/* Trains with what the original service uses: 145 rounds of depth 6, eta 0.1. The same data give
 * the same model. */
int gbt_train(const struct gbt_data *data, struct gbt **ret_gbt, struct error *err);

/* Puts the model into a file, .json or .ubj, as a whole or not at all. Beside the trees it has the
 * features with their ranges, and a few rows with what must come out for them. */
int gbt_save(struct gbt *gbt, const struct gbt_about *about, const char *path, struct error *err);

/* Reads such a file. Refuses one that a later library has written, that has other features than
 * `names`, or that gives other results here than where it was made: a library that does not know
 * all of a later format can be silently wrong. */
int gbt_load(const char *path, const char *const *names, size_t n_features, struct gbt **ret_gbt,
             struct error *err);
void gbt_destroy(struct gbt *gbt); /* accepts NULL */

static inline void gbt_cleanup(struct gbt **gbt) {
    gbt_destroy(*gbt);
}
#define CLEANUP_GBT CLEANUP(gbt_cleanup)

/* Predicts `n_rows` numbers. */
int gbt_predict(struct gbt *gbt, const float *rows, size_t n_rows, float *ret, struct error *err);

/* The least and greatest value of a feature in training. */
void gbt_range(const struct gbt *gbt, size_t feature, float *ret_min, float *ret_max);

const struct gbt_about *gbt_about(const struct gbt *gbt);
