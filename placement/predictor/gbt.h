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
    float *rows;
    float *labels;
    size_t n_rows;
};

/* What a model's file has beside the trees. */
struct gbt_notes {
    bool simulated;    /* trained with made-up data */
    bool in_seconds;   /* it predicts seconds, else their natural logarithm */
    size_t n_rows;     /* of the training data; 0: they are not known, nor are their ranges */
    char version[32];  /* of the library that wrote it */
    char trained[256]; /* what with, in words */
    struct gbt_feature {
        char name[64];
        float min, max; /* in training */
    } features[GBT_MAX_FEATURES];
    size_t n_features;
    struct gbt_check {
        float row[GBT_MAX_FEATURES];
        float expected; /* what the trees predict for the row */
    } checks[GBT_MAX_CHECKS];
    size_t n_checks;
};

/* Trains with what the original service uses: 145 rounds of depth 6, eta 0.1. The same data give
 * the same model. */
int gbt_train(const struct gbt_data *data, struct gbt **ret_gbt, struct error *err);

/* Replaces the file at `path`, .json or .ubj, by the model. `trained` names the data. */
int gbt_save(struct gbt *gbt, bool simulated, const char *trained, const char *path,
             struct error *err);

/* Reads such a file. Rejects a file that a later library has written, that has other features than
 * `names`, or that predicts other results here than where it was written: a library that does not
 * know all of a later format can be silently wrong. */
int gbt_load(const char *path, const char *const *names, size_t n_features, struct gbt **ret_gbt,
             struct error *err);

/* Makes one of the text of a model without notes, and notes what it predicts for `notes->checks`.
 * Rejects a text that a later library than this has written. */
int gbt_load_text(const char *text, size_t len, const struct gbt_notes *notes, struct gbt **ret_gbt,
                  struct error *err);
void gbt_destroy(struct gbt *gbt); /* accepts NULL */

static inline void gbt_cleanup(struct gbt **gbt) {
    gbt_destroy(*gbt);
}
#define CLEANUP_GBT CLEANUP(gbt_cleanup)

/* Predicts `n_rows` numbers. */
int gbt_predict(struct gbt *gbt, const float *rows, size_t n_rows, float *ret, struct error *err);

const struct gbt_notes *gbt_notes(const struct gbt *gbt);

/* Appends the notes as JSON. */
void gbt_notes_write(const struct gbt_notes *notes, struct buf *out);

/* Reads what gbt_notes_write wrote; -EINVAL names the fault. */
int gbt_notes_read(const char *text, size_t len, struct gbt_notes *ret_notes, struct error *err);
