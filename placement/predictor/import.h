#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "placement/predictor/gbt.h"
#include "placement/predictor/predictor.h"

/* Predictors that were made elsewhere, as files in XGBoost's JSON. */

/* One feature of such a file, and what it is here. */
struct import_column {
    char name[64];
    enum feature feature;
    double center, scale; /* the trees know (feature - center) / scale */
    size_t n_splits;
    float low, high; /* of the splits, in our unit */
};

struct import {
    struct import_column columns[GBT_MAX_FEATURES];
    size_t n_columns, n_trees, n_splits;
};

/* Makes a predictor of a model's text. Columns are found by `maps` ("THEIRS=OURS" or
 * "THEIRS=OURS:CENTER:SCALE", ended by NULL), then by their names; a file without names has f0, f1,
 * …. It predicts seconds, or their natural logarithm. -EINVAL if this is no gbtree for
 * reg:squarederror on numbers, a later version has written it, or a column is unknown. */
int import_read(const char *text, size_t len, const char *const *maps, bool in_seconds,
                struct import *ret_import, struct gbt **ret_gbt, struct error *err);

/* `waap place import FILE --out=MODEL`. Returns the exit code. */
int import_main(int argc, char **argv);
