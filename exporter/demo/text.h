#pragma once

#include "exporter/core/buf.h"
#include "exporter/demo/model.h"

/* A file that is more than one number. Its text is always of the same length, so that it can be
 * written over while somebody reads it. */
struct demo_text {
    const char *path;
    void (*write)(const struct demo_model *model, double boot_seconds, struct buf *out);
};

/* Ended by a row without path. */
extern const struct demo_text demo_texts[];
