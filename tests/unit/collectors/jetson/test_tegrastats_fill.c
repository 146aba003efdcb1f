#include "collectors/jetson/tegrastats.h"

#include <stdio.h>
#include <unity.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/metrics.h"
#include "collectors/source/gpu_metrics.h"
#include "exporter/core/cleanup.h"
#include "tests/unit/snapshot_find.h"

static struct snapshot snapshot;
static struct label_pool pool;
static struct jetson_board board;

void setUp(void) {
    board = (struct jetson_board){.gpu = labels_render("gpu", "0")};
    TEST_ASSERT_NOT_NULL(board.gpu);
}

void tearDown(void) {
    snapshot_finish(&snapshot);
    label_pool_finish(&pool);
    labels_destroy(board.gpu);
}

static void fill(const char *text) {
    struct tegrastats_line line;
    TEST_ASSERT_EQUAL_INT(0, tegrastats_line_parse(text, strlen(text), &line));
    jetson_fill(&line, &board, &pool, &snapshot);
}

static void test_a_whole_line(void) {
    static const struct {
        const char *name;
        const char *labels;
        double value;
    } expected[] = {
        {"gpu_frequency_hertz", "gpu=\"0\"", 1300e6},
        {"gpu_memory_total_bytes", "gpu=\"0\"", 125811.0 * 1048576},
        {"gpu_power_watts", "gpu=\"0\"", -0.392},
        {"gpu_temperature_celsius", "gpu=\"0\"", 35.906},
        {"gpu_utilization_ratio", "gpu=\"0\"", 0.12},
        {"jetson_cpu_frequency_hertz", "cpu=\"0\"", 2160e6},
        {"jetson_cpu_online", "cpu=\"1\"", 0},
        {"jetson_emc_frequency_hertz", "", 3200e6},
        {"jetson_emc_utilization_ratio", "", 0.07},
        {"jetson_engine_active", "engine=\"nvenc0\"", 1},
        {"jetson_engine_active", "engine=\"ofa\"", 0},
        {"jetson_engine_frequency_hertz", "engine=\"nvenc0\"", 166e6},
        {"jetson_engine_utilization_ratio", "engine=\"nvenc0\"", 0.79},
        {"jetson_gpc_frequency_hertz", "gpc=\"1\"", 1300e6},
        {"jetson_memory_largest_free_block_bytes", "", 4194304},
        {"jetson_memory_largest_free_blocks", "", 19},
        {"jetson_memory_total_bytes", "", 125811.0 * 1048576},
        {"jetson_memory_used_bytes", "", 9101.0 * 1048576},
        {"jetson_power_total_watts", "", -0.392 + 8.71 + 6.767},
        {"jetson_rail_power_watts", "rail=\"vdd_gpu\"", -0.392},
        {"jetson_rail_power_watts", "rail=\"vin_sys_5v0\"", 6.767},
        {"jetson_swap_cached_bytes", "", 1048576},
        {"jetson_swap_total_bytes", "", 2048.0 * 1048576},
        {"jetson_swap_used_bytes", "", 3145728},
        {"jetson_temperature_celsius", "zone=\"soc012\"", 34.437},
    };
    fill("RAM 9101/125811MB (lfb 19x4MB) SWAP 3/2048MB (cached 1MB) CPU [39%@2160,off] "
         "EMC_FREQ 7%@3200 GR3D_FREQ 12%@[1300,1300] NVENC 79%@166 OFA off soc012@34.437C "
         "gpu@35.906C VDD_GPU -392mW/-392mW VDD_CPU_SOC_MSS 8710mW/8710mW VIN_SYS_5V0 "
         "6767mW/6767mW");
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct sample *sample =
            snapshot_find(&snapshot, expected[i].name, expected[i].labels);
        TEST_ASSERT_NOT_NULL_MESSAGE(sample, expected[i].name);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, expected[i].value, sample->value);
    }
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&snapshot, "tegra_"));
    TEST_ASSERT_NULL(snapshot_find(&snapshot, "jetson_cpu_frequency_hertz", "cpu=\"1\""));
    TEST_ASSERT_NULL(snapshot_find(&snapshot, "jetson_engine_frequency_hertz", "engine=\"ofa\""));
}

static void test_what_is_there_stays(void) {
    const struct labels *nvenc = label_pool_render(&pool, "engine", "nvenc0");
    const struct labels *vdd_in = label_pool_render(&pool, "rail", "vdd_in");
    snapshot_add(&snapshot, &gpu_descs[GPU_UTILIZATION], board.gpu, 0.5);
    snapshot_add(&snapshot, &jetson_descs[JETSON_ENGINE_ACTIVE], nvenc, 0);
    snapshot_add(&snapshot, &jetson_descs[JETSON_RAIL_POWER], vdd_in, 7);
    snapshot_add(&snapshot, &jetson_descs[JETSON_MEMORY_USED], NULL, 1);
    fill("RAM 10/20MB (lfb 1x4MB) CPU [5%@100] GR3D_FREQ 99%@[10] NVENC 79%@166 VDD_IN "
         "1000mW/1000mW VDD_SOC 500mW/500mW");
    TEST_ASSERT_EQUAL_DOUBLE(0.5,
                             snapshot_find(&snapshot, "gpu_utilization_ratio", "gpu=\"0\"")->value);
    TEST_ASSERT_EQUAL_DOUBLE(
        7, snapshot_find(&snapshot, "jetson_rail_power_watts", "rail=\"vdd_in\"")->value);
    TEST_ASSERT_EQUAL_DOUBLE(1, snapshot_find(&snapshot, "jetson_memory_used_bytes", "")->value);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot_count(&snapshot, "jetson_rail_power_watts"));
    TEST_ASSERT_EQUAL_UINT64(1, snapshot_count(&snapshot, "jetson_engine_active"));
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&snapshot, "jetson_engine_frequency_hertz"));
    TEST_ASSERT_EQUAL_UINT64(1, snapshot_count(&snapshot, "jetson_engine_utilization_ratio"));
}

static void test_other_names(void) {
    board.compat = COMPAT_TEGRA;
    fill("RAM 10/20MB (lfb 1x4MB) CPU [5%@100,off,7%@100] MTS fg 1% bg 8% VDD_IN 1000/900");
    TEST_ASSERT_EQUAL_DOUBLE(1, snapshot_find(&snapshot, "tegra_mts_fg_percentage", "")->value);
    TEST_ASSERT_EQUAL_DOUBLE(8, snapshot_find(&snapshot, "tegra_mts_bg_percentage", "")->value);
    TEST_ASSERT_EQUAL_DOUBLE(
        900,
        snapshot_find(&snapshot, "tegra_wattage_average_milliwatts", "sensor=\"vdd_in\"")->value);
    /* The load of the CPUs is that of /proc/stat. */
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_count(&snapshot, "tegra_cpu_util_percentage"));
}
