#include "collectors/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

static struct settings *settings;
static struct snapshot snapshot;
static struct error err;
static void *state;
static char tree[64]; /* a copy of the fixtures that a test may change */
static char cgroupfs[128];
static char sysfs[128];

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    struct buf command CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&command, format, args);
    va_end(args);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, system(buf_str(&command)), buf_str(&command));
}

static void set_option(const char *name, const char *text) {
    const struct option *option = settings_option(settings, name);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, settings_set(settings, option, 1, text, &err), err.text);
}

void setUp(void) {
    static const struct option *options[8];
    size_t n = 0;
    for (const struct option *option = cgroup_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    settings = settings_create(options, n);
    TEST_ASSERT_NOT_NULL(settings);
    strcpy(tree, "/tmp/test_cgroup.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(tree));
    const char *source = getenv("WAAP_SOURCE_ROOT");
    run("cp -a '%s/tests/fixtures/cgroup/.' '%s'", source != NULL ? source : ".", tree);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", tree);
    snapshot = (struct snapshot){0};
    err = (struct error){{0}};
    state = NULL;
}

void tearDown(void) {
    cgroup_collector.close(state);
    snapshot_finish(&snapshot);
    settings_destroy(settings);
    run("rm -rf '%s'", tree);
}

static int open_tree(const char *name) {
    snprintf(cgroupfs, sizeof(cgroupfs), "%s/%s", tree, name);
    struct collector_env env = {
        .procfs = "", .sysfs = sysfs, .cgroupfs = cgroupfs, .rootfs = "/", .settings = settings};
    return cgroup_collector.open(&env, &state, &err);
}

static int collect(const char *name) {
    if (state == NULL) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_tree(name), err.text);
    }
    snapshot_reset(&snapshot);
    return cgroup_collector.collect(state, &snapshot, &err);
}

/* The sample of `name{labels}` or NULL; two of them are a failure. */
static const struct sample *find(const char *name, const char *labels) {
    const struct sample *found = NULL;
    for (size_t i = 0; i < snapshot.n_families; i++) {
        const struct family *family = &snapshot.families[i];
        for (size_t j = 0; j < family->n_samples; j++) {
            const struct sample *sample = &family->samples[j];
            const char *text = sample->labels != NULL ? sample->labels->text : "";
            if (strcmp(family->desc->name, name) == 0 && strcmp(text, labels) == 0) {
                TEST_ASSERT_NULL_MESSAGE(found, name);
                found = sample;
            }
        }
    }
    return found;
}

static size_t count(const char *name) {
    for (size_t i = 0; i < snapshot.n_families; i++) {
        if (strcmp(snapshot.families[i].desc->name, name) == 0) {
            return snapshot.families[i].n_samples;
        }
    }
    return 0;
}

static void check(const char *name, const char *labels, double value) {
    const struct sample *sample = find(name, labels);
    TEST_ASSERT_NOT_NULL_MESSAGE(sample, name);
    TEST_ASSERT_TRUE_MESSAGE(sample->value == value, name);
}

#define SYSTEM "cgroup=\"/system.slice\""

/* What v1 and v2 must tell alike. */
static void check_common(void) {
    check("cgroup_cpu_throttled_periods_total", SYSTEM, 207);
    check("cgroup_cpu_throttled_seconds_total", SYSTEM, 19.560993);
    check("cgroup_cpu_quota_cores", SYSTEM, 1.5);
    check("cgroup_memory_usage_bytes", SYSTEM, 52428800);
    check("cgroup_memory_working_set_bytes", SYSTEM, 52428800 - 20480000);
    check("cgroup_memory_peak_bytes", SYSTEM, 67108864);
    check("cgroup_memory_max_bytes", SYSTEM, 268435456);
    check("cgroup_memory_anon_bytes", SYSTEM, 9150464);
    check("cgroup_memory_file_bytes", SYSTEM, 36864000);
    check("cgroup_memory_kernel_bytes", SYSTEM, 2859008);
    check("cgroup_memory_page_faults_total", SYSTEM, 123456);
    check("cgroup_pids", SYSTEM, 14);
    check("cgroup_io_read_bytes_total", SYSTEM ",device=\"sda\"", 4096000);
    check("cgroup_io_writes_total", SYSTEM ",device=\"sda\"", 2);
}

static void test_v2(void) {
    for (int round = 0; round < 2; round++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
        check_common();
        check("waap_cgroup_mode", "mode=\"v2\"", 1);
        check("cgroup_cpu_usage_seconds_total", "cgroup=\"/\"", 71.170124);
        check("cgroup_cpu_usage_seconds_total", SYSTEM, 21.170124);
        check("cgroup_cpu_weight", SYSTEM, 100);
        check("cgroup_memory_events_oom_kill_total", SYSTEM, 1);
        check("cgroup_memory_low_bytes", SYSTEM, 1048576);
        check("cgroup_memory_swap_usage_bytes", SYSTEM, 4096);
        check("cgroup_pids_max", SYSTEM, 1024);
        check("cgroup_pressure_cpu_waiting_seconds_total", SYSTEM, 18.227537);
        check("cgroup_pressure_memory_stalled_seconds_total", SYSTEM, 2.000001);
        check("cgroup_dying_descendants", "cgroup=\"/\"", 3);
        check("cgroup_io_discards_total", SYSTEM ",device=\"mapper/data\"", 6);
        /* "max" is no limit, hence no series; the root has no usage of its own. */
        TEST_ASSERT_NULL(find("cgroup_memory_high_bytes", SYSTEM));
        TEST_ASSERT_NULL(find("cgroup_memory_swap_max_bytes", SYSTEM));
        TEST_ASSERT_NULL(find("cgroup_memory_usage_bytes", "cgroup=\"/\""));
        TEST_ASSERT_NULL(find("cgroup_cpu_quota_cores", "cgroup=\"/user.slice\""));
        TEST_ASSERT_NULL(find("cgroup_pids_peak", "cgroup=\"/user.slice\""));
        TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
        TEST_ASSERT_EQUAL_UINT64(4, count("cgroup_io_reads_total"));
    }
}

static void test_v1(void) {
    for (int round = 0; round < 2; round++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v1"), err.text);
        check_common();
        check("waap_cgroup_mode", "mode=\"v1\"", 1);
        check("cgroup_cpu_usage_seconds_total", SYSTEM, 21.170124123);
        check("cgroup_cpu_user_seconds_total", SYSTEM, 20.01);
        check("cgroup_cpu_shares", SYSTEM, 1024);
        check("cgroup_memory_failures_total", SYSTEM, 36);
        check("cgroup_memory_swap_usage_bytes", SYSTEM, 8192);
        check("cgroup_memory_usage_bytes", "cgroup=\"/\"", 52428800);
        TEST_ASSERT_NULL(find("cgroup_memory_max_bytes", "cgroup=\"/\""));
        TEST_ASSERT_NULL(find("cgroup_cpu_quota_cores", "cgroup=\"/\""));
        TEST_ASSERT_NULL(find("cgroup_pids_max", SYSTEM));
        TEST_ASSERT_NULL(find("cgroup_pids", "cgroup=\"/kubepods\""));
        TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
        TEST_ASSERT_EQUAL_UINT64(0, count("cgroup_pressure_cpu_waiting_seconds_total"));
    }
}

static void test_hybrid(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("hybrid"), err.text);
    check("waap_cgroup_mode", "mode=\"hybrid\"", 1);
    check("cgroup_cpu_usage_seconds_total", SYSTEM, 21.170124123);
    check("cgroup_memory_usage_bytes", SYSTEM, 52428800);
    check("cgroup_pressure_cpu_waiting_seconds_total", SYSTEM, 18.227537);
    check("cgroup_descendants", SYSTEM, 12);
}

static void test_depth_and_filters(void) {
    set_option("collector.cgroup.depth", "2");
    set_option("collector.cgroup.exclude", "^/user");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_pids", "cgroup=\"/system.slice/ssh.service\"", 14);
}

static void test_include_and_root_only(void) {
    set_option("collector.cgroup.include", "service$");
    set_option("collector.cgroup.depth", "3");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("cgroup_cpu_usage_seconds_total"));
    cgroup_collector.close(TAKE(state));
    set_option("collector.cgroup.include", "");
    set_option("collector.cgroup.depth", "0");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_cpu_usage_seconds_total", "cgroup=\"/\"", 71.170124);
}

static void test_too_many(void) {
    set_option("collector.cgroup.max-cgroups", "2");
    TEST_ASSERT_EQUAL_INT(-E2BIG, collect("v2"));
    TEST_ASSERT_EQUAL_STRING("more than 2 cgroups (collector.cgroup.max-cgroups)", err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("cgroup_cpu_usage_seconds_total"));
}

static void test_what_comes_and_goes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    run("rm -r %s/v2/user.slice && mv %s/v2/system.slice %s/v2/old.slice", tree, tree, tree);
    run("mkdir %s/v2/system.slice && echo usage_usec 7000000 > %s/v2/system.slice/cpu.stat", tree,
        tree);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_cpu_usage_seconds_total", SYSTEM, 7);
    check("cgroup_pids", "cgroup=\"/old.slice\"", 14);
    TEST_ASSERT_NULL(find("cgroup_pids", SYSTEM));
    TEST_ASSERT_NULL(find("cgroup_pids", "cgroup=\"/user.slice\""));
}

static void test_limits_are_kept_and_values_are_not(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    run("echo 1 > %s/v2/system.slice/memory.max; echo 2 > %s/v2/system.slice/memory.current", tree,
        tree);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect("v2"), err.text);
    check("cgroup_memory_max_bytes", SYSTEM, 268435456);
    check("cgroup_memory_usage_bytes", SYSTEM, 2);
    check("cgroup_memory_working_set_bytes", SYSTEM, 0);
}

static void test_garbage_is_named_and_the_rest_collected(void) {
    run("echo usage_usec lots > %s/v2/system.slice/cpu.stat", tree);
    TEST_ASSERT_EQUAL_INT(-EINVAL, collect("v2"));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, "/cpu.stat: not understood: \"usage_usec lots\""),
                                 err.text);
    TEST_ASSERT_NULL(find("cgroup_cpu_usage_seconds_total", SYSTEM));
    check("cgroup_pids", SYSTEM, 14);
    check("cgroup_pids", "cgroup=\"/user.slice\"", 14);
}

static void test_no_cgroups_is_no_source(void) {
    TEST_ASSERT_EQUAL_INT(-ENODEV, open_tree("nowhere"));
    TEST_ASSERT_EQUAL_INT(-ENODEV, open_tree("sys"));
}

static void test_descriptions_are_sound_and_listed(void) {
    for (const struct metric_desc *const *desc = cgroup_collector.metrics; *desc != NULL; desc++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(*desc, &err), err.text);
        for (const struct metric_desc *const *other = desc + 1; *other != NULL; other++) {
            TEST_ASSERT_TRUE_MESSAGE(strcmp((*desc)->name, (*other)->name) != 0, (*desc)->name);
        }
    }
    static const char *const trees[] = {"v1", "v2"};
    for (size_t t = 0; t < ARRAY_LEN(trees); t++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(trees[t]), err.text);
        for (size_t i = 0; i < snapshot.n_families; i++) {
            bool listed = false;
            for (size_t j = 0; cgroup_collector.metrics[j] != NULL; j++) {
                listed = listed || cgroup_collector.metrics[j] == snapshot.families[i].desc;
            }
            TEST_ASSERT_TRUE_MESSAGE(listed, snapshot.families[i].desc->name);
        }
        cgroup_collector.close(TAKE(state));
    }
}

static void test_this_machine(void) {
    struct collector_env env = {.procfs = "/proc",
                                .sysfs = "/sys",
                                .cgroupfs = "/sys/fs/cgroup",
                                .rootfs = "/",
                                .settings = settings};
    int r = cgroup_collector.open(&env, &state, &err);
    if (r == -ENODEV) {
        TEST_IGNORE_MESSAGE(err.text);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, cgroup_collector.collect(state, &snapshot, &err), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("waap_cgroup_mode"));
    TEST_ASSERT_NOT_NULL(find("cgroup_cpu_usage_seconds_total", "cgroup=\"/\""));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_v2);
    RUN_TEST(test_v1);
    RUN_TEST(test_hybrid);
    RUN_TEST(test_depth_and_filters);
    RUN_TEST(test_include_and_root_only);
    RUN_TEST(test_too_many);
    RUN_TEST(test_what_comes_and_goes);
    RUN_TEST(test_limits_are_kept_and_values_are_not);
    RUN_TEST(test_garbage_is_named_and_the_rest_collected);
    RUN_TEST(test_no_cgroups_is_no_source);
    RUN_TEST(test_descriptions_are_sound_and_listed);
    RUN_TEST(test_this_machine);
    return UNITY_END();
}
