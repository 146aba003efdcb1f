#include "collectors/cgroup/parse.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

static struct cgroup_stats stats;

void setUp(void) {
    cgroup_stats_reset(&stats);
}

void tearDown(void) {
    cgroup_stats_finish(&stats);
}

static int parse(bool unified, const char *name, const char *text) {
    for (size_t i = 0; i < cgroup_n_files; i++) {
        if (cgroup_files[i].unified == unified && strcmp(cgroup_files[i].name, name) == 0) {
            cgroup_stats_reset(&stats);
            return cgroup_files[i].parse(&cgroup_files[i], text, &stats);
        }
    }
    TEST_FAIL_MESSAGE(name);
    return 0;
}

/* NaN stands for what must stay unknown. */
static const struct {
    bool unified;
    const char *file;
    const char *text;
    int result;
    enum cgroup_value value;
    double expected;
} cases[] = {
    {true, "cpu.stat", "usage_usec 1500000\nuser_usec 1\n", 0, CGROUP_CPU_USAGE, 1.5},
    {true, "cpu.stat", "user_usec 1\nusage_usec 1500000", 0, CGROUP_CPU_USAGE, 1.5},
    {true, "cpu.stat", "usage_usec 1500000\n", 0, CGROUP_CPU_USER, NAN},
    {true, "cpu.stat", "usage_usec 18446744073709551615\n", 0, CGROUP_CPU_USAGE,
     18446744073709551615.0 / 1e6},
    {true, "cpu.stat", "usage_usec 18446744073709551616\n", -EINVAL, CGROUP_CPU_USAGE, NAN},
    {true, "cpu.stat", "nr_periods -2\n", 0, CGROUP_CPU_PERIODS, 4294967294},
    {true, "cpu.stat", "nr_periods - 2\n", -EINVAL, CGROUP_CPU_PERIODS, NAN},
    {true, "cpu.stat", "usage_usec\nnr_periods 3\n", 0, CGROUP_CPU_PERIODS, 3},
    {true, "cpu.stat", "usage_usec x\nnr_periods 3\n", -EINVAL, CGROUP_CPU_PERIODS, 3},
    {true, "cpu.stat", "usage_usecs 4\nusage_use 5\nusage_usec 6000000", 0, CGROUP_CPU_USAGE, 6},
    {true, "cpu.stat", "\n\n usage_usec 1\n", 0, CGROUP_CPU_USAGE, NAN},
    {true, "cpu.stat", "", 0, CGROUP_CPU_USAGE, NAN},
    {true, "cpu.max", "max 100000\n", 0, CGROUP_CPU_QUOTA_USEC, INFINITY},
    {true, "cpu.max", "50000 100000\n", 0, CGROUP_CPU_QUOTA_USEC, 50000},
    {true, "cpu.max", "50000 100000\n", 0, CGROUP_CPU_PERIOD_USEC, 100000},
    {true, "cpu.max", "50000 0\n", -EINVAL, CGROUP_CPU_PERIOD_USEC, NAN},
    {true, "cpu.max", "50000\n", -EINVAL, CGROUP_CPU_QUOTA_USEC, NAN},
    {true, "cpu.max", "maximum 1\n", -EINVAL, CGROUP_CPU_QUOTA_USEC, NAN},
    {true, "cpu.max", "", -EINVAL, CGROUP_CPU_QUOTA_USEC, NAN},
    {true, "memory.max", "max\n", 0, CGROUP_MEMORY_MAX, INFINITY},
    {true, "memory.max", "268435456\n", 0, CGROUP_MEMORY_MAX, 268435456},
    {true, "memory.max", "268435456 bytes\n", 0, CGROUP_MEMORY_MAX, 268435456},
    {true, "memory.max", "12x\n", -EINVAL, CGROUP_MEMORY_MAX, NAN},
    {true, "memory.max", "\n", -EINVAL, CGROUP_MEMORY_MAX, NAN},
    {true, "memory.current", "0", 0, CGROUP_MEMORY_CURRENT, 0},
    {true, "memory.events", "low 0\nhigh 5\nmax 36\noom 1\noom_kill 2\n", 0,
     CGROUP_MEMORY_EVENTS_OOM_KILL, 2},
    {true, "memory.events", "oom_kill 2\noom 1\n", 0, CGROUP_MEMORY_EVENTS_OOM, 1},
    {true, "memory.events", "sock_throttled 1\nmax 36\n", 0, CGROUP_MEMORY_EVENTS_MAX, 36},
    {true, "memory.stat", "anon 5\nanon_thp 6\nkernel 7\nanon_x 8\n", 0, CGROUP_MEMORY_ANON, 5},
    {true, "memory.stat", "file 1\nfile_mapped 2\nfile_thp 3\n", 0, CGROUP_MEMORY_FILE_MAPPED, 2},
    {true, "cgroup.stat", "nr_descendants 4\nnr_subsys_cpu 9\nnr_dying_descendants 5\n", 0,
     CGROUP_DYING_DESCENDANTS, 5},
    {true, "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=18227537\n", 0,
     CGROUP_PRESSURE_CPU_WAITING, 18.227537},
    {true, "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=18227537\n", 0,
     CGROUP_PRESSURE_CPU_STALLED, NAN},
    {true, "io.pressure", "some total=1\nfull avg10=0.00 total=2000000", 0,
     CGROUP_PRESSURE_IO_STALLED, 2},
    {true, "memory.pressure", "half total=1\n\nfull total=2000000\n", -EINVAL,
     CGROUP_PRESSURE_MEMORY_STALLED, 2},
    {true, "memory.pressure", "", 0, CGROUP_PRESSURE_MEMORY_WAITING, NAN},
    {true, "pids.max", "max", 0, CGROUP_PIDS_MAX, INFINITY},
    {false, "cpuacct.usage", "21170124123\n", 0, CGROUP_CPU_USAGE, 21.170124123},
    {false, "cpuacct.stat", "user 2001\nsystem 115\n", 0, CGROUP_CPU_USER, 20.01},
    {false, "cpuacct.stat", "user 2001\n", 0, CGROUP_CPU_SYSTEM, NAN},
    {false, "cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3000000000\n", 0,
     CGROUP_CPU_THROTTLED, 3},
    {false, "cpu.cfs_quota_us", "-1\n", 0, CGROUP_CPU_QUOTA_USEC, INFINITY},
    {false, "cpu.cfs_quota_us", "-\n", -EINVAL, CGROUP_CPU_QUOTA_USEC, NAN},
    {false, "memory.limit_in_bytes", "9223372036854771712\n", 0, CGROUP_MEMORY_MAX, INFINITY},
    {false, "memory.limit_in_bytes", "9223372036854710272\n", 0, CGROUP_MEMORY_MAX, INFINITY},
    {false, "memory.stat", "cache 1\nrss 2\ntotal_cache 3\ntotal_rss 4\n", 0, CGROUP_MEMORY_ANON,
     4},
    {false, "memory.stat", "inactive_file 1\n", 0, CGROUP_MEMORY_INACTIVE_FILE, NAN},
    {false, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 0,
     CGROUP_MEMORY_EVENTS_OOM_KILL, 3},
    {false, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0,
     CGROUP_MEMORY_EVENTS_OOM_KILL, NAN},
};

static void test_values(void) {
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = parse(cases[i].unified, cases[i].file, cases[i].text);
        double got = stats.values[cases[i].value];
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].text);
        bool same = isnan(cases[i].expected) ? isnan(got) : got == cases[i].expected;
        TEST_ASSERT_TRUE_MESSAGE(same, cases[i].text);
    }
}

/* The devices as "8:0 rbytes,wbytes,rios,wios,dbytes,dios;", - for what is unknown. */
static void check_devices(const char *expected, const char *text) {
    struct buf got CLEANUP_BUF = {0};
    for (size_t i = 0; i < stats.n_devices; i++) {
        const struct cgroup_io *device = &stats.devices[i];
        buf_printf(&got, "%u:%u", device->major, device->minor);
        for (size_t j = 0; j < CGROUP_IO_N_VALUES; j++) {
            buf_add_char(&got, j == 0 ? ' ' : ',');
            if (isnan(device->values[j])) {
                buf_add_char(&got, '-');
            } else {
                buf_printf(&got, "%.0f", device->values[j]);
            }
        }
        buf_add_char(&got, ';');
    }
    TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, buf_str(&got), text);
}

static void test_devices(void) {
    static const struct {
        bool unified;
        const char *file;
        const char *text;
        int result;
        const char *devices;
    } rows[] = {
        {true, "io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n", 0,
         "8:0 1,2,3,4,5,6;"},
        {true, "io.stat", "8:0 rbytes=1\n253:1 wios=2 cost.usage=3\n", 0,
         "8:0 1,-,-,-,-,-;253:1 -,-,-,2,-,-;"},
        {true, "io.stat", "8:0 \n", 0, ""},
        {true, "io.stat", "8:0 8:16 rbytes=1\n", 0, "8:16 1,-,-,-,-,-;"},
        {true, "io.stat", "8:0 rbytes=\n", 0, ""},
        {true, "io.stat", "8:0 rbytes=x wbytes=2\n", -EINVAL, "8:0 -,2,-,-,-,-;"},
        {true, "io.stat", "eight rbytes=1\n9:1 rbytes=2\n", -EINVAL, "9:1 2,-,-,-,-,-;"},
        {true, "io.stat", "8: rbytes=1\n", -EINVAL, ""},
        {true, "io.stat", ":8 rbytes=1\n", -EINVAL, ""},
        {true, "io.stat", "8:0:1 rbytes=1\n", -EINVAL, ""},
        {true, "io.stat", "99999999999:0 rbytes=1\n", -EINVAL, ""},
        {true, "io.stat", "", 0, ""},
        {false, "blkio.throttle.io_service_bytes",
         "8:0 Read 1\n8:0 Write 2\n8:0 Sync 9\n8:0 Discard 3\n8:0 Total 9\nTotal 9\n", 0,
         "8:0 1,2,-,-,3,-;"},
        {false, "blkio.throttle.io_serviced", "8:16 Write 2\n8:0 Read 1\nTotal 3\n", 0,
         "8:16 -,-,-,2,-,-;8:0 -,-,1,-,-,-;"},
        {false, "blkio.throttle.io_serviced", "Total 0\n", 0, ""},
        {false, "blkio.throttle.io_serviced", "8:0 Read\n8:0 Write 4\n", -EINVAL,
         "8:0 -,-,-,4,-,-;"},
        {false, "blkio.throttle.io_serviced", "8:0\n", -EINVAL, ""},
        {false, "blkio.throttle.io_serviced", "sda Read 4\n", -EINVAL, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int r = parse(rows[i].unified, rows[i].file, rows[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].result, r, rows[i].text);
        check_devices(rows[i].devices, rows[i].text);
    }
}

static void test_devices_are_bounded(void) {
    struct buf text CLEANUP_BUF = {0};
    for (int i = 0; i < 5000; i++) {
        buf_printf(&text, "8:%d rbytes=1\n", i);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, parse(true, "io.stat", buf_str(&text)));
    TEST_ASSERT_EQUAL_UINT64(1024, stats.n_devices);
}

static void test_working_set(void) {
    TEST_ASSERT_TRUE(isnan(cgroup_stats_working_set(&stats)));
    stats.values[CGROUP_MEMORY_CURRENT] = 100;
    TEST_ASSERT_TRUE(isnan(cgroup_stats_working_set(&stats)));
    stats.values[CGROUP_MEMORY_INACTIVE_FILE] = 40;
    TEST_ASSERT_EQUAL_DOUBLE(60, cgroup_stats_working_set(&stats));
    stats.values[CGROUP_MEMORY_INACTIVE_FILE] = 140;
    TEST_ASSERT_EQUAL_DOUBLE(0, cgroup_stats_working_set(&stats));
}

/* A file that stands in for another is the row behind it: the reader relies on that. */
static void test_table_of_files(void) {
    for (size_t i = 0; i < cgroup_n_files; i++) {
        if (cgroup_files[i].unless != NULL) {
            TEST_ASSERT_TRUE(i > 0);
            TEST_ASSERT_EQUAL_STRING(cgroup_files[i - 1].name, cgroup_files[i].unless);
        }
    }
}
