#include "placement/predictor/train.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "placement/predictor/simulate.h"

#define COLUMNS                                                                                    \
    "conv_layers,device,device_disk_usage_percent,device_load_percent,disk_io_read_bytes,"         \
    "disk_io_write_bytes,execution_time,filter_details,fully_conn_layers,model_name,pool_layers,"  \
    "total_parameters"

static struct training training;
static struct error err;

void setUp(void) {
    training = (struct training){.n_rows = 0};
    err = (struct error){.text = ""};
}

void tearDown(void) {
    training_finish(&training);
}

static int parse(const char *text) {
    return training_parse(&training, "runs.csv", text, strlen(text), &err);
}

static void test_row(void) {
    TEST_ASSERT_EQUAL_INT(0, parse(COLUMNS "\r\n5,jetson,40.5,50,1000,2000,00:01:02.500000,1376,3,"
                                           "\"alex,net\",4,60965228\r\n\r\n"));
    TEST_ASSERT_EQUAL_UINT64(1, training.n_rows);
    const struct training_row *row = &training.rows[0];
    TEST_ASSERT_EQUAL_FLOAT(62.5, row->seconds);
    TEST_ASSERT_EQUAL_FLOAT(DEVICE_JETSON, row->features[FEATURE_DEVICE]);
    TEST_ASSERT_EQUAL_FLOAT(50, row->features[FEATURE_LOAD]);
    TEST_ASSERT_EQUAL_FLOAT(60965228, row->features[FEATURE_PARAMETERS]);
    TEST_ASSERT_EQUAL_STRING("alex,net", training.models[row->model]);
}

/* The columns are found by name, and others may stand between them. */
static void test_order_of_columns(void) {
    TEST_ASSERT_EQUAL_INT(0, parse("total_parameters,pool_layers,model_name,fully_conn_layers,"
                                   "filter_details,execution_time,disk_io_write_bytes,extra,"
                                   "disk_io_read_bytes,device_load_percent,"
                                   "device_disk_usage_percent,device,conv_layers\n"
                                   "12,11,m,10,9,0.5,7,x,6,5,4,-1,3\n"));
    TEST_ASSERT_EQUAL_FLOAT(3, training.rows[0].features[FEATURE_CONV_LAYERS]);
    TEST_ASSERT_EQUAL_FLOAT(5, training.rows[0].features[FEATURE_LOAD]);
    TEST_ASSERT_EQUAL_FLOAT(DEVICE_OTHER, training.rows[0].features[FEATURE_DEVICE]);
}

static void test_load_by_cores(void) {
    TEST_ASSERT_EQUAL_INT(0, parse(COLUMNS ",device_cpu_cores\n"
                                           "1,0,1,80,1,1,1,1,1,m,1,1,2\n"
                                           "1,0,1,80,1,1,1,1,1,m,1,1,0\n"));
    TEST_ASSERT_EQUAL_FLOAT(40, training.rows[0].features[FEATURE_LOAD]);
    TEST_ASSERT_EQUAL_FLOAT(80, training.rows[1].features[FEATURE_LOAD]);
}

static void test_models(void) {
    TEST_ASSERT_EQUAL_INT(0, parse(COLUMNS "\n1,0,1,1,1,1,1,1,1,m,1,1\n1,0,1,1,1,1,1,1,1,n,1,1\n"
                                           "1,1,1,1,1,1,1,1,1,m,1,1\n"));
    TEST_ASSERT_EQUAL_UINT64(2, training.n_models);
    TEST_ASSERT_EQUAL_UINT64(training.rows[0].model, training.rows[2].model);
}

static const struct {
    const char *text, *said;
} wrong[] = {
    {"", "runs.csv: empty file"},
    {"a,b\n", "runs.csv: line 1: no column conv_layers"},
    {COLUMNS "\n1,0,1,1,1,1,1,1,1,m,1\n", "runs.csv: line 2: total_parameters is missing"},
    {COLUMNS "\n1,0,1,x,1,1,1,1,1,m,1,1\n",
     "runs.csv: line 2: device_load_percent: expected a number, got \"x\""},
    {COLUMNS "\n1,0,1,nan,1,1,1,1,1,m,1,1\n",
     "runs.csv: line 2: device_load_percent: expected a number, got \"nan\""},
    {COLUMNS "\n1,0,1,1,1,1,0,1,1,m,1,1\n",
     "runs.csv: line 2: execution_time: expected seconds or HH:MM:SS above 0, got \"0\""},
    {COLUMNS "\n1,0,1,1,1,1,1:x,1,1,m,1,1\n",
     "runs.csv: line 2: execution_time: expected seconds or HH:MM:SS above 0, got \"1:x\""},
    {COLUMNS "\n1,7,1,1,1,1,1,1,1,m,1,1\n",
     "runs.csv: line 2: device: expected -1, 0 or 1, got \"7\""},
    {COLUMNS "\n1,0,1,1,1,1,1,1,1,,1,1\n",
     "runs.csv: line 2: model_name: expected a name, got \"\""},
};

static void test_wrong_files(void) {
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, parse(wrong[i].text));
        TEST_ASSERT_EQUAL_STRING(wrong[i].said, err.text);
    }
}

/* ---- validation ---- */

static void add(const char *model, enum device device, float seconds) {
    struct training_row row = {.seconds = seconds};
    row.features[FEATURE_DEVICE] = (float)device;
    training_add(&training, &row, model);
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
