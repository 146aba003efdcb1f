#include "profiler/run/probe.h"

#include <string.h>
#include <unity.h>

#include "collectors/collectors.h"

static bool is_collected(const char *metric) {
    for (const struct collector *const *i = collectors_all; *i != NULL; i++) {
        const struct metric_desc *desc;
        for (size_t k = 0; (desc = collector_metric(*i, k)) != NULL; k++) {
            if (strcmp(desc->name, metric) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* A metric that was renamed would silently be missing in every record. */
static void test_table(void) {
    TEST_ASSERT_TRUE(run_probe_n_rows <= 64);
    for (size_t i = 0; i < run_probe_n_rows; i++) {
        const struct run_probe_row *row = &run_probe_rows[i];
        TEST_ASSERT_TRUE_MESSAGE(is_collected(row->metric), row->metric);
        TEST_ASSERT_TRUE(row->unless == NULL || is_collected(row->unless));
        TEST_ASSERT_TRUE(i == 0 || strcmp(run_probe_rows[i - 1].metric, row->metric) <= 0);
        TEST_ASSERT_NOT_NULL_MESSAGE(row->unit, row->metric);
        TEST_ASSERT_NOT_NULL_MESSAGE(row->help, row->metric);
    }
}

static void test_keys(void) {
    static const struct run_probe_row gpu = {.key = "gpu.x", .label = "gpu"};
    static const struct run_probe_row zone = {.key = "t", .label = "type", .as_label = "zone"};
    static const struct run_probe_row sum = {.key = "s", .label = "gpu", .use = RUN_PROBE_SUM};
    static const struct {
        const struct run_probe_row *row;
        const char *value, *key;
    } cases[] = {
        {&gpu, "0", "gpu.x"},
        {&gpu, "1", "gpu.x{gpu=\"1\"}"},
        {&gpu, "10", "gpu.x{gpu=\"10\"}"},
        {&gpu, "", "gpu.x"},
        {&zone, "cpu \"a\"", "t{zone=\"cpu \\\"a\\\"\"}"},
        {&sum, "1", "s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf key CLEANUP_BUF = {0};
        run_probe_key(cases[i].row, cases[i].value, &key);
        TEST_ASSERT_EQUAL_STRING(cases[i].key, buf_str(&key));
    }
}
