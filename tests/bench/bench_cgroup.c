#include "collectors/cgroup/cgroup.h"
#include "exporter/settings/settings.h"
#include "tests/bench/groups.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one collection of a thousand cgroups, against the bare openat, read and close of the
 * same files. */

enum { N_GROUPS = 1000, N_TURNS = 7 };

static void name_group(int i, char path[static 128]) {
    snprintf(path, 128, "g%d.slice", i);
}

static void *open_collector(struct settings *settings) {
    struct collector_env env = {.procfs = "/proc",
                                .sysfs = "/sys",
                                .cgroupfs = groups_root,
                                .rootfs = "/",
                                .settings = settings};
    struct error err;
    void *state = NULL;
    if (cgroup_collector.open(&env, &state, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return state;
}

static struct settings *make_settings(void) {
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = cgroup_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    struct settings *settings = settings_create(options, n);
    const struct option *most = settings_option(settings, "collector.cgroup.max-cgroups");
    settings_set(settings, most, SETTINGS_FLAG, "2000", NULL);
    return settings;
}

int main(void) {
    struct settings *settings CLEANUP_SETTINGS = make_settings();
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    groups_make(N_GROUPS, name_group);
    void *state = open_collector(settings);
    double best_bare = 1e9;
    double best_ours = 1e9;
    for (int turn = 0; turn < stopwatch_count(N_TURNS); turn++) {
        double begin = stopwatch_cpu_seconds();
        groups_read_bare(CGROUP_FOR_CGROUP, NULL);
        double middle = stopwatch_cpu_seconds();
        snapshot_reset(&snapshot);
        cgroup_collector.collect(state, &snapshot, NULL);
        double end = stopwatch_cpu_seconds();
        best_bare = middle - begin < best_bare ? middle - begin : best_bare;
        best_ours = turn > 0 && end - middle < best_ours ? end - middle : best_ours;
    }
    printf("1000 cgroups, one collection\t%.9f\t%.9f\topenat, read, close\n", best_ours, best_bare);
    fprintf(stderr, "%zu samples\n", snapshot_n_samples(&snapshot));
    cgroup_collector.close(state);
    groups_remove();
    return 0;
}
