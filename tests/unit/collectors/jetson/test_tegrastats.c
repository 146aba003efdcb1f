#include <errno.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "tests/unit/collectors/jetson/jetson_tree.h"
#include "tests/unit/snapshot_find.h"
#include "tests/unit/waiting.h"

/* The whole collector with a tegrastats that plays what the test wrote. */

static char program[96];

void setUp(void) {
    tree_begin();
    snprintf(program, sizeof(program), "/tmp/test_jetson_tegrastats.%d", getpid());
    set_option("collector.jetson.tegrastats", program);
}

void tearDown(void) {
    tree_end();
    strcat(program, "*");
    remove_files(program);
}

static void play(const char *text) {
    const char *fake = getenv("WAAP_FAKE_TEGRASTATS");
    if (fake == NULL) {
        TEST_IGNORE_MESSAGE("WAAP_FAKE_TEGRASTATS is not set");
    }
    char path[128];
    snprintf(path, sizeof(path), "%s.play", program);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    run("install -m 755 '%s' '%s'", fake, program);
}

static double value(const char *name, const char *labels) {
    const struct sample *sample = snapshot_find(&snapshot, name, labels);
    TEST_ASSERT_NOT_NULL_MESSAGE(sample, name);
    return sample->value;
}

static void collect_until_it_is_up(void) {
    TEST_ASSERT_TRUE_MESSAGE(BECOMES_TRUE(collect_at(clock_monotonic_ns()) != 0 ||
                                          value("jetson_source_up", "source=\"tegrastats\"") == 1),
                             "tegrastats never came up");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_at(clock_monotonic_ns()), err.text);
}

static void test_a_named_program_is_a_source_anywhere(void) {
    run("mkdir %s %s", procfs, sysfs);
    play("RAM 10/20MB (lfb 1x4MB) CPU [5%@100] GR3D_FREQ 30%@[10] VDD_IN 1000mW/1000mW\n");
    open_collector();
    collect_until_it_is_up();
    TEST_ASSERT_EQUAL_DOUBLE(0.3, value("gpu_utilization_ratio", "gpu=\"0\""));
    TEST_ASSERT_EQUAL_DOUBLE(1, value("jetson_power_total_watts", ""));
    TEST_ASSERT_EQUAL_DOUBLE(0, value("jetson_tegrastats_restarts_total", ""));
    TEST_ASSERT_NULL(snapshot_find(&snapshot, "jetson_source_up", "source=\"sysfs\""));
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&snapshot, "jetson_info"));
}

static void test_files_come_first(void) {
    plant_board("xavier_nx_jp5");
    play("RAM 10/20MB (lfb 1x4MB) CPU [5%@100] GR3D_FREQ 99%@[10] NVDEC 79%@166 VDD_IN 1/1\n");
    open_collector();
    collect_until_it_is_up();
    TEST_ASSERT_EQUAL_DOUBLE(0.428, value("gpu_utilization_ratio", NX_GPU));
    TEST_ASSERT_EQUAL_DOUBLE(6.33888, value("jetson_rail_power_watts", "rail=\"vdd_in\""));
    TEST_ASSERT_EQUAL_DOUBLE(0.79, value("jetson_engine_utilization_ratio", "engine=\"nvdec0\""));
    TEST_ASSERT_EQUAL_DOUBLE(793600000,
                             value("jetson_engine_frequency_hertz", "engine=\"nvdec0\""));
    TEST_ASSERT_EQUAL_DOUBLE(1, value("jetson_source_up", "source=\"sysfs\""));
}

static void test_a_named_program_that_is_missing(void) {
    plant_board("xavier_nx_jp5");
    open_collector();
    TEST_ASSERT_EQUAL_INT(-ENOENT, collect_at(clock_monotonic_ns()));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, program), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(0.428, value("gpu_utilization_ratio", NX_GPU));
    play("RAM 10/20MB (lfb 1x4MB) CPU [5%@100]\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_at(clock_monotonic_ns()), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(0, value("jetson_source_up", "source=\"tegrastats\""));
}

static void test_off_elsewhere_is_no_source(void) {
    set_option("collector.jetson.tegrastats", "off");
    TEST_ASSERT_EQUAL_INT(-ENODEV, jetson_collector.open(&env, &state, &err));
    set_option("collector.jetson.tegrastats", "auto");
    TEST_ASSERT_EQUAL_INT(-ENODEV, jetson_collector.open(&env, &state, &err));
}
