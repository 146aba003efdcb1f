#include "collectors/host/parse.h"

#include <unity.h>

static struct cpu_stat_line parsed(const char *text) {
    struct cpu_stat_line line = {0};
    TEST_ASSERT_EQUAL_INT(0, cpu_stat_parse(text, &line));
    return line;
}

static void test_counters_never_step_back(void) {
    struct cpu_stat_line kept = parsed("cpu0 100 0 50 1000 40 0 0 0 0 0");
    struct cpu_stat_line seen = parsed("cpu0 101 0 51 999 30 0 0 0 0 0");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(101, kept.ticks[CPU_STAT_USER]);
    TEST_ASSERT_EQUAL_UINT64(51, kept.ticks[CPU_STAT_SYSTEM]);
    TEST_ASSERT_EQUAL_UINT64(1000, kept.ticks[CPU_STAT_IDLE]);
    TEST_ASSERT_EQUAL_UINT64(40, kept.ticks[CPU_STAT_IOWAIT]);
}

static void test_a_replugged_cpu_starts_afresh(void) {
    struct cpu_stat_line kept = parsed("cpu0 100 0 50 1000 40");
    struct cpu_stat_line seen = parsed("cpu0 3 0 2 700 1");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(3, kept.ticks[CPU_STAT_USER]);
    TEST_ASSERT_EQUAL_UINT64(700, kept.ticks[CPU_STAT_IDLE]);
    TEST_ASSERT_EQUAL_UINT64(1, kept.ticks[CPU_STAT_IOWAIT]);

    kept = parsed("cpu0 100 0 50 1000 40");
    seen = parsed("cpu0 3 0 2 701 1");
    host_cpu_follow(&kept, &seen, 100);
    TEST_ASSERT_EQUAL_UINT64(100, kept.ticks[CPU_STAT_USER]);
    TEST_ASSERT_EQUAL_UINT64(1000, kept.ticks[CPU_STAT_IDLE]);
}
