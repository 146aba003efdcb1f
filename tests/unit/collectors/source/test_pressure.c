#include "collectors/source/pressure.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *line;
        int result;
        bool full;
        uint64_t total;
    } cases[] = {
        {"some avg10=8.36 avg60=3.70 avg300=1.71 total=14293735\n", 0, false, 14293735},
        {"full avg10=0.00 avg60=0.00 avg300=0.00 total=0", 0, true, 0},
        {"some total=1 avg10=8.36", 0, false, 1},
        {"half avg10=8.36 total=1", -EINVAL, false, 0},
        {"some avg10=8.36 avg60=3.70 avg300=1.71", -EINVAL, false, 0},
        {"some avg10=8.36\ntotal=5", -EINVAL, false, 0},
        {"some total=", -EINVAL, false, 0},
        {"some total=x", -EINVAL, false, 0},
        {"some", -EINVAL, false, 0},
        {"", -EINVAL, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pressure_line line;
        int r = pressure_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_EQUAL_MESSAGE(cases[i].full, line.full, cases[i].line);
            TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].total, line.total_usec, cases[i].line);
        }
    }
}
