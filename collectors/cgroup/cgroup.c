#include "collectors/cgroup/cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/cgroup/tree.h"
#include "collectors/source/filter.h"
#include "collectors/source/io_series.h"
#include "collectors/source/rows.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

#define COUNTER(id, name, help)                                                                    \
    [CGROUP_##id] = {"cgroup_" name "_total", help, METRIC_COUNTER, NULL, "cgroup"}
#define SECONDS(id, name, help)                                                                    \
    [CGROUP_##id] = {"cgroup_" name "_seconds_total", help, METRIC_COUNTER, "seconds", "cgroup"}
#define GAUGE(id, name, help) [CGROUP_##id] = {"cgroup_" name, help, METRIC_GAUGE, NULL, "cgroup"}
#define BYTES(id, name, help)                                                                      \
    [CGROUP_##id] = {"cgroup_" name "_bytes", help, METRIC_GAUGE, "bytes", "cgroup"}
#define IO(id, name, unit, help)                                                                   \
    [CGROUP_IO_##id] = {"cgroup_io_" name "_total", help, METRIC_COUNTER, unit, "cgroup, device"}

/* The quota in µs and its period are one metric, cgroup_cpu_quota_cores. */
static const struct metric_desc descs[CGROUP_N_VALUES + 1] = {
    SECONDS(CPU_USAGE, "cpu_usage", "CPU time used."),
    SECONDS(CPU_USER, "cpu_user", "CPU time used in user mode."),
    SECONDS(CPU_SYSTEM, "cpu_system", "CPU time used in the kernel."),
    COUNTER(CPU_PERIODS, "cpu_periods", "Periods of the CPU quota that have elapsed."),
    COUNTER(CPU_THROTTLED_PERIODS, "cpu_throttled_periods",
            "Periods in which the CPU quota was exhausted."),
    SECONDS(CPU_THROTTLED, "cpu_throttled",
            "Time that the CPU quota throttled tasks, summed over CPUs."),
    COUNTER(CPU_BURSTS, "cpu_bursts", "Periods with a burst above the CPU quota."),
    SECONDS(CPU_BURST, "cpu_burst", "CPU time used above the quota in bursts."),
    GAUGE(CPU_WEIGHT, "cpu_weight", "Share of the CPU under contention, 1 to 10000 (cgroup v2)."),
    GAUGE(CPU_SHARES, "cpu_shares", "Share of the CPU under contention, 2 to 262144 (cgroup v1)."),
    BYTES(MEMORY_CURRENT, "memory_usage", "Memory usage, including page cache and kernel memory."),
    BYTES(MEMORY_PEAK, "memory_peak", "Highest memory usage so far."),
    BYTES(MEMORY_MIN, "memory_min", "Memory that is never reclaimed."),
    BYTES(MEMORY_LOW, "memory_low", "Memory that is reclaimed only if no other memory is left."),
    BYTES(MEMORY_HIGH, "memory_high",
          "Memory usage above which the cgroup is throttled; absent without limit."),
    BYTES(MEMORY_MAX, "memory_max", "Memory limit; absent if there is none."),
    BYTES(MEMORY_SOFT_LIMIT, "memory_soft_limit",
          "Memory usage above which this cgroup is reclaimed first (cgroup v1); absent without "
          "limit."),
    BYTES(MEMORY_SWAP_CURRENT, "memory_swap_usage", "Swap usage."),
    BYTES(MEMORY_SWAP_MAX, "memory_swap_max", "Swap limit; absent if there is none."),
    BYTES(MEMORY_MEMSW_MAX, "memory_and_swap_max",
          "Limit of memory and swap together (cgroup v1); absent if there is none."),
    COUNTER(MEMORY_FAILCNT, "memory_failures", "Times that the limit was hit (cgroup v1)."),
    COUNTER(MEMORY_EVENTS_LOW, "memory_events_low",
            "Times that memory below the low boundary was reclaimed."),
    COUNTER(MEMORY_EVENTS_HIGH, "memory_events_high",
            "Times that the high boundary throttled the cgroup."),
    COUNTER(MEMORY_EVENTS_MAX, "memory_events_max",
            "Times that the limit was about to be exceeded."),
    COUNTER(MEMORY_EVENTS_OOM, "memory_events_oom",
            "Times that an allocation was about to fail because of the limit."),
    COUNTER(MEMORY_EVENTS_OOM_KILL, "memory_events_oom_kill",
            "Processes killed by the OOM killer."),
    COUNTER(MEMORY_EVENTS_OOM_GROUP_KILL, "memory_events_oom_group_kill",
            "Times that the OOM killer killed the whole cgroup."),
    BYTES(MEMORY_ANON, "memory_anon", "Anonymous memory: heap, stacks, private mappings."),
    BYTES(MEMORY_FILE, "memory_file", "Page cache, including tmpfs and shared memory."),
    BYTES(MEMORY_KERNEL, "memory_kernel", "Kernel memory of this cgroup."),
    BYTES(MEMORY_KERNEL_STACK, "memory_kernel_stack", "Kernel stacks."),
    BYTES(MEMORY_PAGETABLES, "memory_pagetables", "Page tables."),
    BYTES(MEMORY_PERCPU, "memory_percpu", "The kernel's per-CPU data."),
    BYTES(MEMORY_SOCK, "memory_sock", "Network buffers."),
    BYTES(MEMORY_SHMEM, "memory_shmem", "tmpfs and shared memory."),
    BYTES(MEMORY_ZSWAP, "memory_zswap", "Memory taken by compressed swap."),
    BYTES(MEMORY_ZSWAPPED, "memory_zswapped", "Memory swapped out into compressed swap."),
    BYTES(MEMORY_FILE_MAPPED, "memory_file_mapped", "Mapped page cache."),
    BYTES(MEMORY_FILE_DIRTY, "memory_file_dirty", "Page cache that waits to be written."),
    BYTES(MEMORY_FILE_WRITEBACK, "memory_file_writeback", "Page cache that is being written."),
    BYTES(MEMORY_SWAPCACHED, "memory_swapcached", "Swapped memory that is cached in memory."),
    BYTES(MEMORY_INACTIVE_ANON, "memory_inactive_anon",
          "Anonymous memory that was not used recently."),
    BYTES(MEMORY_ACTIVE_ANON, "memory_active_anon", "Anonymous memory that was used recently."),
    BYTES(MEMORY_INACTIVE_FILE, "memory_inactive_file", "Page cache that was not used recently."),
    BYTES(MEMORY_ACTIVE_FILE, "memory_active_file", "Page cache that was used recently."),
    BYTES(MEMORY_UNEVICTABLE, "memory_unevictable", "Memory that cannot be reclaimed."),
    BYTES(MEMORY_SLAB_RECLAIMABLE, "memory_slab_reclaimable",
          "Kernel caches that can be reclaimed."),
    BYTES(MEMORY_SLAB_UNRECLAIMABLE, "memory_slab_unreclaimable",
          "Kernel caches that cannot be reclaimed."),
    COUNTER(MEMORY_REFAULT_ANON, "memory_refault_anon",
            "Refaults of anonymous pages evicted shortly before."),
    COUNTER(MEMORY_REFAULT_FILE, "memory_refault_file",
            "Refaults of file pages evicted shortly before."),
    COUNTER(MEMORY_PGSCAN, "memory_scanned_pages", "Pages scanned for reclaim."),
    COUNTER(MEMORY_PGSTEAL, "memory_reclaimed_pages", "Pages reclaimed."),
    COUNTER(MEMORY_PGFAULT, "memory_page_faults", "Page faults."),
    COUNTER(MEMORY_PGMAJFAULT, "memory_major_page_faults",
            "Major page faults: those that read from a disk."),
    GAUGE(PIDS_CURRENT, "pids", "Tasks: threads of all processes."),
    GAUGE(PIDS_PEAK, "pids_peak", "Highest number of tasks so far."),
    GAUGE(PIDS_MAX, "pids_max", "Limit of tasks; absent if there is none."),
    SECONDS(PRESSURE_CPU_WAITING, "pressure_cpu_waiting",
            "Time during which some task waited for a CPU."),
    SECONDS(PRESSURE_CPU_STALLED, "pressure_cpu_stalled",
            "Time during which every task waited for a CPU."),
    SECONDS(PRESSURE_IO_WAITING, "pressure_io_waiting",
            "Time during which some task waited for input or output."),
    SECONDS(PRESSURE_IO_STALLED, "pressure_io_stalled",
            "Time during which every task waited for input or output."),
    SECONDS(PRESSURE_MEMORY_WAITING, "pressure_memory_waiting",
            "Time during which some task waited for memory."),
    SECONDS(PRESSURE_MEMORY_STALLED, "pressure_memory_stalled",
            "Time during which every task waited for memory."),
    GAUGE(DESCENDANTS, "descendants", "Cgroups below this one."),
    GAUGE(DYING_DESCENDANTS, "dying_descendants",
          "Removed cgroups below this one that still hold memory."),
};

static const struct metric_desc io_metrics[CGROUP_IO_N_VALUES + 1] = {
    IO(READ_BYTES, "read_bytes", "bytes", "Bytes read from the disk."),
    IO(WRITTEN_BYTES, "written_bytes", "bytes", "Bytes written to the disk."),
    IO(READS, "reads", NULL, "Read requests."),
    IO(WRITES, "writes", NULL, "Write requests."),
    IO(DISCARDED_BYTES, "discarded_bytes", "bytes", "Bytes discarded."),
    IO(DISCARDS, "discards", NULL, "Discard requests."),
};

static const struct metric_desc quota = {"cgroup_cpu_quota_cores",
                                         "CPUs that may be used on average; absent without limit.",
                                         METRIC_GAUGE, "cores", "cgroup"};
static const struct metric_desc working_set = {
    "cgroup_memory_working_set_bytes",
    "Memory usage without inactive page cache: what cannot be reclaimed soon.", METRIC_GAUGE,
    "bytes", "cgroup"};
static const struct metric_desc mode_metric = {"waap_cgroup_mode",
                                               "How control groups are mounted: v1, v2 or hybrid.",
                                               METRIC_GAUGE, NULL, "mode"};

static const struct metric_desc *const metrics[] = {&mode_metric, &quota, &working_set, NULL};
/* All but the quota and its period, which come first. */
static const struct metric_desc *const tables[] = {&descs[2], io_metrics, NULL};

static void add(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                double value) {
    if (isfinite(value)) {
        snapshot_add(out, desc, labels, value);
    }
}

/* Adds the statistics but for the disks. */
static void add_values(const struct cgroup_stats *stats, const struct labels *labels,
                       struct snapshot *out) {
    for (size_t i = 0; i < ARRAY_LEN(descs); i++) {
        if (descs[i].name != NULL) {
            add(out, &descs[i], labels, stats->values[i]);
        }
    }
    add(out, &quota, labels,
        stats->values[CGROUP_CPU_QUOTA_USEC] / stats->values[CGROUP_CPU_PERIOD_USEC]);
    add(out, &working_set, labels, cgroup_stats_working_set(stats));
}

static const struct option options[] = {
    {
        .name = "collector.cgroup.depth",
        .type = OPTION_INT,
        .default_text = "1",
        .max = 32,
        .help = "Depth below the root to which cgroups are shown; 0: the root only",
    },
    {
        .name = "collector.cgroup.exclude",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Exclude cgroups whose path matches",
    },
    {
        .name = "collector.cgroup.include",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Show only cgroups whose path matches",
    },
    {
        .name = "collector.cgroup.max-cgroups",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 100000,
        .help = "Largest number of cgroups shown",
    },
    {0},
};

struct group {
    struct row row; /* its path */
    struct labels *labels;
    struct cgroup_place place;
    struct io_series io;
    unsigned seen; /* in this round: a bit per hierarchy */
};

struct cgroup {
    struct cgroup_tree tree;
    struct labels *mode;
    struct filter include, exclude;
    size_t max_depth;
    struct rows groups;
    struct block_devices devices;
    struct buf path, scratch;
    struct cgroup_stats stats;

    /* Of the current round: */
    size_t row; /* of the tree being walked */
    size_t n_left_out;
    int failure;
};

static void finish_group(void *row) {
    struct group *group = row;
    cgroup_place_finish(&group->place);
    io_series_finish(&group->io);
    labels_destroy(group->labels);
}

static struct group *group_at(const struct cgroup *cgroup, size_t i) {
    return (struct group *)cgroup->groups.all[i];
}

static bool chosen(const struct cgroup *cgroup, const char *path) {
    return filter_includes(&cgroup->include, path) && !filter_excludes(&cgroup->exclude, path);
}

/* The group of that path, which is added if it is chosen; else NULL. */
static struct group *find_group(struct cgroup *cgroup, const char *path) {
    const struct scan_word key = {path, strlen(path)};
    struct group *group = rows_find(&cgroup->groups, key);
    if (group != NULL || !chosen(cgroup, path)) {
        return group;
    }
    group = rows_see(&cgroup->groups, key);
    if (group == NULL) {
        cgroup->n_left_out++;
        return NULL;
    }
    cgroup_place_init(&group->place);
    group->labels = labels_render("cgroup", path);
    return group;
}

static void see_group(struct cgroup *cgroup, const char *path, uint64_t inode) {
    struct group *group = find_group(cgroup, path);
    if (group == NULL) {
        return;
    }
    int r = cgroup_place_enter(&group->place, &cgroup->tree, cgroup->row, path, inode);
    if (r == 0) {
        group->seen |= 1U << cgroup->row;
    } else if (!cgroup_place_absent(r) && cgroup->failure == 0) {
        cgroup->failure = r;
    }
}

/* Containers belong to the collector `container`. */
static bool visit(void *context, const char *path, uint64_t inode, size_t depth) {
    struct cgroup *cgroup = context;
    struct container_path container;
    if (depth > cgroup->max_depth || container_path_classify(path, &container)) {
        return false;
    }
    see_group(cgroup, path, inode);
    return depth < cgroup->max_depth;
}

static void drop_unseen(struct cgroup *cgroup) {
    rows_sweep(&cgroup->groups);
    for (size_t i = 0; i < cgroup->groups.n; i++) {
        struct group *group = group_at(cgroup, i);
        for (size_t row = 0; row < cgroup->tree.n_rows; row++) {
            if ((group->seen & 1U << row) == 0) {
                cgroup_place_leave(&group->place, row);
            }
        }
        group->seen = 0;
    }
}

static int find_groups(struct cgroup *cgroup, struct error *err) {
    cgroup->n_left_out = 0;
    cgroup->failure = 0;
    int result = 0;
    for (cgroup->row = 0; cgroup->row < cgroup->tree.n_rows; cgroup->row++) {
        see_group(cgroup, "/", 0);
        if (cgroup->max_depth > 0) {
            int r = cgroup_tree_walk(&cgroup->tree.rows[cgroup->row], "", &cgroup->path, visit,
                                     cgroup, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    drop_unseen(cgroup);
    if (result == 0 && cgroup->failure < 0) {
        return error_set(err, cgroup->failure, "open a cgroup: %s", strerror(-cgroup->failure));
    }
    if (result == 0 && cgroup->n_left_out > 0) {
        return error_set(err, -E2BIG, "more than %zu cgroups (collector.cgroup.max-cgroups)",
                         cgroup->groups.max);
    }
    return result;
}

static void add_devices(struct cgroup *cgroup, struct group *group, struct snapshot *out) {
    for (size_t i = 0; i < cgroup->stats.n_devices; i++) {
        const struct cgroup_io *device = &cgroup->stats.devices[i];
        const struct labels *labels = io_series_labels(
            &group->io, group->labels, "", &cgroup->devices, device->major, device->minor);
        for (size_t value = 0; value < CGROUP_IO_N_VALUES; value++) {
            if (!isnan(device->values[value])) {
                snapshot_add(out, &io_metrics[value], labels, device->values[value]);
            }
        }
    }
}

static int cgroup_collect(void *state, struct snapshot *out, struct error *err) {
    struct cgroup *cgroup = state;
    int64_t now_ns = clock_monotonic_ns();
    block_devices_refresh(&cgroup->devices, now_ns);
    int result = find_groups(cgroup, err);
    struct cgroup_reading reading = {&cgroup->tree, CGROUP_FOR_CGROUP, NULL, &cgroup->scratch};
    snapshot_add(out, &mode_metric, cgroup->mode, 1);
    for (size_t i = 0; i < cgroup->groups.n; i++) {
        struct group *group = group_at(cgroup, i);
        int r = cgroup_place_read(&group->place, &reading, now_ns, &cgroup->stats,
                                  result == 0 ? err : NULL);
        result = result == 0 ? r : result;
        add_values(&cgroup->stats, group->labels, out);
        add_devices(cgroup, group, out);
    }
    return result;
}

static void cgroup_close(void *state) {
    struct cgroup *cgroup = state;
    rows_finish(&cgroup->groups);
    cgroup_tree_close(&cgroup->tree);
    filter_finish(&cgroup->include);
    filter_finish(&cgroup->exclude);
    block_devices_finish(&cgroup->devices);
    cgroup_stats_finish(&cgroup->stats);
    labels_destroy(cgroup->mode);
    buf_finish(&cgroup->path);
    buf_finish(&cgroup->scratch);
    free(cgroup);
}

static int cgroup_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct cgroup *cgroup = mem_zalloc(1, sizeof(*cgroup));
    cgroup->groups = (struct rows){sizeof(struct group), finish_group};
    int r = cgroup_tree_open(&cgroup->tree, env->cgroupfs, err);
    if (r < 0) {
        cgroup_close(cgroup);
        return r;
    }
    filter_init(&cgroup->include, env->settings, "collector.cgroup.include");
    filter_init(&cgroup->exclude, env->settings, "collector.cgroup.exclude");
    cgroup->devices.sysfs = env->sysfs;
    cgroup->max_depth = (size_t)settings_int(env->settings, "collector.cgroup.depth");
    cgroup->groups.max = (size_t)settings_int(env->settings, "collector.cgroup.max-cgroups");
    cgroup->mode = labels_render("mode", cgroup_mode_name(cgroup->tree.mode));
    *ret_state = cgroup;
    return 0;
}

const struct collector cgroup_collector = {
    .name = "cgroup",
    .help = "CPU, memory, disks, tasks and pressure of control groups, v1 and v2",
    .metrics = metrics,
    .tables = tables,
    .options = options,
    .on_by_default = true,
    .open = cgroup_open,
    .collect = cgroup_collect,
    .close = cgroup_close,
};
