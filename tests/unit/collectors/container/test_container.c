#include "collectors/container/container.h"

#include <errno.h>

#include "collectors/container/names.h"
#include "tests/unit/collectors/container/container_tree.h"
#include "tests/unit/waiting.h"

void setUp(void) {
    container_begin();
}

void tearDown(void) {
    tree_end();
}

#define DOCKER "id=\"/system.slice/docker-" A ".scope\",name=\"aaaaaaaaaaaa\""

static void test_docker_v2(void) {
    make_v2("/system.slice/docker-" A ".scope");
    make_process(100, "/system.slice/docker-" A ".scope", NULL);
    for (int round = 0; round < 2; round++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        check("container_cpu_usage_seconds_total", DOCKER ",cpu=\"total\"", 21.170124);
        check("container_cpu_user_seconds_total", DOCKER, 20.011);
        check("container_cpu_cfs_throttled_periods_total", DOCKER, 207);
        check("container_memory_usage_bytes", DOCKER, 52428800);
        check("container_memory_working_set_bytes", DOCKER, 52428800 - 20480000);
        check("container_memory_rss", DOCKER, 9150464);
        check("container_memory_cache", DOCKER, 36864000);
        check("container_memory_swap", DOCKER, 4096);
        check("container_memory_failcnt", DOCKER, 36);
        check("container_memory_failures_total",
              DOCKER ",failure_type=\"pgmajfault\",scope=\"hierarchy\"", 78);
        check("container_oom_events_total", DOCKER, 1);
        check("container_pressure_io_stalled_seconds_total", DOCKER, 0.24);
        check("container_fs_reads_bytes_total", DOCKER ",device=\"/dev/sda\"", 4096000);
        check("container_network_receive_bytes_total", DOCKER ",interface=\"eth0\"", 100);
        check("container_network_transmit_packets_dropped_total", DOCKER ",interface=\"eth0\"", 12);
        check("container_processes", DOCKER, 1);
        check("container_threads", DOCKER, 14);
        check("container_threads_max", DOCKER, 1024);
        check("container_spec_cpu_quota", DOCKER, 150000);
        check("container_spec_cpu_period", DOCKER, 100000);
        check("container_spec_cpu_shares", DOCKER, 2597);
        check("container_spec_memory_limit_bytes", DOCKER, 268435456);
        check("container_spec_memory_swap_limit_bytes", DOCKER, 0);
        check("container_start_time_seconds", DOCKER, 1005);
        TEST_ASSERT_NOT_NULL(find("container_last_seen", DOCKER));
        TEST_ASSERT_EQUAL_UINT64(1, count("container_network_receive_bytes_total"));
        /* The fixture has a container of LXC too. */
        TEST_ASSERT_EQUAL_UINT64(2, count("container_cpu_usage_seconds_total"));
        check("container_threads", "id=\"/lxc.payload.web\",name=\"web\"", 14);
    }
}

static void test_pod(void) {
    make_pod();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_threads",
          "id=\"" POD "/" A "\",name=\"" A "\",image=\"waggle/app:1\",container=\"app\","
          "namespace=\"ses\",pod=\"cam\"",
          14);
    check("container_threads", "id=\"" POD "/" B "\",name=\"" B "\"", 14);
    /* The network of the pod once, and with its sandbox. */
    TEST_ASSERT_EQUAL_UINT64(1, count("container_network_receive_bytes_total"));
    check("container_network_receive_bytes_total",
          "id=\"" POD "/" P "\",name=\"" P "\",namespace=\"ses\",pod=\"cam\",interface=\"eth0\"",
          100);
}

static void test_names_are_reachable_if_a_socket_or_a_bundle_is(void) {
    static const char *const places[] = {"run/docker.sock", "run/podman/podman.sock",
                                         "run/containerd/containerd.sock", BUNDLES};
    TEST_ASSERT_FALSE(container_names_reachable(rootfs, settings));
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        run("mkdir -p root/%s", places[i]);
        TEST_ASSERT_TRUE_MESSAGE(container_names_reachable(rootfs, settings), places[i]);
        run("rm -r root/run");
    }
    set_option("collector.container.docker-socket", "");
    TEST_ASSERT_FALSE(container_names_reachable(rootfs, settings));
}

static void test_network_of_the_host_is_left_out(void) {
    make_v2("/docker/" A);
    make_process(100, "/docker/" A, "1");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_network_receive_bytes_total"));
    TEST_ASSERT_EQUAL_UINT64(2, count("container_processes"));
}

static void test_a_process_that_ends_is_replaced(void) {
    make_v2("/docker/" A);
    make_process(100, "/docker/" A, NULL);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    make_process(101, "/docker/" A, NULL);
    run("rm -r proc/100 && echo 101 > v2/docker/" A "/cgroup.procs");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_network_receive_bytes_total",
          "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\",interface=\"eth0\"", 101);
}

#define PLUGIN "/kubepods/besteffort/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22/" A
#define JETPACK "id=\"" PLUGIN "\",name=\"" A "\""

static void test_jetpack4_v1(void) {
    static const char *const rows[] = {"cpu,cpuacct", "blkio", "pids"};
    use_cgroups("v1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        run("mkdir -p v1/%s" PLUGIN " && cp v1/%s/system.slice/* v1/%s" PLUGIN, rows[i], rows[i],
            rows[i]);
    }
    /* This hierarchy has it under another parent. */
    run("mkdir -p v1/memory/elsewhere/" A " && cp v1/memory/system.slice/* v1/memory/elsewhere/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_cpu_usage_seconds_total", JETPACK ",cpu=\"total\"", 21.170124123);
    check("container_cpu_cfs_throttled_seconds_total", JETPACK, 19.560993);
    check("container_memory_working_set_bytes", JETPACK, 52428800 - 20480000);
    check("container_memory_failcnt", JETPACK, 36);
    check("container_memory_swap", JETPACK, 8192);
    check("container_fs_writes_total", JETPACK ",device=\"/dev/sda\"", 2);
    check("container_threads_max", JETPACK, 0);
    check("container_threads", JETPACK, 14);
    TEST_ASSERT_NULL(find("container_processes", JETPACK)); /* they are hidden from us */
    check("container_spec_cpu_shares", JETPACK, 1024);
    check("container_spec_memory_reservation_limit_bytes", JETPACK, 0);
    TEST_ASSERT_EQUAL_UINT64(1, count("container_cpu_usage_seconds_total"));
    run("echo 0 > v1/pids" PLUGIN "/pids.current");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_processes", JETPACK, 0);
}

/* Nobody samples: the kernel tells when the last process has left, and that is when CPU time is
 * read for the last time. */
static void test_peak(void) {
    make_v2("/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_cpu_usage_peak_cores"));
    static const unsigned usages[] = {1000000, 901000000, 901050000};
    for (size_t i = 0; i < ARRAY_LEN(usages); i++) {
        run("echo usage_usec %u > v2/docker/" A "/cpu.stat", usages[i]);
        container_collector.sample(state);
        pace_ms(100);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    const struct sample *peak =
        find("container_cpu_usage_peak_cores", "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\"");
    TEST_ASSERT_NOT_NULL(peak);
    TEST_ASSERT_TRUE(peak->value > 1 && peak->value <= 9000); /* 900 s in 0.1 s, or less if late */
}

static void test_include_exclude_prefix(void) {
    make_pod();
    set_option("collector.container.include", "^(waggle/|b)");
    set_option("collector.container.exclude", "^bb");
    set_option("collector.container.prefix", "waap_container");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_threads"));
    TEST_ASSERT_EQUAL_UINT64(1, count("waap_container_threads"));
    TEST_ASSERT_EQUAL_UINT64(1, count("waap_container_cpu_usage_seconds_total"));
}

/* What is kept open is read afresh, and let go with its container. */
static void test_kept_files(void) {
    make_v2("/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("echo 4711 > v2/docker/" A "/memory.current && echo 5 > v2/docker/" A "/pids.current");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_memory_usage_bytes", "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\"", 4711);
    check("container_threads", "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\"", 5);
    for (int i = 0; i < 40; i++) { /* more than 256 files in all */
        run("rm -r v2/docker/" A);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        make_v2("/docker/" A);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        TEST_ASSERT_EQUAL_UINT64(2, count("container_threads"));
    }
    check("container_finished_total", "", 40);
}

static void test_nested_processes_are_counted(void) {
    make_v2("/machine.slice/libpod-" A ".scope");
    run("mkdir v2/machine.slice/libpod-" A ".scope/container");
    make_process(100, "/machine.slice/libpod-" A ".scope/container", NULL);
    make_process(101, "/machine.slice/libpod-" A ".scope/container", "100");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
#define PODMAN "id=\"/machine.slice/libpod-" A ".scope\",name=\"aaaaaaaaaaaa\""
    check("container_processes", PODMAN, 2);
    check("container_network_receive_bytes_total", PODMAN ",interface=\"eth0\"", 100);
}

#define USER "/user.slice/user-1000.slice/user@1000.service/user.slice"

/* Rootless podman is given cpu, memory and pids only. */
static void test_absent_controllers(void) {
    make_v2(USER "/libpod-" A ".scope");
    run("cd v2" USER "/libpod-" A ".scope && rm io.* memory.pressure cpu.pressure");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
#define ROOTLESS "id=\"" USER "/libpod-" A ".scope\",name=\"aaaaaaaaaaaa\""
    check("container_memory_usage_bytes", ROOTLESS, 52428800);
    TEST_ASSERT_NULL(find("container_fs_reads_bytes_total", ROOTLESS ",device=\"/dev/sda\""));
    TEST_ASSERT_NULL(find("container_pressure_cpu_waiting_seconds_total", ROOTLESS));
}

/* What has a container's number may be another process by the time it is looked at. */
static void test_a_number_is_used_again(void) {
    make_v2("/docker/" A);
    make_process(100, "/docker/" A, NULL);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("mv proc/100 proc/old && rm -r proc/old && mkdir -p proc/100/net");
    run("printf 'h\\nh\\neth7:7 2 3 4 0 0 0 0 90 10 11 12 0 0 0 0\\n' > proc/100/net/dev");
    run(": > v2/docker/" A "/cgroup.procs"); /* it is not the container's any more */
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_network_receive_bytes_total"));
}

static void test_descriptions_are_sound(void) {
    const struct metric_desc *desc;
    for (size_t i = 0; (desc = collector_metric(&container_collector, i)) != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
    }
}

static void test_no_cgroups_is_no_source(void) {
    use_cgroups("nowhere");
    TEST_ASSERT_EQUAL_INT(-ENODEV, container_collector.open(&env, &state, &err));
}
