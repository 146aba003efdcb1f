#include <errno.h>
#include <unity.h>

#include "collectors/source/procfs.h"
#include "exporter/core/cleanup.h"

static void test_cpu_stat(void) {
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

static void test_cpu_stat_busy(void) {
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

static void test_diskstats(void) {
    static const struct {
        const char *line;
        const char *device; /* NULL: not understood */
        size_t n_fields;
    } cases[] = {
        {" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", "vda", 17},
        {" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", "vda", 17},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "sda", 15},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1", "sda", 11},
        {"104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11", "cciss/c0d0", 11},
        {"253 0 dm-0\"\\\xff 1 2 3 4 5 6 7 8 9 10 11", "dm-0\"\\\xff", 11},
        {"8 0 17 1 2 3 4 5 6 7 8 9 10 11", "17", 11},
        {"8 1 sda1 1 2 3 4", NULL, 0},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10", NULL, 0},
        {"8 0 sda 1 2 3 4 five 6 7 8 9 10 11", NULL, 0},
        {"8 sda 1 2 3 4 5 6 7 8 9 10 11", NULL, 0},
        {"8 0", NULL, 0},
        {"garbage", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct diskstats_line line;
        int r = diskstats_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].device != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.device, cases[i].device), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(cases[i].n_fields, line.n_fields);
            TEST_ASSERT_EQUAL_UINT64(line.n_fields, line.fields[line.n_fields - 1]);
        }
    }
}

static void test_meminfo(void) {
    static const struct {
        const char *line;
        int result;
        const char *key;
        uint64_t value;
        bool kilobytes;
    } cases[] = {
        {"MemTotal:       24682416 kB\n", 0, "MemTotal", 24682416, true},
        {"Active(anon):       1164 kB", 0, "Active(anon)", 1164, true},
        {"HugePages_Total:       7", 0, "HugePages_Total", 7, false},
        {"MemTotal 24682416 kB", -EINVAL},
        {": 24682416 kB", -EINVAL},
        {"MemTotal:", -EINVAL},
        {"MemTotal: 1 MB", -EINVAL},
        {"MemTotal: 1 kB more", -EINVAL},
        {"MemTotal: -1 kB", -EINVAL},
        {"", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct meminfo_line line;
        int r = meminfo_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.key, cases[i].key), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(cases[i].value, line.value);
            TEST_ASSERT_EQUAL(cases[i].kilobytes, line.kilobytes);
        }
    }
}

static void test_net_dev(void) {
    static const struct {
        const char *line;
        const char *device; /* NULL: not understood */
    } cases[] = {
        {"    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "lo"},
        {"  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "eth0"},
        {"br-1.2@x%y\xfe: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "br-1.2@x%y\xfe"},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", NULL},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n16", NULL},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x", NULL},
        {"eth0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", NULL},
        {": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", NULL},
        {"eth0:", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net_dev_line line;
        int r = net_dev_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].device != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.device, cases[i].device), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(1, line.fields[0]);
            TEST_ASSERT_EQUAL_UINT64(16, line.fields[15]);
        }
    }
}

static void test_pressure(void) {
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
