#include "collectors/cgroup/container_path.h"

#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
#define UID_ "2b0c4f5a_11d2_4c3e_9d7e_aa00bb11cc22"
#define HASH "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

static const struct {
    const char *path;
    const char *expected; /* "runtime id pod", pod - for none; NULL: not a container */
    const char *inside;   /* what of the path lies inside the container */
} cases[] = {
    {"/docker/" A, "docker " A " -", ""},
    {"/x/" A, "unknown " A " -", ""},
    {"/docker/" A "/docker/" B, "docker " A " -", "/docker/" B},
    {"/system.slice/docker-" A ".scope", "docker " A " -", ""},
    {"/foo.slice/foo-bar.slice/docker-" A ".scope/init.scope", "docker " A " -", "/init.scope"},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope",
     "docker " A " -", ""},
    {"/kubepods/pod" UID "/" A, "containerd " A " " UID, ""},
    {"/kubepods/burstable/pod" UID "/" A, "containerd " A " " UID, ""},
    {"/kubepods/besteffort/pod" HASH "/" A "/sub", "containerd " A " " HASH, "/sub"},
    {"/kubepods/burstable/pod" UID "/crio-" A, "crio " A " " UID, ""},
    {"/kubepods/burstable/pod" UID "/crio-conmon-" A, NULL, NULL},
    {"/kubepods/burstable/pod" UID, NULL, NULL},
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
     ".slice/cri-containerd-" A ".scope",
     "containerd " A " " UID_, ""},
    {"/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" A ".scope/container", "crio " A " " UID_,
     "/container"},
    {"/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" A ".scope", NULL, NULL},
    {"/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" A ".scope", "docker " A " " UID_, ""},
    {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
     "kubelet-kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" A ".scope",
     "containerd " A " " UID_, ""},
    {"/system.slice/containerd.service/kubepods-burstable-pod" UID_ ".slice:cri-containerd:" A,
     "containerd " A " " UID_, ""},
    {"/machine.slice/libpod-" A ".scope/container", "podman " A " -", "/container"},
    {"/machine.slice/libpod-conmon-" A ".scope", NULL, NULL},
    {"/machine.slice/machine-libpod_pod_" A ".slice/libpod-" B ".scope", "podman " B " -", ""},
    {"/machine.slice/machine-libpod_pod_" A ".slice", NULL, NULL},
    {"/libpod_parent/libpod-" A, "podman " A " -", ""},
    {"/system.slice/web.service/libpod-payload-" A, "podman " A " -", ""},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope/container",
     "podman " A " -", "/container"},
    {"/default/nerdctl-" A ".scope", "containerd " A " -", ""},
    {"/default/" A, "unknown " A " -", ""},
    {"/k8s.io/plain1", "containerd plain1 -", ""},
    {"/machine.slice/machine-web.scope/payload", "nspawn web -", "/payload"},
    {"/machine.slice/machine-a\\x2db.scope", "nspawn a\\x2db -", ""},
    {"/machine.slice/systemd-nspawn@web.service/supervisor", "nspawn web -", "/supervisor"},
    {"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", NULL, NULL},
    {"/machine.slice", NULL, NULL},
    {"/lxc/web", "lxc web -", ""},
    {"/lxc/101/ns/system.slice", "lxc 101 -", "/ns/system.slice"},
    {"/lxc.payload.web/init.scope", "lxc web -", "/init.scope"},
    {"/lxc.payload/web", "lxc web -", ""},
    {"/lxc.payload.x-pod" UID, "lxc x-pod" UID " -", ""},
    {"/x-pod2b0c4f5a-11d2-4c3e-9d7e-" A, "unknown " A " -", ""},
    {"/lxc.monitor.web", NULL, NULL},
    {"/lxc", NULL, NULL},
    {"/lxc.payload.", NULL, NULL},
    {"/system.slice/var-lib-docker-containers-" A "-mounts-shm.mount", NULL, NULL},
    {"/system.slice/docker-" A ".mount", NULL, NULL},
    {"/system.slice/ssh.service", NULL, NULL},
    {"/docker/" A "0", NULL, NULL},
    {"/docker/0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF", NULL, NULL},
    {"/docker/0123456789abcdef", NULL, NULL},
    {"/docker/g" A, NULL, NULL},
    {"/garden/guardian-" A, "unknown " A " -", ""},
    {"/..//" A, "unknown " A " -", ""},
    {"/", NULL, NULL},
    {"", NULL, NULL},
    {"/docker/" A "\n/docker/" B, "docker " A " -", ""},
};

static const char *const runtime_names[] = {
    [CONTAINER_UNKNOWN] = "unknown", [CONTAINER_CONTAINERD] = "containerd",
    [CONTAINER_CRIO] = "crio",       [CONTAINER_DOCKER] = "docker",
    [CONTAINER_LXC] = "lxc",         [CONTAINER_NSPAWN] = "nspawn",
    [CONTAINER_PODMAN] = "podman",
};

static void test_classify(void) {
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct container_path path;
        bool found = container_path_classify(cases[i].path, &path);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].expected != NULL, found, cases[i].path);
        if (!found) {
            continue;
        }
        struct buf got CLEANUP_BUF = {0};
        buf_printf(&got, "%s %.*s ", runtime_names[path.runtime], (int)path.id_len, path.id);
        buf_add(&got, path.pod_uid != NULL ? path.pod_uid : "-",
                path.pod_uid != NULL ? path.pod_uid_len : 1);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].expected, buf_str(&got), cases[i].path);
        size_t rest = strcspn(cases[i].path + path.len, "\n");
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(strlen(cases[i].inside), rest, cases[i].path);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(cases[i].inside, cases[i].path + path.len, rest),
                                      cases[i].path);
    }
}

static void test_in_unit(void) {
    static const struct {
        const char *path;
        bool in_unit;
    } rows[] = {
        {"/docker/" A, false},
        {"/system.slice/docker-" A ".scope", false},
        {"/system.slice/docker-" A ".scope/x.service/docker-" B ".scope", false},
        {"/machine.slice/libpod-" A ".scope/container", false},
        {"/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope", false},
        {"/system.slice/x.service/docker-" A ".scope", true},
        {"/system.slice/x.service/y/docker/" A, true},
        {"/../x.service/docker-" A ".scope", true},
        {"/user.slice/user-1000.slice/session-1.scope/lxc.payload.web", true},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct container_path path;
        TEST_ASSERT_TRUE_MESSAGE(container_path_classify(rows[i].path, &path), rows[i].path);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].in_unit, path.in_unit, rows[i].path);
    }
}

static void test_proc_cgroup(void) {
    static const struct {
        const char *text;
        const char *id;
    } rows[] = {
        {"0::/system.slice/docker-" A ".scope\n", A},
        {"12:pids:/user.slice\n4:memory:/docker/" A "\n0::/\n", A},
        {"3:cpu,cpuacct:/kubepods/burstable/pod" UID "/" A "\n", A},
        {"0::/../" A, A},
        {"0::/system.slice/containerd.service/kubepods-pod" UID_ ".slice:cri-containerd:" A "\n",
         A},
        {"0::/docker/" A " (deleted)\n", NULL},
        {"0::/\n", NULL},
        {"0:\n:\n\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct container_path path;
        bool found = container_id_parse(rows[i].text, &path);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].id != NULL, found, rows[i].text);
        if (found) {
            TEST_ASSERT_EQUAL_UINT64(strlen(rows[i].id), path.id_len);
            TEST_ASSERT_EQUAL_MEMORY(rows[i].id, path.id, path.id_len);
        }
    }
}
