#include "exporter/demo/container.h"

#include <math.h>

#include "exporter/core/cleanup.h"

#define CGROUPS "sys/fs/cgroup/"
#define PODS "kubepods/burstable/pod"
#define BUNDLES "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/"

/* The containers, and their share of the board's traffic and waiting. */
static const struct identity {
    const char *name;
    const char *pod;
    const char *image;
    const char *uid; /* of the pod */
    const char *id;
    int pid;
    int n_threads;
    int quota_percent; /* of a CPU; 0: no limit */
    double memory_limit;
    double received, sent, read, written, waiting;
} identities[DEMO_N_CONTAINERS] = {
    [DEMO_DETECTOR] = {"object-detector", "object-detector-7d9c6b5f4-x8k2p",
                       "registry.example/plugins/object-detector:1.4.2",
                       "5e0c2f3a-81b4-4d6f-9a27-3c9f10d2e6b8",
                       "3f9a1c5be07d42886a9be1d5f0c7324e8b16d94fa2c05d7361ee8f90b4ac2d13", 2214, 23,
                       0, 2.0 * 1024 * 1024 * 1024, 0.93, 0.1, 0.6, 0.25, 0.7},
    [DEMO_UPLOADER] = {"uploader", "uploader-5b8f7c9d66-q4wzt",
                       "registry.example/plugins/uploader:0.9.0",
                       "b7d41e90-2c6a-4f58-8e13-07a5c4d9f2ab",
                       "c4e80d27a6b15f93e2d7480c9fb6135ae01d84f27c3b96e5d8a2071f4b6ce935", 2391, 7,
                       100, 256.0 * 1024 * 1024, 0.02, 0.75, 0.1, 0.4, 0.1},
};

/* ---- texts ---- */

/* One container at one moment. */
struct view {
    const struct identity *identity;
    const struct demo_container *container;
    const struct demo_model *model;
};

static void write_cpu_stat(const struct view *view, struct buf *out) {
    double usec = view->container->cpu_seconds * 1e6;
    buf_printf(out,
               "usage_usec %15lld\nuser_usec %15lld\nsystem_usec %15lld\nnr_periods %10lld\n"
               "nr_throttled %10d\nthrottled_usec %10d\n",
               llround(usec), llround(0.8 * usec), llround(0.2 * usec),
               llround(view->model->uptime_seconds * 10), 0, 0);
}

static void write_cpu_max(const struct view *view, struct buf *out) {
    if (view->identity->quota_percent > 0) {
        buf_printf(out, "%d 100000\n", view->identity->quota_percent * 1000);
    } else {
        buf_add_str(out, "max 100000\n");
    }
}

void demo_write_pressure(struct buf *out, const char *kind, double seconds) {
    buf_printf(out, "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%015lld\n", kind,
               llround(seconds * 1e6));
}

static void write_waiting(struct buf *out, double seconds) {
    demo_write_pressure(out, "some", seconds);
    demo_write_pressure(out, "full", 0.4 * seconds);
}

static void write_cpu_pressure(const struct view *view, struct buf *out) {
    write_waiting(out, view->identity->waiting * view->model->cpu_waiting_seconds);
}

static void write_io_pressure(const struct view *view, struct buf *out) {
    write_waiting(out, view->identity->waiting * view->model->io_waiting_seconds);
}

static void write_memory_pressure(const struct view *view, struct buf *out) {
    (void)view;
    write_waiting(out, 0);
}

static void write_io_stat(const struct view *view, struct buf *out) {
    buf_printf(out,
               "179:0 rbytes=%015lld wbytes=%015lld rios=%010lld wios=%010lld dbytes=0 dios=0\n",
               llround(view->identity->read * view->model->read.bytes),
               llround(view->identity->written * view->model->written.bytes),
               llround(view->identity->read * view->model->read.operations),
               llround(view->identity->written * view->model->written.operations));
}

static void write_number(struct buf *out, double value) {
    buf_printf(out, "%15lld\n", llround(value));
}

static void write_memory_current(const struct view *view, struct buf *out) {
    write_number(out, view->container->memory_bytes);
}

static void write_memory_peak(const struct view *view, struct buf *out) {
    write_number(out, view->container->memory_peak_bytes);
}

static void write_memory_max(const struct view *view, struct buf *out) {
    write_number(out, view->identity->memory_limit);
}

static void write_memory_events(const struct view *view, struct buf *out) {
    (void)view;
    buf_add_str(out, "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
}

static void write_memory_stat(const struct view *view, struct buf *out) {
    double bytes = view->container->memory_bytes;
    const struct {
        const char *key;
        double value;
    } rows[] = {
        {"anon", 0.8 * bytes},
        {"file", 0.16 * bytes},
        {"kernel", 0.04 * bytes},
        {"shmem", 0.01 * bytes},
        {"file_mapped", 0.05 * bytes},
        {"inactive_anon", 0.8 * bytes},
        {"active_anon", 0.01 * bytes},
        {"inactive_file", 0.06 * bytes},
        {"active_file", 0.09 * bytes},
        {"pgfault", 1900 * view->container->cpu_seconds},
        {"pgmajfault", 37},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_printf(out, "%s %15lld\n", rows[i].key, llround(rows[i].value));
    }
}

static void write_pids_current(const struct view *view, struct buf *out) {
    buf_printf(out, "%d\n", view->identity->n_threads);
}

static void write_procs(const struct view *view, struct buf *out) {
    buf_printf(out, "%d\n", view->identity->pid);
}

static void write_bundle(const struct view *view, struct buf *out) {
    buf_printf(out,
               "{\"annotations\": {\"io.kubernetes.cri.container-type\": \"container\", "
               "\"io.kubernetes.cri.container-name\": \"%s\", "
               "\"io.kubernetes.cri.image-name\": \"%s\", "
               "\"io.kubernetes.cri.sandbox-name\": \"%s\", "
               "\"io.kubernetes.cri.sandbox-namespace\": \"ses\"}}\n",
               view->identity->name, view->identity->image, view->identity->pod);
}

static void write_process_cgroup(const struct view *view, struct buf *out) {
    buf_printf(out, "0::/" PODS "%s/%s\n", view->identity->uid, view->identity->id);
}

/* Started forty seconds after the board. */
static void write_process_stat(const struct view *view, struct buf *out) {
    buf_printf(out, "%d (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %d 0 4000 0\n",
               view->identity->pid, view->identity->name, view->identity->n_threads);
}

static void write_network(const struct view *view, struct buf *out) {
    buf_add_str(out, "Inter-|   Receive  |  Transmit\n face |bytes  packets  |bytes  packets\n");
    buf_printf(out, "  eth0: %15lld %12lld 0 0 0 0 0 0 %15lld %12lld 0 0 0 0 0 0\n",
               llround(view->identity->received * view->model->received.bytes),
               llround(view->identity->received * view->model->received.operations),
               llround(view->identity->sent * view->model->sent.bytes),
               llround(view->identity->sent * view->model->sent.operations));
}

static void write_nothing(const struct view *view, struct buf *out) {
    (void)view;
    (void)out;
}

/* ---- the files ---- */

enum place { IN_CGROUP, IN_BUNDLE, IN_PROCESS };

static const struct {
    enum place place;
    const char *name;
    void (*write)(const struct view *view, struct buf *out);
} files[] = {
    {IN_CGROUP, "cgroup.procs", write_procs},
    {IN_CGROUP, "cpu.max", write_cpu_max},
    {IN_CGROUP, "cpu.pressure", write_cpu_pressure},
    {IN_CGROUP, "cpu.stat", write_cpu_stat},
    {IN_CGROUP, "io.pressure", write_io_pressure},
    {IN_CGROUP, "io.stat", write_io_stat},
    {IN_CGROUP, "memory.current", write_memory_current},
    {IN_CGROUP, "memory.events", write_memory_events},
    {IN_CGROUP, "memory.max", write_memory_max},
    {IN_CGROUP, "memory.peak", write_memory_peak},
    {IN_CGROUP, "memory.pressure", write_memory_pressure},
    {IN_CGROUP, "memory.stat", write_memory_stat},
    {IN_CGROUP, "pids.current", write_pids_current},
    {IN_BUNDLE, "config.json", write_bundle},
    {IN_PROCESS, "cgroup", write_process_cgroup},
    {IN_PROCESS, "net/dev", write_network},
    {IN_PROCESS, "ns/net", write_nothing}, /* not that of process 1 */
    {IN_PROCESS, "stat", write_process_stat},
};

size_t demo_container_n_files(void) {
    return DEMO_N_CONTAINERS * ARRAY_LEN(files);
}

void demo_container_path(size_t i, struct buf *out) {
    const struct identity *identity = &identities[i / ARRAY_LEN(files)];
    const char *name = files[i % ARRAY_LEN(files)].name;
    buf_reset(out);
    switch (files[i % ARRAY_LEN(files)].place) {
    case IN_CGROUP:
        buf_printf(out, CGROUPS PODS "%s/%s/%s", identity->uid, identity->id, name);
        break;
    case IN_BUNDLE:
        buf_printf(out, BUNDLES "%s/%s", identity->id, name);
        break;
    case IN_PROCESS:
        buf_printf(out, "proc/%d/%s", identity->pid, name);
        break;
    }
}

void demo_container_write(size_t i, const struct demo_model *model, struct buf *out) {
    size_t container = i / ARRAY_LEN(files);
    struct view view = {&identities[container], &model->containers[container], model};
    files[i % ARRAY_LEN(files)].write(&view, out);
}

const char *demo_container_name(enum demo_container_index index) {
    return identities[index].name;
}

const char *demo_container_pod(enum demo_container_index index) {
    return identities[index].pod;
}
