#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "tests/unit/collectors/jetson/jetson_tree.h"
#include "tests/unit/snapshot_find.h"

/* What the sampler makes of a load that changes between scrapes, on a clock of our own. */

static int load_fd, status_fd, current_fd;
static int64_t now_ms;

static int open_file(const char *name) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", tree, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    TEST_ASSERT_TRUE_MESSAGE(fd >= 0, path);
    return fd;
}

void setUp(void) {
    tree_begin();
    plant_board("xavier_nx_jp5");
    load_fd = open_file("sys/devices/17000000.gv11b/load");
    status_fd = open_file("sys/devices/17000000.gv11b/power/runtime_status");
    current_fd = open_file("sys/class/hwmon/hwmon3/curr2_input");
    now_ms = 7000000;
    open_collector();
}

void tearDown(void) {
    close(load_fd);
    close(status_fd);
    close(current_fd);
    tree_end();
}

/* sysfs files change as a whole. */
static void rewrite(int fd, const char *text) {
    TEST_ASSERT_EQUAL_INT((int)strlen(text), pwrite(fd, text, strlen(text), 0));
    TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, (off_t)strlen(text)));
}

static void set_load(double load) {
    char text[16];
    int len = snprintf(text, sizeof(text), "%5.0f\n", load * 1000);
    TEST_ASSERT_EQUAL_INT(len, pwrite(load_fd, text, (size_t)len, 0));
}

static void set_watts(double watts) {
    char text[16];
    int len = snprintf(text, sizeof(text), "%5.0f\n", watts * 1e6 / 5112);
    TEST_ASSERT_EQUAL_INT(len, pwrite(current_fd, text, (size_t)len, 0));
}

static double value(const char *name, const char *labels) {
    const struct sample *sample = snapshot_find(&snapshot, name, labels);
    TEST_ASSERT_NOT_NULL_MESSAGE(sample, name);
    return sample->value;
}

static double busy(void) {
    return value("gpu_busy_seconds_total", NX_GPU);
}

static void step(void) {
    now_ms += 100;
    jetson_sample_at(state, now_ms * CLOCK_NS_PER_MS);
}

static void scrape(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_at(now_ms * CLOCK_NS_PER_MS), err.text);
}

static void test_bursts_between_scrapes(void) {
    static const int64_t offsets_ms[] = {0, 130, 370, 510, 790, 220, 640};
    double busy_seconds = 0, joules = 0;
    set_load(0.05);
    set_watts(2);
    step();
    scrape();
    double begin_busy = busy();
    double begin_joules = value("jetson_rail_energy_joules_total", "rail=\"vdd_cpu_gpu_cv\"");
    for (int tick = 0; tick < 1200; tick++) { /* two minutes; a burst in every second */
        for (int64_t ms = now_ms; ms < now_ms + 100; ms++) {
            int64_t since_ms = ms % 1000 - offsets_ms[ms / 1000 % (int)ARRAY_LEN(offsets_ms)];
            bool burst = since_ms >= 0 && since_ms < 200;
            busy_seconds += (burst ? 0.9 : 0.05) / 1000;
            joules += (burst ? 9 : 2) / 1000.0;
        }
        int64_t at_ms = now_ms + 100;
        int64_t since_ms = at_ms % 1000 - offsets_ms[at_ms / 1000 % (int)ARRAY_LEN(offsets_ms)];
        bool burst = since_ms >= 0 && since_ms < 200;
        set_load(burst ? 0.9 : 0.05);
        set_watts(burst ? 9 : 2);
        step();
        if (tick % 100 == 99) {
            scrape();
            TEST_ASSERT_EQUAL_DOUBLE(0.9, value("gpu_utilization_peak_ratio", NX_GPU));
            TEST_ASSERT_DOUBLE_WITHIN(
                0.01, 9, value("jetson_rail_power_peak_watts", "rail=\"vdd_cpu_gpu_cv\""));
        }
    }
    TEST_ASSERT_DOUBLE_WITHIN(0.02 * busy_seconds, busy_seconds, busy() - begin_busy);
    TEST_ASSERT_DOUBLE_WITHIN(0.02 * joules, joules,
                              value("jetson_rail_energy_joules_total", "rail=\"vdd_cpu_gpu_cv\"") -
                                  begin_joules);
}

/* After ten seconds of silence, a burst of 200 ms that only the rail tells in time. */
static void test_a_burst_after_a_long_rest(void) {
    double expected = 0;
    rewrite(status_fd, "unsupported\n");
    for (int tick = 0; tick < 1030; tick++) {
        bool burst = tick % 103 >= 100 && tick % 103 < 102;
        set_load(burst ? 0.8 : 0);
        set_watts(burst ? 8 : 1);
        expected += burst ? 0.8 * 0.1 : 0;
        step();
    }
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(0.8, value("gpu_utilization_peak_ratio", NX_GPU));
    TEST_ASSERT_DOUBLE_WITHIN(0.02 * expected, expected, busy());
}

/* A value that would be seen if it were read. */
static void test_a_gpu_that_sleeps_is_not_read(void) {
    set_load(0);
    for (int tick = 0; tick < 12; tick++) {
        step();
    }
    rewrite(status_fd, "suspended\n");
    set_load(0.5);
    for (int tick = 0; tick < 100; tick++) {
        step();
        scrape();
        TEST_ASSERT_EQUAL_DOUBLE(0, value("gpu_utilization_ratio", NX_GPU));
    }
    rewrite(status_fd, "active\n");
    step();
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(0.5, value("gpu_utilization_ratio", NX_GPU));
}

static void test_gaps_are_not_counted(void) {
    set_load(1);
    step();
    step();
    scrape();
    double before = busy();
    now_ms += 60000;
    step();
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(before, busy());
    rewrite(load_fd, "");
    step();
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(before, busy());
    TEST_ASSERT_NULL(snapshot_find(&snapshot, "gpu_utilization_ratio", NX_GPU));
    set_load(1);
    step();
    step();
    scrape();
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, before + 0.1, busy());
}

static void test_energy_of_a_rail_that_cannot_be_read_is_not_guessed(void) {
    static const char name[] = "jetson_rail_energy_joules_total";
    static const char labels[] = "rail=\"vdd_cpu_gpu_cv\"";
    set_watts(10);
    step();
    step();
    scrape();
    double before = value(name, labels);
    TEST_ASSERT_DOUBLE_WITHIN(0.01, 1, before);
    rewrite(current_fd, "");
    step();
    scrape();
    TEST_ASSERT_EQUAL_DOUBLE(before, value(name, labels));
    TEST_ASSERT_NULL(snapshot_find(&snapshot, "jetson_rail_power_watts", labels));
    set_watts(10);
    step();
    step();
    scrape();
    TEST_ASSERT_DOUBLE_WITHIN(0.01, before + 1, value(name, labels));
}

/* Two servers scrape at times of their own; none takes anything from the other. */
static void test_scrapes_change_nothing(void) {
    set_load(0.5);
    for (int tick = 0; tick < 100; tick++) {
        step();
        now_ms += 30;
        scrape();
        now_ms += 20;
        scrape();
        now_ms -= 50;
    }
    TEST_ASSERT_DOUBLE_WITHIN(0.1, 5, busy());
    TEST_ASSERT_EQUAL_DOUBLE(0.5, value("gpu_utilization_peak_ratio", NX_GPU));
}
