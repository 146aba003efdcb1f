#include "exporter/metrics/metric.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_names(void) {
    static const struct {
        const char *name;
        bool metric;
        bool label;
    } table[] = {
        {"up", true, true},       {"_", true, true},
        {"a1", true, true},       {"A_b_9", true, true},
        {"job:x:y", true, false}, {":x", true, false},
        {"__name__", true, true}, {"", false, false},
        {"1a", false, false},     {"a-b", false, false},
        {"a.b", false, false},    {"a b", false, false},
        {"a\n", false, false},    {"gr\xc3\xbcn", false, false},
        {"a{", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *name = table[i].name;
        TEST_ASSERT_EQUAL_MESSAGE(table[i].metric, metric_name_valid(name, strlen(name)), name);
        TEST_ASSERT_EQUAL_MESSAGE(table[i].label, metric_label_name_valid(name, strlen(name)),
                                  name);
    }
    TEST_ASSERT_TRUE(metric_name_valid("up{", 2));
    TEST_ASSERT_FALSE(metric_name_valid("a\0b", 3));
    TEST_ASSERT_FALSE(metric_label_name_valid("a\0b", 3));
}

static void test_descriptions_that_fit(void) {
    static const struct metric_desc table[] = {
        {"node_load1", "x", METRIC_GAUGE, NULL, NULL},
        {"gpu_power_watts", "x", METRIC_GAUGE, "watts", NULL},
        {"gpu_busy_seconds_total", "x", METRIC_COUNTER, "seconds", "gpu"},
        {"frames_total", "x", METRIC_COUNTER, NULL, NULL},
        {"request_duration_seconds", "x", METRIC_HISTOGRAM, "seconds", NULL},
        {"request_size_bytes", "x", METRIC_SUMMARY, "bytes", NULL},
        {"waap_build_info", "x", METRIC_INFO, NULL, NULL},
        {"node_uname_info", "x", METRIC_GAUGE, NULL, NULL},
        {"any:thing", "x", METRIC_UNTYPED, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct error err = {""};
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(&table[i], &err), err.text);
    }
}

static void test_descriptions_that_do_not_fit(void) {
    static const struct {
        struct metric_desc desc;
        const char *why;
    } table[] = {
        {{"", "x", METRIC_GAUGE, NULL, NULL}, "metric \"\": not a valid name"},
        {{"2x", "x", METRIC_GAUGE, NULL, NULL}, "metric \"2x\": not a valid name"},
        {{"x", NULL, METRIC_GAUGE, NULL, NULL}, "metric x: no help text"},
        {{"x", "", METRIC_GAUGE, NULL, NULL}, "metric x: no help text"},
        {{"frames", "x", METRIC_COUNTER, NULL, NULL},
         "metric frames: counters and only they end in _total"},
        {{"frames_total", "x", METRIC_GAUGE, NULL, NULL},
         "metric frames_total: counters and only they end in _total"},
        {{"_total", "x", METRIC_COUNTER, NULL, NULL},
         "metric _total: counters and only they end in _total"},
        {{"waap_build", "x", METRIC_INFO, NULL, NULL},
         "metric waap_build: an info must end in _info"},
        {{"gpu_power", "x", METRIC_GAUGE, "watts", NULL},
         "metric gpu_power: does not end in its unit watts"},
        {{"gpukilowatts", "x", METRIC_GAUGE, "watts", NULL},
         "metric gpukilowatts: does not end in its unit watts"},
        {{"watts", "x", METRIC_GAUGE, "watts", NULL},
         "metric watts: does not end in its unit watts"},
        {{"seconds_busy_total", "x", METRIC_COUNTER, "seconds", NULL},
         "metric seconds_busy_total: does not end in its unit seconds"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct error err = {""};
        TEST_ASSERT_EQUAL_INT(-EINVAL, metric_desc_check(&table[i].desc, &err));
        TEST_ASSERT_EQUAL_STRING(table[i].why, err.text);
    }
}

static void test_type_names(void) {
    TEST_ASSERT_EQUAL_STRING("untyped", metric_type_name(METRIC_UNTYPED));
    TEST_ASSERT_EQUAL_STRING("counter", metric_type_name(METRIC_COUNTER));
    TEST_ASSERT_EQUAL_STRING("gauge", metric_type_name(METRIC_GAUGE));
    TEST_ASSERT_EQUAL_STRING("histogram", metric_type_name(METRIC_HISTOGRAM));
    TEST_ASSERT_EQUAL_STRING("summary", metric_type_name(METRIC_SUMMARY));
    TEST_ASSERT_EQUAL_STRING("info", metric_type_name(METRIC_INFO));
}

static void test_endings(void) {
    static const struct {
        const char *name, *ending;
        bool ends, is_unit;
    } table[] = {
        {"x_bytes", "bytes", true, true},
        {"_bytes", "bytes", true, true},
        {"kilobytes", "bytes", true, false},
        {"bytes", "bytes", false, false},
        {"ytes", "bytes", false, false},
        {"bytes_x", "bytes", false, false},
        {"x_total", "_total", true, false},
        {"_total", "_total", false, false},
        {"", "", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *name = table[i].name;
        size_t len = strlen(name);
        TEST_ASSERT_EQUAL_MESSAGE(table[i].ends, metric_name_ends_with(name, len, table[i].ending),
                                  name);
        TEST_ASSERT_EQUAL_MESSAGE(table[i].is_unit,
                                  metric_name_has_unit(name, len, table[i].ending), name);
    }
    TEST_ASSERT_TRUE(metric_name_ends_with("x_bytes_total", 7, "_bytes"));
}
