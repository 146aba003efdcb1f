#include "collectors/host/parse.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *text;
        int result;
        double celsius;
    } cases[] = {
        {"45500\n", 0, 45.5}, {"-12000\n", 0, -12}, {"0", 0, 0},         {"127375", 0, 127.375},
        {"", -EINVAL, 7},     {"\n", -EINVAL, 7},   {"hot", -EINVAL, 7}, {"45,5", -EINVAL, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double celsius = 7;
        int r = host_thermal_parse(cases[i].text, &celsius);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].celsius, celsius);
    }
}
