#include "collectors/jetson/jetson.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "tests/unit/collectors/jetson/jetson_tree.h"
#include "tests/unit/snapshot_find.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define THOR_GPU "gpu=\"0\",uuid=\"IGPU-6fabeb20-1851-8a29-bdb1-4a85724e52c5\""

enum { NOBODY = 65534 };

void setUp(void) {
    tree_begin();
    plant_board("xavier_nx_jp5");
}

void tearDown(void) {
    tree_end();
}

static int collect(void) {
    static int64_t now_ns = 5000 * CLOCK_NS_PER_SEC;
    if (state == NULL) {
        open_collector();
    }
    now_ns += CLOCK_NS_PER_SEC;
    return collect_at(now_ns);
}

static void again(void) {
    tearDown();
    setUp();
}

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", tree, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
    fputs(text, file);
}

static const struct sample *find(const char *name, const char *labels) {
    return snapshot_find(&snapshot, name, labels);
}

static size_t count(const char *prefix) {
    return snapshot_count(&snapshot, prefix);
}

static double value(const char *name, const char *labels) {
    const struct sample *sample = find(name, labels);
    TEST_ASSERT_NOT_NULL_MESSAGE(sample, name);
    return sample->value;
}

static void test_elsewhere_it_is_absent(void) {
    env.sysfs = "/nonexistent";
    env.procfs = "/nonexistent";
    TEST_ASSERT_EQUAL_INT(-ENODEV, jetson_collector.open(&env, &state, &err));
    TEST_ASSERT_EQUAL_STRING("no Tegra in the device tree, no integrated GPU in /nonexistent",
                             err.text);
}

/* Containers often hide the device tree. */
static void test_the_gpu_alone_gives_it_away(void) {
    run("rm -r %s/device-tree %s/etc", procfs, tree);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_NOT_NULL(find("jetson_info", ""));
    TEST_ASSERT_NOT_NULL(find("gpu_info", "gpu=\"0\""));
    TEST_ASSERT_NOT_NULL(find("gpu_utilization_ratio", "gpu=\"0\""));
    TEST_ASSERT_NOT_NULL(find("jetson_power_mode", "id=\"8\""));
}

static void test_descriptions_are_sound_and_listed(void) {
    const struct metric_desc *desc, *other;
    for (size_t i = 0; (desc = collector_metric(&jetson_collector, i)) != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
        for (size_t j = i + 1; (other = collector_metric(&jetson_collector, j)) != NULL; j++) {
            TEST_ASSERT_TRUE_MESSAGE(strcmp(desc->name, other->name) != 0, desc->name);
        }
    }
    set_option("collector.jetson.compat", "tegra");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    for (size_t i = 0; i < snapshot.n_families; i++) {
        bool listed = false;
        for (size_t j = 0; collector_metric(&jetson_collector, j) != NULL; j++) {
            listed = listed || collector_metric(&jetson_collector, j) == snapshot.families[i].desc;
        }
        TEST_ASSERT_TRUE_MESSAGE(listed, snapshot.families[i].desc->name);
    }
}

static void test_without_root_there_is_less_and_no_failure(void) {
    if (geteuid() != 0) {
        TEST_IGNORE_MESSAGE("needs root to give it up");
    }
    run("chmod 755 %s && chmod 700 %s/kernel/debug && chmod 400 %s/devices/system/cpu/cpu*/cpufreq/"
        "cpuinfo_cur_freq",
        tree, sysfs, sysfs);
    set_option("collector.jetson.processes", "true");
    TEST_ASSERT_EQUAL_INT(0, seteuid(NOBODY));
    int r = collect();
    TEST_ASSERT_EQUAL_INT(0, seteuid(0));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    static const char *const lost[] = {"jetson_emc_", "jetson_engine_", "jetson_iram_",
                                       "jetson_gpc_", "gpu_process_"};
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, count(lost[i]), lost[i]);
    }
    TEST_ASSERT_EQUAL_DOUBLE(1190400000, value("jetson_cpu_frequency_hertz", "cpu=\"0\""));
    TEST_ASSERT_EQUAL_DOUBLE(0.428, value("gpu_utilization_ratio", NX_GPU));
    TEST_ASSERT_EQUAL_DOUBLE(422236160, value("gpu_memory_used_bytes", NX_GPU));
    TEST_ASSERT_EQUAL_UINT64(3, count("jetson_rail_power_watts"));
}

static void test_nothing_but_the_device_tree(void) {
    run("rm -r %s %s/meminfo %s/buddyinfo %s/stat %s/etc %s/var && mkdir %s", sysfs, procfs, procfs,
        procfs, tree, tree, sysfs);
    set_option("collector.jetson.compat", "tegra");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, snapshot_n_samples(&snapshot));
    TEST_ASSERT_NOT_NULL(find("tegra_last_updated_timestamp_epoch", ""));
}

static void test_garbage_is_named_and_the_rest_collected(void) {
    static const struct {
        const char *file;
        const char *lost; /* a family that must be gone, or short of one */
        size_t left;
    } cases[] = {
        {"sys/class/devfreq/17000000.gv11b/cur_freq", "gpu_frequency_hertz", 0},
        {"sys/class/hwmon/hwmon3/in1_input", "jetson_rail_power_watts", 2},
        {"sys/class/hwmon/hwmon1/rpm", "jetson_fan_rpm", 0},
        {"sys/class/hwmon/hwmon4/oc2_event_cnt", "jetson_overcurrent_events_total", 1},
        {"sys/class/thermal/thermal_zone1/temp", "gpu_temperature_celsius", 0},
        {"sys/class/thermal/cooling_device1/cur_state", "jetson_throttle_alert", 1},
        {"sys/devices/system/cpu/cpu1/online", "jetson_cpu_online", 5},
        {"sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_cur_freq", "jetson_cpu_frequency_hertz", 3},
        {"sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq", "jetson_cpu_frequency_max_hertz",
         3},
        {"sys/kernel/debug/bpmp/debug/clk/emc/rate", "jetson_emc_", 0},
        {"sys/kernel/debug/bpmp/debug/clk/gpcclk/rate", "jetson_gpc_frequency_hertz", 0},
        {"sys/kernel/actmon_avg_activity/mc_all", "jetson_emc_utilization_ratio", 0},
        {"sys/kernel/debug/clk/vic/clk_rate", "jetson_engine_frequency_hertz", 2},
        {"sys/kernel/debug/clk/vic/clk_enable_count", "jetson_engine_active", 5},
        {"sys/kernel/debug/vic/actmon_avg_norm", "jetson_engine_utilization_ratio", 0},
        {"var/lib/nvpmodel/status", "jetson_power_mode", 0},
        {"proc/buddyinfo", "jetson_memory_largest_free_block", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_file(cases[i].file, "what?\n");
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, collect(), cases[i].file);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, cases[i].file), err.text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].left, count(cases[i].lost), cases[i].file);
        TEST_ASSERT_EQUAL_UINT64(1, count("jetson_info"));
        TEST_ASSERT_EQUAL_UINT64(1, count("jetson_memory_total_bytes"));
        again();
    }
}

static void test_a_driver_that_comes_after_us(void) {
    run("mv %s/class/devfreq %s/away && mv %s/devices/17000000.gv11b %s/gv11b && "
        "mv %s/class/hwmon %s/hwmon && mv %s/class/thermal %s/thermal",
        sysfs, sysfs, sysfs, sysfs, sysfs, sysfs, sysfs, sysfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_NULL(find("gpu_utilization_ratio", NX_GPU));
    TEST_ASSERT_EQUAL_UINT64(0, count("jetson_rail_") + count("jetson_temperature_"));
    run("mv %s/away %s/class/devfreq && mv %s/gv11b %s/devices/17000000.gv11b && "
        "mv %s/hwmon %s/class/hwmon && mv %s/thermal %s/class/thermal",
        sysfs, sysfs, sysfs, sysfs, sysfs, sysfs, sysfs, sysfs);
    collect();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(0.428, value("gpu_utilization_ratio", NX_GPU));
    TEST_ASSERT_EQUAL_UINT64(3, count("jetson_rail_power_watts"));
    TEST_ASSERT_EQUAL_UINT64(6, count("jetson_temperature_celsius"));
}

static void test_what_comes_and_goes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    write_file("sys/devices/system/cpu/cpu3/online", "0\n");
    write_file("sys/devices/system/cpu/cpu4/online", "1\n");
    write_file("sys/kernel/debug/clk/vic/clk_enable_count", "0\n");
    write_file("sys/class/thermal/thermal_zone1/temp", "-256000\n");
    write_file("var/lib/nvpmodel/status", "pmode:0000\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(0, value("jetson_cpu_online", "cpu=\"3\""));
    TEST_ASSERT_EQUAL_DOUBLE(1, value("jetson_cpu_online", "cpu=\"4\""));
    TEST_ASSERT_NULL(find("jetson_cpu_frequency_hertz", "cpu=\"3\""));
    TEST_ASSERT_EQUAL_DOUBLE(0, value("jetson_engine_active", "engine=\"vic\""));
    TEST_ASSERT_NULL(find("jetson_engine_frequency_hertz", "engine=\"vic\""));
    TEST_ASSERT_NULL(find("jetson_temperature_celsius", "zone=\"gpu\""));
    TEST_ASSERT_EQUAL_UINT64(0, count("gpu_temperature_celsius"));
    TEST_ASSERT_NOT_NULL(find("jetson_power_mode", "id=\"0\",name=\"MODE_15W_2CORE\""));
}

/* Reading the speed of the loopback device is refused with EINVAL, as a sleeping sensor does. */
static void test_a_sensor_that_refuses_is_left_out(void) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/sys/class/net/lo/speed", &text, NULL) != -EINVAL) {
        TEST_IGNORE_MESSAGE("this machine has no file that answers EINVAL");
    }
    run("ln -sf /sys/class/net/lo/speed %s/class/thermal/thermal_zone1/temp", sysfs);
    run("ln -sf /sys/class/net/lo/speed %s/class/hwmon/hwmon3/curr1_input", sysfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(5, count("jetson_temperature_celsius"));
    TEST_ASSERT_EQUAL_UINT64(2, count("jetson_rail_power_watts"));
    TEST_ASSERT_EQUAL_UINT64(0, count("jetson_power_total_watts"));
    TEST_ASSERT_EQUAL_UINT64(0, count("jetson_energy_joules_total"));
}

/* Processes in no container, and those that are gone already, belong to none. */
static void test_memory_of_containers(void) {
    static const char clients[] = "sys/kernel/debug/nvmap/iovmm/clients";
    static const char a[] = NX_GPU ",id=\"/docker/" A "\"";
    static const char b[] = NX_GPU ",id=\"/docker/" B "\"";
    run("cd %s/proc && mkdir 11 12 13 6012", tree);
    write_file("proc/11/cgroup", "0::/docker/" A "\n");
    write_file("proc/12/cgroup", "0::/docker/" A "/init\n");
    write_file("proc/13/cgroup", "0::/docker/" B "\n");
    write_file("proc/6012/cgroup", "0::/init.scope\n");
    write_file(clients, "user x 11 1K\nuser x 12 2K\nuser y z 13 8K\nuser x 11 4K\n"
                        "user Xorg 6012 64K\nuser gone 99 32K\ntotal 111K\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("container_gpu_memory_bytes"));
    TEST_ASSERT_EQUAL_DOUBLE(7 * 1024, value("container_gpu_memory_bytes", a));
    TEST_ASSERT_EQUAL_DOUBLE(8 * 1024, value("container_gpu_memory_bytes", b));
    write_file(clients, "user y z 13 3K\ntotal 3K\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("container_gpu_memory_bytes"));
    TEST_ASSERT_EQUAL_DOUBLE(3 * 1024, value("container_gpu_memory_bytes", b));
    write_file(clients, "total 0K\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_gpu_memory_bytes"));
}

static void test_processes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("gpu_process_"));
    again();
    set_option("collector.jetson.processes", "true");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("gpu_process_memory_bytes"));
    TEST_ASSERT_EQUAL_DOUBLE(393216.0 * 1024,
                             value("gpu_process_memory_bytes",
                                   "comm=\"detect plugin x\",gpu=\"0\",pid=\"12345\"," NX_UUID));
    write_file("sys/kernel/debug/nvmap/iovmm/clients", "CLIENT PROCESS PID SIZE\nuser x y\n");
    TEST_ASSERT_EQUAL_INT(-EINVAL, collect());
    TEST_ASSERT_EQUAL_UINT64(0, count("gpu_process_memory_bytes"));
}

static double used_mib(void) {
    return value("jetson_memory_used_bytes", "") / 1048576;
}

static void test_names_of_the_prototype(void) {
    set_option("collector.jetson.compat", "tegra,prototype");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("TegraCPUUsage"));
    write_file("proc/stat", "cpu0 170 0 55 865 10 0 0 0 0 0\ncpu1 175 0 50 875 0 0 0 0 0 0\n");
    collect();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(used_mib(), value("RAMUsage", ""));
    TEST_ASSERT_EQUAL_DOUBLE(used_mib(), value("TegraRAMUsage", ""));
    TEST_ASSERT_EQUAL_DOUBLE(422236160, value("GPUMemoryUsage", NX_GPU));
    TEST_ASSERT_EQUAL_DOUBLE(7155404800, value("GPUMemoryTotal", NX_GPU));
    double sum = value("tegra_cpu_util_percentage", "cpu=\"1\"") +
                 value("tegra_cpu_util_percentage", "cpu=\"2\"");
    TEST_ASSERT_TRUE(sum > 100);
    TEST_ASSERT_EQUAL_DOUBLE(sum, value("TegraCPUUsage", ""));
    again();
    set_option("collector.jetson.compat", "prototype");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("tegra_"));
}

/* CUDA counts all memory as the GPU's where both share it. */
static void test_the_prototypes_gpu_memory_if_no_driver_reports_it(void) {
    tearDown();
    tree_begin();
    plant_board("thor_jp7");
    set_option("collector.jetson.compat", "prototype");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("gpu_memory_used_bytes"));
    TEST_ASSERT_EQUAL_DOUBLE(used_mib() * 1048576, value("GPUMemoryUsage", THOR_GPU));
}

static void test_the_prototype_is_on_every_machine(void) {
    tearDown();
    tree_begin();
    run("mkdir %s %s", procfs, sysfs);
    write_file("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1024 kB\nBuffers: 512 kB\n"
                               "Cached: 512 kB\n");
    write_file("proc/stat", "cpu0 100 0 0 100\ncpu900 100 0 0 100\n");
    set_option("collector.jetson.compat", "tegra");
    TEST_ASSERT_EQUAL_INT(-ENODEV, jetson_collector.open(&env, &state, &err));
    set_option("collector.jetson.compat", "");
    set_option("collector.jetson.compat", "prototype");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    write_file("proc/stat", "cpu0 200 0 0 100\ncpu900 150 0 0 150\n");
    collect();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(2, value("RAMUsage", ""));
    TEST_ASSERT_EQUAL_DOUBLE(2, value("TegraRAMUsage", ""));
    TEST_ASSERT_EQUAL_DOUBLE(150, value("TegraCPUUsage", ""));
    TEST_ASSERT_EQUAL_UINT64(3, snapshot_n_samples(&snapshot));
}

static void test_names_of_jetson_exporter(void) {
    static const struct {
        const char *name;
        const char *labels;
        double value;
    } expected[] = {
        {"tegra_cpu_frequency_hz", "cpu=\"4\"", 1189000000},
        {"tegra_cpu_util_percentage", "cpu=\"1\"", 75},
        {"tegra_emc_frequency_hz", "", 1600000000},
        {"tegra_emc_util_percentage", "", 7.8},
        {"tegra_gpu_frequency_hz", "", 510000000},
        {"tegra_gpu_util_percentage", "", 42.8},
        {"tegra_lfb_nblock_count", "", 165},
        {"tegra_lfb_size_bytes", "", 4194304},
        {"tegra_ram_total_bytes", "", 7155404800},
        {"tegra_ram_used_bytes", "", 3250085888},
        {"tegra_swap_cached_bytes", "", 319488},
        {"tegra_swap_total_bytes", "", 3577688064},
        {"tegra_swap_used_bytes", "", 4718592},
        {"tegra_temperature_celcius", "sensor=\"gpu\"", 43.5},
        {"tegra_wattage_average_milliwatts", "sensor=\"vdd_in\"", 6338.88},
        {"tegra_wattage_current_milliwatts", "sensor=\"vdd_in\"", 6338.88},
    };
    set_option("collector.jetson.compat", "tegra");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("tegra_cpu_util_percentage"));
    write_file("proc/stat", "cpu0 170 0 55 865 10 0 0 0 0 0\ncpu1 100 0 50 850 0 0 0 0 0 0\n");
    collect();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        TEST_ASSERT_DOUBLE_WITHIN(1e-9 * expected[i].value, expected[i].value,
                                  value(expected[i].name, expected[i].labels));
    }
    TEST_ASSERT_EQUAL_UINT64(1, count("tegra_cpu_util_percentage"));
    TEST_ASSERT_EQUAL_UINT64(4, count("tegra_cpu_frequency_hz"));
    TEST_ASSERT_EQUAL_UINT64(1, count("tegra_last_updated_timestamp_epoch"));
}
