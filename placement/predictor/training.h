#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "placement/predictor/predictor.h"

/* Measured runs to train with, as CSV with the original's columns. */
struct training_row {
    float features[N_FEATURES];
    float seconds;
    size_t model; /* index of its name */
};

struct training {
    struct training_row *rows;
    size_t n_rows, cap_rows;
    char **models;
    size_t n_models;
};

/* Appends the rows of a CSV file. The columns are found by the names in its first line; others are
 * passed over. Where there is a column device_cpu_cores the load is the original's: of each of so
 * many of four cores, 0 meaning all. Fails with words that name file, line and column. */
int training_read(struct training *training, const char *path, struct error *err);

/* The same for text that is called `name`. */
int training_parse(struct training *training, const char *name, const char *text, size_t len,
                   struct error *err);

void training_finish(struct training *training);
#define CLEANUP_TRAINING CLEANUP(training_finish)

/* Adds one; `model` is copied. */
int training_add(struct training *training, const struct training_row *row, const char *model,
                 struct error *err);
