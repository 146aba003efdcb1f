#include "collectors/container/container.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/bench/groups.h"
#include "tests/bench/stopwatch.h"

/* CPU time of the collector `container` against the bare openat, read and close of the same files:
 * for a thousand containers, of which most files cannot be kept open, and for as many as a node
 * has, of which all can. */

enum { N_TURNS = 21 };

static void name_container(int i, char path[static 128]) {
    snprintf(path, 128, "docker/%064x", i);
    if (i == 0) {
        char parent[128];
        snprintf(parent, sizeof(parent), "%s/docker", groups_root);
        mkdir(parent, 0700);
    }
}

static struct settings *make_settings(void) {
    static const struct option window = {
        .name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"};
    static const struct option *options[32] = {&window};
    size_t n = 1;
    for (const struct option *row = container_collector.options; row->name != NULL; row++) {
        options[n++] = row;
    }
    return settings_create(options, n);
}

static void *open_collector(struct settings *settings) {
    struct collector_env env = {.procfs = groups_root, /* no processes to look at */
                                .sysfs = groups_root,
                                .cgroupfs = groups_root,
                                .rootfs = groups_root,
                                .settings = settings};
    struct error err;
    void *state = NULL;
    if (container_collector.open(&env, &state, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return state;
}

struct best {
    double bare, ours;
};

static void keep_best(struct best *best, double begin, double middle, double end) {
    best->bare = middle - begin < best->bare ? middle - begin : best->bare;
    best->ours = end - middle < best->ours ? end - middle : best->ours;
}

static void show(int n, const char *what, const struct best *best) {
    printf("%d containers, %s\t%.9f\t%.9f\topenat, read, close\n", n, what, best->ours, best->bare);
}

static void measure(int n, const char *what, struct settings *settings) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct best collection = {1, 1}, sampling = {1, 1};
    groups_make(n, name_container);
    void *state = open_collector(settings);
    container_collector.collect(state, &snapshot, NULL); /* finds them, and reads their limits */
    for (int turn = 0; turn < stopwatch_count(N_TURNS); turn++) {
        double begin = stopwatch_cpu_seconds();
        groups_read_bare(CGROUP_FOR_CONTAINER, NULL);
        double middle = stopwatch_cpu_seconds();
        snapshot_reset(&snapshot);
        container_collector.collect(state, &snapshot, NULL);
        keep_best(&collection, begin, middle, stopwatch_cpu_seconds());
        begin = stopwatch_cpu_seconds();
        groups_read_bare(CGROUP_FOR_CONTAINER, "cpu.stat");
        middle = stopwatch_cpu_seconds();
        container_collector.sample(state);
        keep_best(&sampling, begin, middle, stopwatch_cpu_seconds());
    }
    show(n, what, &collection);
    show(n, "one sample of CPU time", &sampling);
    fprintf(stderr, "%zu samples\n", snapshot_n_samples(&snapshot));
    container_collector.close(state);
    groups_remove();
}

int main(void) {
    struct settings *settings CLEANUP_SETTINGS = make_settings();
    measure(1000, "one collection", settings);
    measure(20, "one collection, files kept open", settings);
    return 0;
}
