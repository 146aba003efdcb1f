#pragma once

#include "collectors/container/container.h"
#include "tests/unit/collector_tree.h"

/* The collector of containers on recorded cgroups, to which a test adds containers. */

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define P "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define POD "/kubepods/burstable/pod2b0c4f5a-11d2-4c3e-9d7e-aa00bb11cc22"
#define BUNDLES "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io"

static inline void container_begin(void) {
    tree_begin(&container_collector, "cgroup");
    run("mkdir -p root proc/1/net && touch proc/1/net/dev");
    run("printf 'cpu 1\\nbtime 1000\\n' > proc/stat");
}

/* A container's cgroup with the recorded files of system.slice. */
static inline void make_v2(const char *path) {
    run("mkdir -p v2%s && cp v2/user.slice/[cmip]* v2%s/ && cp v2/system.slice/io.stat "
        "v2/system.slice/cpu.max v2%s/",
        path, path, path);
}

static inline void make_process(int pid, const char *cgroup, const char *namespace_of) {
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

static inline void write_bundle(const char *id, const char *annotations) {
    run("mkdir -p root/" BUNDLES "/%s && echo '{\"annotations\":{%s}}' > root/" BUNDLES
        "/%s/config.json",
        id, annotations, id);
}

static inline void make_pod(void) {
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
