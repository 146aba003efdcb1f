#include "collectors/host/parse.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    double loads[HOST_LOAD_FIELDS] = {0};
    TEST_ASSERT_EQUAL_INT(0, host_load_parse("0.08 1.50 123.01 2/95 6904\n", loads));
    TEST_ASSERT_EQUAL_DOUBLE(0.08, loads[0]);
    TEST_ASSERT_EQUAL_DOUBLE(1.5, loads[1]);
    TEST_ASSERT_EQUAL_DOUBLE(123.01, loads[2]);
}

static void test_garbage_changes_nothing(void) {
    static const char *const cases[] = {"", "\n", "0.08 1.50", "0.08 1.50 2/95 6904", "a b c"};
    double loads[HOST_LOAD_FIELDS] = {7, 7, 7};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, host_load_parse(cases[i], loads), cases[i]);
        TEST_ASSERT_EQUAL_DOUBLE(7, loads[0]);
    }
}
