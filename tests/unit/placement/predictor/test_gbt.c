#include "placement/predictor/gbt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/file.h"

enum { N_ROWS = 400 };

static const char *const names[] = {"a", "b"};
static float rows[N_ROWS * 2], labels[N_ROWS];
static struct gbt_data data = {names, 2, rows, labels, N_ROWS};
static char dir[] = "/tmp/waap-test-gbt-XXXXXX";
static char path[64];
static struct gbt *gbt;
static struct error err;

void setUp(void) {
    err = (struct error){.text = ""};
    for (size_t i = 0; i < N_ROWS; i++) {
        rows[2 * i] = (float)(i % 20);
        rows[2 * i + 1] = (float)(i / 20);
        labels[i] = 3 * rows[2 * i] + (rows[2 * i + 1] > 10 ? 50 : 0);
    }
    if (gbt_train(&data, &gbt, &err) == -ENOENT) {
        TEST_IGNORE_MESSAGE(err.text);
    }
}

void tearDown(void) {
    gbt_destroy(gbt);
    gbt = NULL;
}

static int save_as(const char *name) {
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return gbt_save(gbt, true, "400 rows", path, &err);
}

static int load(struct gbt **ret) {
    return gbt_load(path, names, 2, ret, &err);
}

/* Puts `after` where `before` stands in the file. */
static void edit(const char *before, const char *after) {
    struct buf text CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, file_read_stored(path, 1 << 24, &text, NULL));
    char *at = memmem(text.data, text.len, before, strlen(before));
    TEST_ASSERT_NOT_NULL(at);
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    size_t head = (size_t)(at - text.data), tail = text.len - head - strlen(before);
    fwrite(text.data, 1, head, file);
    fputs(after, file);
    fwrite(at + strlen(before), 1, tail, file);
    fclose(file);
}

static void test_learns(void) {
    float result[3];
    const float asked[] = {4, 2, 4, 15, 19, 19};
    TEST_ASSERT_EQUAL_INT(0, gbt_predict(gbt, asked, 3, result, &err));
    TEST_ASSERT_FLOAT_WITHIN(1, 12, result[0]);
    TEST_ASSERT_FLOAT_WITHIN(1, 62, result[1]);
    TEST_ASSERT_FLOAT_WITHIN(1, 107, result[2]);
    TEST_ASSERT_EQUAL_FLOAT(0, gbt_notes(gbt)->features[1].min);
    TEST_ASSERT_EQUAL_FLOAT(19, gbt_notes(gbt)->features[1].max);
}

static void test_comes_back_as_it_was(void) {
    static const char *const files[] = {"model.json", "model.ubj"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct gbt *again CLEANUP_GBT = NULL;
        TEST_ASSERT_EQUAL_INT(0, save_as(files[i]));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, load(&again), err.text);
        float before[N_ROWS], after[N_ROWS];
        gbt_predict(gbt, rows, N_ROWS, before, &err);
        gbt_predict(again, rows, N_ROWS, after, &err);
        TEST_ASSERT_EQUAL_FLOAT_ARRAY(before, after, N_ROWS);
        TEST_ASSERT_TRUE(gbt_notes(again)->simulated);
        TEST_ASSERT_FALSE(gbt_notes(again)->in_seconds);
        TEST_ASSERT_EQUAL_STRING("400 rows", gbt_notes(again)->trained);
        TEST_ASSERT_EQUAL_UINT64(N_ROWS, gbt_notes(again)->n_rows);
        unlink(path);
    }
}

static const struct {
    const char *before, *after, *said;
} damages[] = {
    {"\\\"xgboost\\\": \\\"", "\\\"xgboost\\\": \\\"99.", "which is later than this machine's"},
    {"\\\"name\\\": \\\"a\\\"", "\\\"name\\\": \\\"c\\\"", "its feature 1 is \"c\", not \"a\""},
    {"\\\"expected\\\": ", "\\\"expected\\\": 1", "where it was trained"},
    {"\\\"checks\\\": ", "\\\"other\\\": ", "no rows to check it with"},
    {"\"waap\":", "\"none\":", "not made by waap place train"},
    {"\"base_score\":\"5E-1\"", "\"base_score\":\"5E0\"", "where it was trained"},
    {"\"learner\"", "\"trainer\"", "not a model of XGBoost"},
    {"{", "(", "not a model of XGBoost"},
};

/* What a file can have wrong is told, without a stack trace. */
static void test_damaged_files(void) {
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        struct gbt *again CLEANUP_GBT = NULL;
        TEST_ASSERT_EQUAL_INT(0, save_as("model.json"));
        if (damages[i].said[0] == 'w' && strstr(damages[i].before, "base_score") != NULL) {
            struct buf text CLEANUP_BUF = {0};
            file_read_stored(path, 1 << 24, &text, NULL);
            if (memmem(text.data, text.len, damages[i].before, strlen(damages[i].before)) == NULL) {
                continue; /* other versions write it differently */
            }
        }
        edit(damages[i].before, damages[i].after);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, load(&again), damages[i].before);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, damages[i].said), err.text);
        TEST_ASSERT_NOT_NULL(strstr(err.text, path));
        TEST_ASSERT_NULL(strstr(err.text, "Stack trace"));
        unlink(path);
    }
}

static void test_other_faults(void) {
    TEST_ASSERT_EQUAL_INT(-EINVAL, save_as("model.pkl"));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "ends in .json or .ubj"));
    TEST_ASSERT_LESS_THAN(0, save_as("absent/model.json"));
    struct gbt *again = NULL;
    TEST_ASSERT_EQUAL_INT(-ENOENT, load(&again));
    struct gbt_data none = data;
    none.n_rows = 0;
    TEST_ASSERT_EQUAL_INT(-EINVAL, gbt_train(&none, &again, &err));
    rows[5] = NAN;
    TEST_ASSERT_EQUAL_INT(-EINVAL, gbt_train(&data, &again, &err));
    TEST_ASSERT_EQUAL_STRING("row 3: b is not a number", err.text);
}

void suiteSetUp(void) {
    if (mkdtemp(dir) == NULL) {
        exit(1);
    }
}

int suiteTearDown(int failures) {
    rmdir(dir);
    return failures;
}
