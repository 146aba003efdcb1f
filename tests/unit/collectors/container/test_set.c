#include "collectors/container/set.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/collectors/container/container_tree.h"
#include "tests/unit/waiting.h"

void setUp(void) {
    container_begin();
}

void tearDown(void) {
    tree_end();
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
    pace_ms(30);
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
    TEST_ASSERT_NOT_NULL(
        find("container_threads", "id=\"/system.slice/docker-" A ".scope\",name=\"aaaaaaaaaaaa\""));
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

static void test_too_many(void) {
    make_pod();
    set_option("collector.container.max-containers", "2");
    TEST_ASSERT_EQUAL_INT(-E2BIG, collect());
    TEST_ASSERT_EQUAL_UINT64(2, count("container_threads"));
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

/* Containers that come and go between being listed and being opened, without end: their events
 * never run out. */
static void test_races(void) {
    make_v2("/docker/" B);
    run("mv v2/docker/" B " kept");
    char away[160], there[160];
    snprintf(away, sizeof(away), "%s/kept", tree);
    snprintf(there, sizeof(there), "%s/v2/docker/" B, tree);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where the test fails */
        for (;;) {
            rename(away, there);
            rename(there, away);
        }
    }
    for (int i = 0; i < 50; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        size_t n = count("container_last_seen");
        TEST_ASSERT_TRUE(n == 1 || n == 2);
        container_collector.wake(state);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    rename(away, there);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(2, count("container_last_seen"));
}
