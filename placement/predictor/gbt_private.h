#pragma once

#include "placement/predictor/gbt.h"
#include "placement/predictor/gbt_library.h"

struct gbt_feature {
    char name[64];
    float min, max;
};

struct gbt_check {
    float row[GBT_MAX_FEATURES];
    float expected;
};

struct gbt {
    const struct gbt_library *library;
    void *booster;
    struct gbt_about about;
    struct gbt_feature features[GBT_MAX_FEATURES];
    size_t n_features;
    struct gbt_check checks[GBT_MAX_CHECKS];
    size_t n_checks;
};

/* An empty one; NULL with words where there is no library or memory. */
struct gbt *gbt_create(struct error *err);

/* The notes beside the trees, as JSON. */
void gbt_notes_write(const struct gbt *gbt, struct buf *out);

/* Reads them from `text`, which is written to. -EINVAL says what is wrong with them. */
int gbt_notes_read(char *text, size_t len, struct gbt *gbt, struct error *err);
