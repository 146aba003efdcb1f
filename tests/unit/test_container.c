#include "collectors/container.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define P "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define POD "/kubepods/burstable/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
#define BUNDLES "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io"

static struct settings *settings;
static struct snapshot snapshot;
static struct error err;
static void *state;
static char tree[64];
static char paths[4][128];
static struct collector_env env;

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    struct buf command CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&command, "cd '%s' && ", tree);
    buf_vprintf(&command, format, args);
    va_end(args);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, system(buf_str(&command)), buf_str(&command));
}

static void set_option(const char *name, const char *text) {
    const struct option *option = settings_option(settings, name);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, settings_set(settings, option, 1, text, &err), err.text);
}

static const char *path_of(size_t i, const char *name) {
    snprintf(paths[i], sizeof(paths[i]), "%s/%s", tree, name);
    return paths[i];
}

static void use(const char *cgroupfs) {
    env = (struct collector_env){
        .procfs = path_of(0, "proc"),
        .sysfs = path_of(1, "sys"),
        .cgroupfs = path_of(2, cgroupfs),
        .rootfs = path_of(3, "root"),
        .settings = settings,
    };
}

void setUp(void) {
    static const struct option window = {
        .name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"};
    static const struct option *options[16] = {&window};
    size_t n = 1;
    for (const struct option *row = container_collector.options; row->name != NULL; row++) {
        options[n++] = row;
    }
    settings = settings_create(options, n);
    TEST_ASSERT_NOT_NULL(settings);
    strcpy(tree, "/tmp/test_container.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(tree));
    const char *source = getenv("WAAP_SOURCE_ROOT");
    run("cp -a '%s/tests/fixtures/cgroup/.' . && mkdir -p root proc/1/net && touch proc/1/net/dev",
        source != NULL ? source : ".");
    run("printf 'cpu 1\\nbtime 1000\\n' > proc/stat");
    use("v2");
    snapshot = (struct snapshot){0};
    err = (struct error){{0}};
    state = NULL;
}

void tearDown(void) {
    container_collector.close(state);
    snapshot_finish(&snapshot);
    settings_destroy(settings);
    run("rm -rf '%s'", tree);
}

/* A container's cgroup with the recorded files of system.slice. */
static void make_v2(const char *path) {
    run("mkdir -p v2%s && cp v2/user.slice/[cmip]* v2%s/ && cp v2/system.slice/io.stat "
        "v2/system.slice/cpu.max v2%s/",
        path, path, path);
}

static void make_process(int pid, const char *cgroup, const char *namespace_of) {
    run("mkdir -p proc/%d/net && echo %d >> v2%s/cgroup.procs", pid, pid, cgroup);
    run("echo '%d (a ) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0' > proc/%d/stat", pid, pid);
    if (namespace_of != NULL) {
        run("ln proc/%s/net/dev proc/%d/net/dev", namespace_of, pid);
        return;
    }
    run("printf 'h\\nh\\n  lo: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\\n"
        "eth0:%d 2 3 4 0 0 0 0 90 10 11 12 0 0 0 0\\n' > proc/%d/net/dev",
        pid, pid);
}

static int collect(void) {
    if (state == NULL) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, container_collector.open(&env, &state, &err), err.text);
    }
    snapshot_reset(&snapshot);
    return container_collector.collect(state, &snapshot, &err);
}

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
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(value, sample->value, name);
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

static void write_bundle(const char *id, const char *annotations) {
    run("mkdir -p root/" BUNDLES "/%s && echo '{\"annotations\":{%s}}' > root/" BUNDLES
        "/%s/config.json",
        id, annotations, id);
}

static void make_pod(void) {
    make_v2(POD "/" P);
    make_v2(POD "/" A);
    make_v2(POD "/" B);
    make_process(100, POD "/" A, NULL);
    make_process(101, POD "/" B, "100");
    make_process(102, POD "/" P, "100");
    write_bundle(P, "\"io.kubernetes.cri.container-type\":\"sandbox\","
                    "\"io.kubernetes.cri.sandbox-name\":\"cam\","
                    "\"io.kubernetes.cri.sandbox-namespace\":\"ses\"");
    write_bundle(A, "\"io.kubernetes.cri.container-name\":\"app\","
                    "\"io.kubernetes.cri.image-name\":\"waggle/app:1\","
                    "\"io.kubernetes.cri.sandbox-name\":\"cam\","
                    "\"io.kubernetes.cri.sandbox-namespace\":\"ses\"");
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
    use("v1");
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
    check("container_spec_cpu_shares", JETPACK, 1024);
    check("container_spec_memory_reservation_limit_bytes", JETPACK, 0);
    TEST_ASSERT_EQUAL_UINT64(1, count("container_cpu_usage_seconds_total"));
}

static void test_what_comes_and_goes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("container_threads"));
    make_v2("/docker/" A);
    make_v2("/docker/" B);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("container_threads"));
    run("rm -r v2/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("container_threads"));
    TEST_ASSERT_NOT_NULL(find("container_threads", "id=\"/docker/" B "\",name=\"bbbbbbbbbbbb\""));
    TEST_ASSERT_EQUAL_UINT64(1, count("container_finished_total"));
    check("container_finished_total", "", 1);
    make_v2("/new.slice/new-deep.slice/docker-" A ".scope");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count("container_threads"));
    run("rm -r v2/new.slice v2/docker");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count("container_threads"));
    check("container_finished_total", "", 3);
}

static void test_a_namesake_is_another_container(void) {
    make_v2("/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("rm -r v2/docker/" A);
    make_v2("/docker/" A);
    run("echo usage_usec 5000000 > v2/docker/" A "/cpu.stat");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_cpu_usage_seconds_total",
          "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\",cpu=\"total\"", 5);
    check("container_finished_total", "", 1);
}

static void test_short_life_between_two_scrapes(void) {
    make_pod();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("mv v2" POD "/" A " v2/kept && rm -r v2/kept");
    make_v2(POD "/" A);
    run("echo usage_usec 1000000 > v2" POD "/" A "/cpu.stat");
    container_collector.sample(state);
    usleep(30000);
    run("echo usage_usec 1300000 > v2" POD "/" A "/cpu.stat");
    container_collector.sample(state);
    run("rm -r v2" POD "/" A);
    container_collector.sample(state);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_NULL(find("container_threads", "id=\"" POD "/" A "\",name=\"" A "\""));
    check("container_finished_total", "image=\"waggle/app:1\"", 2);
    check("container_finished_cpu_usage_seconds_total", "image=\"waggle/app:1\"", 21.170124 + 1.3);
}

static bool woken(void) {
    struct pollfd fd = {.fd = container_collector.wake_fd(state), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* Nobody samples: the kernel tells when the last process has left, and that is when CPU time is
 * read for the last time. */
static void test_last_process_leaves(void) {
    make_v2("/docker/" B); /* so that /docker is there */
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    make_v2("/docker/" A);
    run("echo populated 1 > v2/docker/" A "/cgroup.events");
    TEST_ASSERT_TRUE(woken());
    container_collector.wake(state);
    TEST_ASSERT_FALSE(woken());
    run("echo usage_usec 5000000 > v2/docker/" A "/cpu.stat");
    run("echo populated 0 > v2/docker/" A "/cgroup.events");
    TEST_ASSERT_TRUE(woken());
    container_collector.wake(state);
    run("rm -r v2/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_finished_total", "", 1);
    check("container_finished_cpu_usage_seconds_total", "", 5);
}

/* The same where v1 has the CPU time and the v2 hierarchy, which gets the cgroup later, tells. */
static void test_last_process_leaves_hybrid(void) {
    use("hybrid");
    run("mkdir -p hybrid/cpuacct/docker hybrid/unified/docker");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("mkdir hybrid/cpuacct/docker/" A " && echo 1 > hybrid/cpuacct/docker/" A "/cpuacct.usage");
    container_collector.wake(state);
    run("mkdir -p u/" A " && echo populated 1 > u/" A "/cgroup.events && "
        "mv u/" A " hybrid/unified/docker/");
    container_collector.wake(state);
    run("echo 3000000000 > hybrid/cpuacct/docker/" A "/cpuacct.usage");
    run("echo populated 0 > hybrid/unified/docker/" A "/cgroup.events");
    TEST_ASSERT_TRUE(woken());
    container_collector.wake(state);
    run("rm -r hybrid/unified/docker/" A " && rm -r hybrid/cpuacct/docker/" A);
    container_collector.wake(state);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_finished_total", "", 1);
    check("container_finished_cpu_usage_seconds_total", "", 3);
}

/* Directories that come with what is in them, before they could be watched. */
static void test_deep_directories_appear(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    make_v2("/kept" POD "/" A);
    run("mv v2/kept/kubepods v2/kubepods");
    container_collector.wake(state);
    make_v2(POD "/" B);
    container_collector.wake(state);
    run("rm -r v2" POD "/" A " v2" POD "/" B);
    container_collector.wake(state);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_finished_total", "", 2);
}

static void test_peak(void) {
    make_v2("/docker/" A);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count("container_cpu_usage_peak_cores"));
    static const unsigned usages[] = {1000000, 1900000, 1950000};
    for (size_t i = 0; i < ARRAY_LEN(usages); i++) {
        run("echo usage_usec %u > v2/docker/" A "/cpu.stat", usages[i]);
        container_collector.sample(state);
        usleep(100000);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    const struct sample *peak =
        find("container_cpu_usage_peak_cores", "id=\"/docker/" A "\",name=\"aaaaaaaaaaaa\"");
    TEST_ASSERT_NOT_NULL(peak);
    TEST_ASSERT_TRUE(peak->value > 1 && peak->value <= 9); /* 0.9 s in 0.1 s, or more if late */
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

static void test_too_many(void) {
    make_pod();
    set_option("collector.container.max-containers", "2");
    TEST_ASSERT_EQUAL_INT(-E2BIG, collect());
    TEST_ASSERT_EQUAL_UINT64(2, count("container_threads"));
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

static void test_descriptions_are_sound(void) {
    for (const struct metric_desc *const *desc = container_collector.metrics; *desc != NULL;
         desc++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(*desc, &err), err.text);
    }
}

static void test_no_cgroups_is_no_source(void) {
    use("nowhere");
    TEST_ASSERT_EQUAL_INT(-ENODEV, container_collector.open(&env, &state, &err));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_docker_v2);
    RUN_TEST(test_pod);
    RUN_TEST(test_network_of_the_host_is_left_out);
    RUN_TEST(test_a_process_that_ends_is_replaced);
    RUN_TEST(test_jetpack4_v1);
    RUN_TEST(test_what_comes_and_goes);
    RUN_TEST(test_a_namesake_is_another_container);
    RUN_TEST(test_short_life_between_two_scrapes);
    RUN_TEST(test_last_process_leaves);
    RUN_TEST(test_last_process_leaves_hybrid);
    RUN_TEST(test_deep_directories_appear);
    RUN_TEST(test_peak);
    RUN_TEST(test_include_exclude_prefix);
    RUN_TEST(test_kept_files);
    RUN_TEST(test_too_many);
    RUN_TEST(test_nested_processes_are_counted);
    RUN_TEST(test_descriptions_are_sound);
    RUN_TEST(test_no_cgroups_is_no_source);
    return UNITY_END();
}
