#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "placement/predictor/gbt.h"
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
    size_t n_models, cap_models;
};

/* Appends the rows of a CSV file called `name`. Columns are found by the names in its first line;
 * others are skipped. With a column device_cpu_cores, the load is that of each of so many of four
 * cores, 0 meaning all, as in the original. Errors name file, line and column. */
int training_parse(struct training *training, const char *name, const char *text, size_t len,
                   struct error *err);

void training_finish(struct training *training);
#define CLEANUP_TRAINING CLEANUP(training_finish)

/* Adds one; `model` is copied. */
void training_add(struct training *training, const struct training_row *row, const char *model);

/* How well the predictor predicts run times outside of its training data. */
struct validation {
    size_t n_folds;
    double mae_seconds;
    double rmse_seconds;
    double mape;      /* mean of |error| / measured */
    size_t n_choices; /* how often there was more than one kind of device to choose from */
    double top1;      /* share of choices that were the fastest */
    double regret;    /* mean of extra time over the fastest, as a share of it */
};

enum validation_kind {
    VALIDATION_GROUPED, /* no model is in both training and test data */
    VALIDATION_RANDOM,  /* random rows: too optimistic, as runs of one model are alike */
};

/* Trains and predicts fold by fold. */
int validation_run(const struct training *training, enum validation_kind kind,
                   struct validation *ret_validation, struct error *err);

/* Scores predictions, one per row. */
void validation_score(const struct training *training, const float *predicted_seconds,
                      struct validation *validation);

/* `waap place train DATA... --out=MODEL`: validates, trains and saves. Returns the exit code. */
int train_main(int argc, char **argv);
