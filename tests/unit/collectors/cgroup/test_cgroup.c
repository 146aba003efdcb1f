#include "collectors/cgroup/cgroup.h"

#include <errno.h>

#include "tests/unit/collector_tree.h"

void setUp(void) {
    tree_begin(&cgroup_collector, "cgroup");
}

void tearDown(void) {
    tree_end();
}

static int collect_from(const char *name) {
    use_cgroups(name);
    return collect();
}

static int open_tree(const char *name) {
    use_cgroups(name);
    return cgroup_collector.open(&env, &state, &err);
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
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
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
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v1"), err.text);
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
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("hybrid"), err.text);
    check("waap_cgroup_mode", "mode=\"hybrid\"", 1);
    check("cgroup_cpu_usage_seconds_total", SYSTEM, 21.170124123);
    check("cgroup_memory_usage_bytes", SYSTEM, 52428800);
    check("cgroup_pressure_cpu_waiting_seconds_total", SYSTEM, 18.227537);
    check("cgroup_descendants", SYSTEM, 12);
}

static void test_depth_and_filters(void) {
    set_option("collector.cgroup.depth", "2");
    set_option("collector.cgroup.exclude", "^/user");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_pids", "cgroup=\"/system.slice/ssh.service\"", 14);
}

static void test_include_and_root_only(void) {
    set_option("collector.cgroup.include", "service$");
    set_option("collector.cgroup.depth", "3");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("cgroup_cpu_usage_seconds_total"));
    cgroup_collector.close(TAKE(state));
    set_option("collector.cgroup.include", "");
    set_option("collector.cgroup.depth", "0");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_cpu_usage_seconds_total", "cgroup=\"/\"", 71.170124);
}

static void test_too_many(void) {
    set_option("collector.cgroup.max-cgroups", "2");
    TEST_ASSERT_EQUAL_INT(-E2BIG, collect_from("v2"));
    TEST_ASSERT_EQUAL_STRING("more than 2 cgroups (collector.cgroup.max-cgroups)", err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("cgroup_cpu_usage_seconds_total"));
}

static void test_what_comes_and_goes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    run("rm -r v2/user.slice && mv v2/system.slice v2/old.slice");
    run("mkdir v2/system.slice && echo usage_usec 7000000 > v2/system.slice/cpu.stat");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("cgroup_cpu_usage_seconds_total"));
    check("cgroup_cpu_usage_seconds_total", SYSTEM, 7);
    check("cgroup_pids", "cgroup=\"/old.slice\"", 14);
    TEST_ASSERT_NULL(find("cgroup_pids", SYSTEM));
    TEST_ASSERT_NULL(find("cgroup_pids", "cgroup=\"/user.slice\""));
}

static void test_limits_are_kept_and_values_are_not(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    run("echo 1 > v2/system.slice/memory.max; echo 2 > v2/system.slice/memory.current");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from("v2"), err.text);
    check("cgroup_memory_max_bytes", SYSTEM, 268435456);
    check("cgroup_memory_usage_bytes", SYSTEM, 2);
    check("cgroup_memory_working_set_bytes", SYSTEM, 0);
}

static void test_garbage_is_named_and_the_rest_collected(void) {
    run("echo usage_usec lots > v2/system.slice/cpu.stat");
    TEST_ASSERT_EQUAL_INT(-EINVAL, collect_from("v2"));
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
    const struct metric_desc *desc, *other;
    for (size_t i = 0; (desc = collector_metric(&cgroup_collector, i)) != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
        for (size_t j = i + 1; (other = collector_metric(&cgroup_collector, j)) != NULL; j++) {
            TEST_ASSERT_TRUE_MESSAGE(strcmp(desc->name, other->name) != 0, desc->name);
        }
    }
    static const char *const trees[] = {"v1", "v2"};
    for (size_t t = 0; t < ARRAY_LEN(trees); t++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_from(trees[t]), err.text);
        for (size_t i = 0; i < snapshot.n_families; i++) {
            bool listed = false;
            for (size_t j = 0; collector_metric(&cgroup_collector, j) != NULL; j++) {
                listed =
                    listed || collector_metric(&cgroup_collector, j) == snapshot.families[i].desc;
            }
            TEST_ASSERT_TRUE_MESSAGE(listed, snapshot.families[i].desc->name);
        }
        cgroup_collector.close(TAKE(state));
    }
}

static void test_this_machine(void) {
    env.sysfs = "/sys";
    env.cgroupfs = "/sys/fs/cgroup";
    int r = cgroup_collector.open(&env, &state, &err);
    if (r == -ENODEV) {
        TEST_IGNORE_MESSAGE(err.text);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, cgroup_collector.collect(state, &snapshot, &err), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("waap_cgroup_mode"));
    TEST_ASSERT_NOT_NULL(find("cgroup_cpu_usage_seconds_total", "cgroup=\"/\""));
}
