#include "collectors/source/cpu_stat.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *line;
        int result;
        uint64_t id;
        size_t n_modes;
    } cases[] = {
        {"cpu0 1 2 3 4 5 6 7 8 9 10", 0, 0, 10},
        {"cpu127 1 2 3 4 5 6 7 8 9 10 11 12\n", 0, 127, 10},
        {"cpu2 1 2 3 4\ncpu3 1 2 3 4 5", 0, 2, 4},
        {"cpu2 1 2 3", -EINVAL, 0, 0},
        {"cpu 1 2 3 4 5", -EINVAL, 0, 0},
        {"cpux 1 2 3 4 5", -EINVAL, 0, 0},
        {"cpu1x 1 2 3 4 5", -EINVAL, 0, 0},
        {"cpu1 1 2 3 four 5", -EINVAL, 0, 0},
        {"cpu1 1 2 3 -4 5", -EINVAL, 0, 0},
        {"gpu1 1 2 3 4 5", -EINVAL, 0, 0},
        {"", -EINVAL, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cpu_stat_line line;
        int r = cpu_stat_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].id, line.id, cases[i].line);
            TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].n_modes, line.n_modes, cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(1, line.ticks[CPU_STAT_USER]);
            TEST_ASSERT_EQUAL_UINT64(4, line.ticks[CPU_STAT_IDLE]);
        }
    }
}

static void test_parse_busy(void) {
    static const struct {
        const char *text;
        int result;
        uint64_t ticks;
    } cases[] = {
        {"cpu  1 20 300 4000 50000 600000 7000000 8 9 10\ncpu0 1 1 1 1", 0, 7600321},
        {"cpu 1 2 3 4\nintr 1 2 3", 0, 6},
        {"cpu 1 2 3", -EINVAL, 0},
        {"cpu0 1 2 3 4", -EINVAL, 0},
        {"cpu 1 2 x 4", -EINVAL, 0},
        {"", -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t ticks = 0;
        int r = cpu_stat_parse_busy(cases[i].text, &ticks);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].ticks, ticks, cases[i].text);
    }
}
