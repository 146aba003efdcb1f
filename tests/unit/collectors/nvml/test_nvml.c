#include "collectors/nvml/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "collectors/source/energy.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/unit/waiting.h"

static const char *const compat[] = {"off", "tegra", "prototype", NULL};

static const struct option shared[] = {
    {.name = "collector.jetson.compat",
     .type = OPTION_CHOICE,
     .repeatable = true,
     .choices = compat,
     .default_text = "off"},
    {.name = "collector.reprobe-interval", .type = OPTION_DURATION, .default_text = "50ms"},
    {.name = "sample.hz", .type = OPTION_INT, .default_text = "10"},
    {.name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"},
};

static struct settings *settings;
static struct snapshot snapshot;
static struct error err;
static void *state;
static char tree[64]; /* where the scenario is */
static char path[512];
static struct collector_env env;

static void write_scenario(const char *text) {
    char fresh[128], file[128];
    snprintf(fresh, sizeof(fresh), "%s/fresh", tree);
    snprintf(file, sizeof(file), "%s/scenario", tree);
    FILE *out = fopen(fresh, "we");
    TEST_ASSERT_NOT_NULL(out);
    fprintf(out, "watch\n%s\n", text);
    fclose(out);
    TEST_ASSERT_EQUAL_INT(0, rename(fresh, file));
}

static void set_option(const char *name, const char *text) {
    const struct option *option = settings_option(settings, name);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, settings_set(settings, option, 1, text, &err), err.text);
}

void setUp(void) {
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = nvml_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        options[n++] = &shared[i];
    }
    settings = settings_create(options, n);
    TEST_ASSERT_NOT_NULL(settings);
    strcpy(tree, "/tmp/test_nvml.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(tree));
    const char *folder = getenv("WAAP_FAKES");
    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1",
             folder != NULL ? folder : "build/tests/fakes");
    set_option("collector.nvml.library", path);
    char file[128];
    snprintf(file, sizeof(file), "%s/scenario", tree);
    setenv("FAKE_NVML", file, 1);
    env = (struct collector_env){.procfs = tree, .sysfs = tree, .settings = settings};
    state = NULL;
}

void tearDown(void) {
    if (state != NULL) {
        nvml_collector.close(state);
    }
    snapshot_finish(&snapshot);
    settings_destroy(settings);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", tree);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void open_it(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, nvml_collector.open(&env, &state, &err), err.text);
}

static int collect(void) {
    snapshot_reset(&snapshot);
    return nvml_collector.collect(state, &snapshot, &err);
}

/* The value of the series of that name whose labels contain `part`; -1 if there is none. */
static double value(const char *name, const char *part) {
    for (size_t i = 0; i < snapshot.n_families; i++) {
        const struct family *family = &snapshot.families[i];
        for (size_t j = 0; j < family->n_samples; j++) {
            const struct labels *labels = family->samples[j].labels;
            if (strcmp(family->desc->name, name) == 0 && strstr(labels->text, part) != NULL) {
                return family->samples[j].value;
            }
        }
    }
    return -1;
}

static unsigned n_starts(void) {
    void *dl = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    TEST_ASSERT_NOT_NULL(dl);
    const unsigned *n = dlsym(dl, "fake_nvml_n_starts");
    TEST_ASSERT_NOT_NULL(n);
    unsigned result = *n;
    dlclose(dl);
    return result;
}

static void test_no_scrape_starts_the_library(void) {
    write_scenario("gpus 1\n0.name A\n0.utilization 50 0");
    open_it();
    for (int i = 0; i < 5; i++) {
        TEST_ASSERT_EQUAL_INT(0, collect());
        nvml_collector.sample(state);
    }
    TEST_ASSERT_EQUAL_UINT(1, n_starts());
    TEST_ASSERT_EQUAL_DOUBLE(0.5, value("gpu_utilization_ratio", "gpu=\"0\""));
    TEST_ASSERT_EQUAL_DOUBLE(0.5, value("gpu_utilization_peak_ratio", "gpu=\"0\""));
}

static void test_what_is_not_supported_is_asked_once(void) {
    write_scenario("gpus 1\n0.name A");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    write_scenario("gpus 1\n0.name A\n0.power 1000\n0.temperature 50");
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("gpu_power_watts", ""));
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("gpu_temperature_celsius", ""));
    TEST_ASSERT_EQUAL_DOUBLE(0, value("nvidia_nvml_return_code", ""));
}

static void test_a_passing_failure_is_asked_again(void) {
    write_scenario("gpus 1\n0.name A\n0.power error 999");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("gpu_power_watts", ""));
    TEST_ASSERT_EQUAL_DOUBLE(999, value("nvidia_nvml_return_code", ""));
    write_scenario("gpus 1\n0.name A\n0.power 1500");
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(1.5, value("gpu_power_watts", ""));
    TEST_ASSERT_EQUAL_DOUBLE(0, value("nvidia_nvml_return_code", ""));
}

static void test_a_lost_gpu_comes_back(void) {
    write_scenario("gpus 2\n*.name A\n*.power 1000");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    write_scenario("gpus 2\n*.name A\n0.power 1000\n1.power error 15");
    TEST_ASSERT_EQUAL_INT(-EIO, collect());
    TEST_ASSERT_EQUAL_STRING("gpu 1: GPU is lost (15)", err.text);
    TEST_ASSERT_EQUAL_DOUBLE(1, value("gpu_power_watts", "gpu=\"0\""));
    TEST_ASSERT_EQUAL_DOUBLE(15, value("nvidia_nvml_return_code", "gpu=\"1\""));
    write_scenario("gpus 2\n*.name A\n*.power 2000");
    TEST_ASSERT_EQUAL_INT(-EIO, collect()); /* no scrape starts anything */
    TEST_ASSERT_EQUAL_UINT(1, n_starts());
    TEST_ASSERT_TRUE(BECOMES_TRUE((nvml_collector.sample(state), n_starts() == 2)));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_DOUBLE(2, value("gpu_power_watts", "gpu=\"1\""));
}

static void test_a_gpu_lost_from_the_start_comes_back(void) {
    write_scenario("gpus 2\n*.name A\n*.power 1000\n1.handle error 15");
    open_it();
    TEST_ASSERT_EQUAL_INT(-EIO, collect());
    TEST_ASSERT_EQUAL_DOUBLE(15, value("nvidia_nvml_return_code", "gpu=\"1\""));
    write_scenario("gpus 2\n*.name A\n*.power 1000");
    TEST_ASSERT_TRUE_MESSAGE(BECOMES_TRUE((nvml_collector.sample(state), collect() == 0)),
                             err.text);
    TEST_ASSERT_EQUAL_DOUBLE(1, value("gpu_power_watts", "gpu=\"1\",uuid=\"GPU-00000001"));
}

static void test_a_driver_that_is_gone(void) {
    write_scenario("gpus 2\n*.name A\n*.power 1000");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    write_scenario("gpus 2\n*.name A\n0.power 1000\n1.power error 1");
    TEST_ASSERT_EQUAL_INT(-ENODEV, collect());
    TEST_ASSERT_EQUAL_DOUBLE(1, value("nvidia_nvml_return_code", "gpu=\"1\""));
}

static void test_no_gpu(void) {
    write_scenario("gpus 0");
    TEST_ASSERT_EQUAL_INT(-ENODEV, nvml_collector.open(&env, &state, &err));
    TEST_ASSERT_EQUAL_STRING("NVML knows no GPU", err.text);
    write_scenario("gpus 1\n0.handle error 4");
    TEST_ASSERT_EQUAL_INT(-ENODEV, nvml_collector.open(&env, &state, &err));
}

static void test_mig_instances_come_and_go(void) {
    write_scenario(
        "gpus 1\n0.name A\n0.mig.mode 1 1\n0.mig.instances 1 2\n0.mig.memory.0 100 0 60 40");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(1, value("nvidia_mig_info", "gpu_instance=\"1\""));
    TEST_ASSERT_EQUAL_DOUBLE(1, value("nvidia_mig_info", "gpu_instance=\"2\""));
    TEST_ASSERT_EQUAL_DOUBLE(40, value("nvidia_mig_memory_used_bytes", "mig_uuid=\"MIG-"));
    write_scenario("gpus 1\n0.name A\n0.mig.mode 1 1\n0.mig.instances - 2");
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("nvidia_mig_info", "gpu_instance=\"1\""));
    TEST_ASSERT_EQUAL_DOUBLE(1, value("nvidia_mig_info", "gpu_instance=\"2\""));
    write_scenario("gpus 1\n0.name A\n0.mig.mode 0 0");
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("nvidia_mig_info", ""));
}

static void test_xid_errors(void) {
    write_scenario("gpus 1\n0.name A\n0.xid");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(0, value("nvidia_xid_errors_total", "xid=\"79\""));
    write_scenario("gpus 1\n0.name A\n0.xid 79 79 163");
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(2, value("nvidia_xid_errors_total", "xid=\"79\""));
    /* A code out of the usual is 0 first, so that its increase can be seen. */
    TEST_ASSERT_EQUAL_DOUBLE(0, value("nvidia_xid_errors_total", "xid=\"163\""));
}

static void test_pcie_throughput_is_optional(void) {
    write_scenario("gpus 1\n0.name A\n0.pcie.throughput 15 25");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("gpu_pcie_receive_bytes_per_second", ""));
    nvml_collector.close(TAKE(state));
    set_option("collector.nvml.pcie-throughput", "true");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(15000, value("gpu_pcie_transmit_bytes_per_second", ""));
    TEST_ASSERT_EQUAL_DOUBLE(25000, value("gpu_pcie_receive_bytes_per_second", ""));
}

static void test_energy_is_integrated_where_no_counter_is(void) {
    write_scenario("gpus 1\n0.name A\n0.power 100000");
    open_it();
    nvml_collector.sample(state);
    TEST_ASSERT_TRUE(BECOMES_TRUE((nvml_collector.sample(state), collect() == 0) &&
                                  value("gpu_energy_joules_total", "") >= 5));
    TEST_ASSERT_EQUAL_DOUBLE(100, value("gpu_power_peak_watts", ""));
}

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void put_process(int pid, const char *cgroup) {
    char command[256];
    snprintf(command, sizeof(command), "cd %s && mkdir %d && echo '0::%s' > %d/cgroup", tree, pid,
             cgroup, pid);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

/* Containers have their parts in the load of all processes. */
static void test_energy_is_told(void) {
    struct energy_list list = {0};
    struct energy *energy = energy_create();
    env.energy = energy;
    put_process(12, "/docker/" A);
    put_process(13, "/docker/" A);
    put_process(14, "/init.scope");
    write_scenario("gpus 1\n0.name X\n0.uuid GPU-1\n0.energy 7000\n"
                   "0.loads 12 20 13 40 14 20 15 101 12 40");
    open_it();
    nvml_collector.sample(state);
    write_scenario("gpus 1\n0.name X\n0.uuid GPU-1\n0.energy 9500\n0.loads 14 20");
    nvml_collector.sample(state); /* too soon */
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(1, list.n_rows);
    TEST_ASSERT_EQUAL_DOUBLE(0, list.rows[0].reading.joules);
    TEST_ASSERT_EQUAL_UINT64(1, list.rows[0].n_shares);
    TEST_ASSERT_EQUAL_STRING("/docker/" A, list.rows[0].shares[0].id);
    TEST_ASSERT_EQUAL_DOUBLE(0.8, list.rows[0].shares[0].ratio);
    uint64_t meter = list.rows[0].meter;
    TEST_ASSERT_TRUE(
        BECOMES_TRUE((nvml_collector.sample(state), energy_read(energy, &list), true) &&
                     list.rows[0].reading.joules != 0));
    TEST_ASSERT_EQUAL_DOUBLE(2.5, list.rows[0].reading.joules);
    TEST_ASSERT_EQUAL_DOUBLE(2.5, list.rows[0].reading.gpu_joules);
    TEST_ASSERT_TRUE(list.rows[0].reading.seconds > 1);
    TEST_ASSERT_EQUAL_UINT64(0, list.rows[0].n_shares);
    write_scenario("gpus 1\n0.name X\n0.uuid GPU-1\n0.energy 10\n");
    TEST_ASSERT_TRUE(/* the driver was loaded again */
                     BECOMES_TRUE(
                         (nvml_collector.sample(state), energy_read(energy, &list), true) &&
                         list.rows[0].meter != meter));
    TEST_ASSERT_EQUAL_DOUBLE(0, list.rows[0].reading.joules);
    nvml_collector.close(TAKE(state));
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(0, list.n_rows);
    energy_list_finish(&list);
    energy_destroy(energy);
}

/* Samples of the driver between two looks of ours are not lost. */
static void test_the_peak_between_two_looks(void) {
    write_scenario("gpus 1\n0.name A\n0.utilization 10 0\n0.samples.utilization 20000 10 10 95");
    open_it();
    int64_t begin_ns = clock_monotonic_ns();
    nvml_collector.sample(state);
    int64_t between_ns = clock_monotonic_ns();
    pace_ms(900);
    double least = (double)(clock_monotonic_ns() - between_ns) / 1e9;
    nvml_collector.sample(state);
    double most = (double)(clock_monotonic_ns() - begin_ns) / 1e9;
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(0.1, value("gpu_utilization_ratio", ""));
    TEST_ASSERT_EQUAL_DOUBLE(0.95, value("gpu_utilization_peak_ratio", ""));
    /* The driver's samples come every 20 ms, so a few are not there yet. */
    double busy = value("gpu_busy_seconds_total", "") / ((0.1 + 0.1 + 0.95) / 3);
    TEST_ASSERT_TRUE(busy > least - 0.15 && busy < most + 0.15);
}

static void test_names_of_the_prototype(void) {
    write_scenario("gpus 1\n0.name A\n0.memory 100 30 70");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(-1, value("GPUMemoryUsage", ""));
    nvml_collector.close(TAKE(state));
    set_option("collector.jetson.compat", "prototype");
    open_it();
    TEST_ASSERT_EQUAL_INT(0, collect());
    TEST_ASSERT_EQUAL_DOUBLE(value("gpu_memory_used_bytes", ""), value("GPUMemoryUsage", ""));
    TEST_ASSERT_EQUAL_DOUBLE(value("gpu_memory_total_bytes", ""), value("GPUMemoryTotal", ""));
}

static void test_descriptions_are_valid_and_sorted(void) {
    const struct metric_desc *desc;
    for (size_t i = 0; (desc = collector_metric(&nvml_collector, i)) != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
        if (i > 0) {
            TEST_ASSERT_TRUE_MESSAGE(
                strcmp(collector_metric(&nvml_collector, i - 1)->name, desc->name) < 0, desc->name);
        }
    }
}
