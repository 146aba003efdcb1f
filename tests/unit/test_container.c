#include "collectors/container.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/collector_tree.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define P "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define POD "/kubepods/burstable/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
#define BUNDLES "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io"

void setUp(void) {
    tree_begin(&container_collector, "cgroup");
    run("mkdir -p root proc/1/net && touch proc/1/net/dev");
    run("printf 'cpu 1\\nbtime 1000\\n' > proc/stat");
}

void tearDown(void) {
    tree_end();
}

/* A container's cgroup with the recorded files of system.slice. */
static void make_v2(const char *path) {
    run("mkdir -p v2%s && cp v2/user.slice/[cmip]* v2%s/ && cp v2/system.slice/io.stat "
        "v2/system.slice/cpu.max v2%s/",
        path, path, path);
}

/* As in a label's value. */
static char *escape(const char *text) {
    struct buf out = {0};
    for (; *text != '\0'; text++) {
        buf_add_str(&out, *text == '\\' ? "\\" : "");
        buf_add_char(&out, *text);
    }
    return buf_take(&out);
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
    use_cgroups("hybrid");
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

/* More than the kernel keeps for us: what is lost is found by looking at all of the tree. */
static void test_events_are_lost(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    char path[96];
    snprintf(path, sizeof(path), "%s/v2/system.slice/other", tree);
    for (int i = 0; i < 10000; i++) {
        mkdir(path, 0755);
        rmdir(path);
    }
    make_v2("/system.slice/docker-" A ".scope");
    container_collector.wake(state);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_NOT_NULL(find("container_threads", DOCKER));
}

/* Its name is looked up when it comes, as its bundle goes with it. */
static void test_short_life_has_an_image(void) {
    make_pod();
    run("mv v2" POD "/" A " .");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    run("mv " A " v2" POD "/");
    container_collector.wake(state);
    run("rm -r v2" POD "/" A " root/" BUNDLES "/" A);
    container_collector.wake(state);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check("container_finished_total", "image=\"waggle/app:1\"", 1);
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

#define UID_ "2b0c4f5a_11d2_4c3e_9d7e_aa00bb11cc22"
#define BURSTABLE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define USER "/user.slice/user-1000.slice/user@1000.service/user.slice"

/* Every runtime's way to lay out its cgroups, with what stands beside and below its containers. */
static void test_layouts(void) {
    static const struct {
        const char *path; /* of the container */
        const char *name;
        const char *inside; /* a cgroup that belongs to it, or NULL */
        const char *beside; /* a cgroup that is no container, or NULL */
    } rows[] = {
        {"/docker/" A, "aaaaaaaaaaaa", "/init.scope", NULL},
        {"/kubepods/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22/" A, A, NULL, NULL},
        {BURSTABLE "/cri-containerd-" A ".scope", A, NULL, "/system.slice/" A ".mount"},
        {BURSTABLE "/crio-" A ".scope", A, "/container", BURSTABLE "/crio-conmon-" A ".scope"},
        {BURSTABLE "/docker-" A ".scope", "aaaaaaaaaaaa", NULL, NULL},
        {"/kubepods/besteffort/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22/crio-" A, A, NULL,
         "/kubepods/besteffort/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22/crio-conmon-" A},
        {"/system.slice/containerd.service/kubepods-pod" UID_ ".slice:cri-containerd:" A, A, NULL,
         "/system.slice/containerd.service/init"},
        {"/machine.slice/libpod-" A ".scope", "aaaaaaaaaaaa", "/container",
         "/machine.slice/libpod-conmon-" A ".scope"},
        {"/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope", "aaaaaaaaaaaa",
         "/container", NULL},
        {"/libpod_parent/libpod-" A, "aaaaaaaaaaaa", NULL, "/libpod_parent/conmon"},
        {USER "/libpod-" A ".scope", "aaaaaaaaaaaa", "/container",
         USER "/libpod-conmon-" A ".scope"},
        {USER "/docker-" A ".scope", "aaaaaaaaaaaa", NULL, NULL},
        {"/lxc.payload.cam", "cam", "/system.slice/ssh.service", "/lxc.monitor.cam"},
        {"/lxc/cam", "cam", "/init.scope", NULL},
        {"/machine.slice/machine-my\\x2dcam.scope", "my-cam", "/payload",
         "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope"},
        {"/machine.slice/systemd-nspawn@cam.service", "cam", "/supervisor", NULL},
        {"/k8s.io/plain1", "plain1", NULL, NULL},
        {"/somewhere/else/" A, "aaaaaaaaaaaa", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *inside = rows[i].inside != NULL ? rows[i].inside : "";
        const char *beside = rows[i].beside != NULL ? rows[i].beside : "";
        run("mkdir -p 'next%s%s' 'next%s' && cp v2/cgroup.controllers next && "
            "cp v2/user.slice/[cmip]* 'next%s'",
            rows[i].path, inside, beside, rows[i].path);
        use_cgroups("next");
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, count("container_last_seen"), rows[i].path);
        char *escaped CLEANUP_FREE = escape(rows[i].path);
        struct buf labels CLEANUP_BUF = {0};
        buf_printf(&labels, "id=\"%s\",name=\"%s\"", escaped, rows[i].name);
        check("container_memory_usage_bytes", buf_str(&labels), 52428800);
        container_collector.close(TAKE(state));
        run("rm -r next");
    }
}

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

/* Containers that come and go between being listed and being opened. */
static void test_races(void) {
    make_v2("/docker/" B);
    run("mv v2/docker/" B " kept");
    char away[160], there[160];
    snprintf(away, sizeof(away), "%s/kept", tree);
    snprintf(there, sizeof(there), "%s/v2/docker/" B, tree);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 2000; i++) {
            rename(away, there);
            rename(there, away);
        }
        _exit(0);
    }
    int status = 0;
    size_t n_seen = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        n_seen += count("container_last_seen") == 2 ? 1 : 0;
        container_collector.wake(state);
    }
    TEST_ASSERT_EQUAL_INT(0, status);
    TEST_ASSERT_GREATER_THAN_UINT64(0, n_seen);
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
    for (const struct metric_desc *const *desc = container_collector.metrics; *desc != NULL;
         desc++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(*desc, &err), err.text);
    }
}

static void test_no_cgroups_is_no_source(void) {
    use_cgroups("nowhere");
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
    RUN_TEST(test_events_are_lost);
    RUN_TEST(test_short_life_has_an_image);
    RUN_TEST(test_peak);
    RUN_TEST(test_include_exclude_prefix);
    RUN_TEST(test_kept_files);
    RUN_TEST(test_too_many);
    RUN_TEST(test_nested_processes_are_counted);
    RUN_TEST(test_layouts);
    RUN_TEST(test_absent_controllers);
    RUN_TEST(test_races);
    RUN_TEST(test_a_number_is_used_again);
    RUN_TEST(test_descriptions_are_sound);
    RUN_TEST(test_no_cgroups_is_no_source);
    return UNITY_END();
}
