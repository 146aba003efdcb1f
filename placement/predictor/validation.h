#pragma once

#include "placement/predictor/gbt.h"
#include "placement/predictor/training.h"

/* How well run times are predicted that were not trained with. */
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
    VALIDATION_GROUPED, /* no model is both trained with and tested */
    VALIDATION_RANDOM,  /* rows at random: flattering, as repeated runs of one model are alike */
};

/* Trains and predicts fold by fold. */
int validation_run(const struct training *training, enum validation_kind kind,
                   struct validation *ret_validation, struct error *err);

/* Trains with all rows. */
int validation_train(const struct training *training, struct gbt **ret_gbt, struct error *err);

/* Scores predictions, one per row. */
void validation_score(const struct training *training, const float *predicted_seconds,
                      struct validation *validation);
