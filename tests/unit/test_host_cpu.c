#include "collectors/host_cpu.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

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
        struct host_cpu_line line;
        int r = host_cpu_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].id, line.id, cases[i].line);
            TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].n_modes, line.n_modes, cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(1, line.ticks[HOST_CPU_USER]);
            TEST_ASSERT_EQUAL_UINT64(4, line.ticks[HOST_CPU_IDLE]);
        }
    }
}

static struct host_cpu_line parsed(const char *text) {
    struct host_cpu_line line = {0};
    TEST_ASSERT_EQUAL_INT(0, host_cpu_parse(text, &line));
    return line;
}

static void test_counters_never_step_back(void) {
    struct host_cpu_line kept = parsed("cpu0 100 0 50 1000 40 0 0 0 0 0");
    struct host_cpu_line seen = parsed("cpu0 101 0 51 999 30 0 0 0 0 0");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(101, kept.ticks[HOST_CPU_USER]);
    TEST_ASSERT_EQUAL_UINT64(51, kept.ticks[HOST_CPU_SYSTEM]);
    TEST_ASSERT_EQUAL_UINT64(1000, kept.ticks[HOST_CPU_IDLE]);
    TEST_ASSERT_EQUAL_UINT64(40, kept.ticks[HOST_CPU_IOWAIT]);
}

static void test_a_replugged_cpu_starts_afresh(void) {
    struct host_cpu_line kept = parsed("cpu0 100 0 50 1000 40");
    struct host_cpu_line seen = parsed("cpu0 3 0 2 700 1");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(3, kept.ticks[HOST_CPU_USER]);
    TEST_ASSERT_EQUAL_UINT64(700, kept.ticks[HOST_CPU_IDLE]);
    TEST_ASSERT_EQUAL_UINT64(1, kept.ticks[HOST_CPU_IOWAIT]);

    kept = parsed("cpu0 100 0 50 1000 40");
    seen = parsed("cpu0 3 0 2 701 1");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(100, kept.ticks[HOST_CPU_USER]);
    TEST_ASSERT_EQUAL_UINT64(1000, kept.ticks[HOST_CPU_IDLE]);
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_parse);
    RUN_TEST(test_counters_never_step_back);
    RUN_TEST(test_a_replugged_cpu_starts_afresh);
    return UNITY_END();
}
