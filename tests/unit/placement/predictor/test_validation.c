#include "placement/predictor/validation.h"

#include <string.h>
#include <unity.h>

#include "placement/predictor/simulate.h"

static struct training training;
static struct error err;

void setUp(void) {
    training = (struct training){.n_rows = 0};
    err = (struct error){.text = ""};
}

void tearDown(void) {
    training_finish(&training);
}

static void add(const char *model, enum device device, float seconds) {
    struct training_row row = {.seconds = seconds};
    row.features[FEATURE_DEVICE] = (float)device;
    TEST_ASSERT_EQUAL_INT(0, training_add(&training, &row, model, &err));
}

static void test_scores(void) {
    add("m", DEVICE_RASPBERRY, 2);
    add("m", DEVICE_JETSON, 1);
    add("m", DEVICE_RASPBERRY, 4);
    add("m", DEVICE_JETSON, 5);
    add("n", DEVICE_JETSON, 5); /* nothing to choose from */
    const float predicted[] = {3, 1, 4, 3, 5};
    struct validation validation = {0};
    validation_score(&training, predicted, &validation);
    TEST_ASSERT_EQUAL_DOUBLE(0.6, validation.mae_seconds);
    TEST_ASSERT_EQUAL_DOUBLE(1, validation.rmse_seconds);
    TEST_ASSERT_EQUAL_DOUBLE((0.5 + 0.4) / 5, validation.mape);
    TEST_ASSERT_EQUAL_UINT64(2, validation.n_choices);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, validation.top1);
    TEST_ASSERT_EQUAL_DOUBLE(0.125, validation.regret); /* 5 instead of 4, once in two */
}

/* Rows of one model are alike, so that rows at random know what they are asked. */
static void test_unseen_models_are_harder(void) {
    struct buf runs CLEANUP_BUF = {0};
    simulate_write(1, 10, &runs);
    TEST_ASSERT_EQUAL_INT(0, training_parse(&training, "simulated", runs.data, runs.len, &err));
    TEST_ASSERT_EQUAL_UINT64(330, training.n_rows);
    struct validation grouped, random;
    if (validation_run(&training, VALIDATION_GROUPED, &grouped, &err) < 0) {
        TEST_IGNORE_MESSAGE(err.text);
    }
    TEST_ASSERT_EQUAL_INT(0, validation_run(&training, VALIDATION_RANDOM, &random, &err));
    TEST_ASSERT_EQUAL_UINT64(10, grouped.n_folds);
    TEST_ASSERT_EQUAL_UINT64(110, grouped.n_choices);
    TEST_ASSERT_TRUE(grouped.mape > 3 * random.mape);
    TEST_ASSERT_TRUE(random.mape < 0.2);
}

static void test_too_few_models(void) {
    add("m", DEVICE_RASPBERRY, 2);
    struct validation validation;
    TEST_ASSERT_LESS_THAN(0, validation_run(&training, VALIDATION_GROUPED, &validation, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "at least 2"));
}

static void test_simulation_repeats_itself(void) {
    struct buf a CLEANUP_BUF = {0}, b CLEANUP_BUF = {0}, c CLEANUP_BUF = {0};
    simulate_write(42, 3, &a);
    simulate_write(42, 3, &b);
    simulate_write(43, 3, &c);
    TEST_ASSERT_EQUAL_STRING(buf_str(&a), buf_str(&b));
    TEST_ASSERT_FALSE(strcmp(buf_str(&a), buf_str(&c)) == 0);
}
