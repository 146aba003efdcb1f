#include "collectors/container/container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cgroup/parse.h"
#include "collectors/container/energy.h"
#include "collectors/container/names.h"
#include "collectors/container/set.h"
#include "collectors/source/filter.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"
#include "exporter/metrics/metric.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

/* The processes of a cgroup and of those below it. */
struct procs {
    size_t n;
    pid_t first; /* one of them; 0: none is visible */
};

static int check_prefix(const char *text, struct error *err) {
    if (!metric_name_valid(text, strlen(text))) {
        return error_set(err, -EINVAL, "expected the prefix of a metric name, got \"%s\"", text);
    }
    return 0;
}

static const struct option options[] = {
    {
        .name = "collector.container.cri-socket",
        .type = OPTION_STRING,
        .default_text = "auto",
        .help = "CRI socket for names and labels of pods, below path.rootfs; auto: that of k3s, "
                "containerd or CRI-O; off: none",
    },
    {
        .name = "collector.container.docker-socket",
        .type = OPTION_STRING,
        .default_text = "/run/docker.sock",
        .help = "Docker's socket, for names, below path.rootfs; empty: none",
    },
    {
        .name = "collector.container.exclude",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Exclude containers whose name or image matches",
    },
    {
        .name = "collector.container.include",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Show only containers whose name or image matches",
    },
    {
        .name = "collector.container.label-include",
        .type = OPTION_STRING,
        .repeatable = true,
        .default_text = "com.docker.compose.*",
        .help = "Label of containers to show, as container_label_...; may contain * and ?",
    },
    {
        .name = "collector.container.max-containers",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 100000,
        .help = "Largest number of containers shown",
    },
    {
        .name = "collector.container.podman-socket",
        .type = OPTION_STRING,
        .default_text = "/run/podman/podman.sock",
        .help = "Podman's socket, for names, below path.rootfs; empty: none",
    },
    {
        .name = "collector.container.prefix",
        .type = OPTION_STRING,
        .default_text = "container",
        .help = "Prefix of the metric names, for hosts where cAdvisor is scraped too",
        .check = check_prefix,
    },
    {0},
};

enum { MAX_PROCS_BYTES = 1 << 20, MAX_DEPTH = 4, START_FIELD = 22, FIRST_FIELD_BEHIND_NAME = 3 };

/* One number per line; a process in another pid namespace is a 0. */
static void count_pids(const char *text, struct procs *procs) {
    for (; *text != '\0'; text = scan_next_line(text)) {
        const char *cursor = text;
        uint64_t pid = 0;
        if (scan_u64(&cursor, &pid)) {
            procs->n++;
            procs->first = procs->first == 0 ? (pid_t)pid : procs->first;
        }
    }
}

/* Adds those in cgroup.procs of the directory and of its children. 0 or a negative errno. */
static int read_procs(int dirfd, size_t depth, struct buf *scratch, struct procs *procs) {
    struct stat stat;
    int r = file_read_at(dirfd, "cgroup.procs", MAX_PROCS_BYTES, scratch, NULL);
    if (r == 0) {
        count_pids(buf_str(scratch), procs);
    }
    if (depth == MAX_DEPTH || fstat(dirfd, &stat) < 0 || stat.st_nlink == 2) {
        return r;
    }
    DIR *directory = cgroup_open_directory(dirfd, ".");
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            int child CLEANUP_CLOSE =
                openat(dirfd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (child >= 0) {
                read_procs(child, depth + 1, scratch, procs);
            }
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return r;
}

/* The start time of a process, in seconds since boot, from /proc/<pid>/stat; negative if it is
 * malformed. */
static double parse_start(const char *text) {
    const char *cursor = strrchr(text, ')'); /* the name before it may contain anything */
    if (cursor == NULL) {
        return -1;
    }
    cursor++;
    struct scan_word word;
    uint64_t ticks;
    for (int field = FIRST_FIELD_BEHIND_NAME; field < START_FIELD; field++) {
        if (!scan_word(&cursor, &word)) {
            return -1;
        }
    }
    return scan_u64(&cursor, &ticks) ? (double)ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

/* When the machine booted, in seconds since 1970, from "btime 1763280000" of /proc/stat; 0 if it is
 * not known. */
static double boot_time(const char *procfs) {
    struct buf text CLEANUP_BUF = {0};
    char *path CLEANUP_FREE = file_path_join(procfs, "stat");
    uint64_t seconds = 0;
    if (file_read(path, &text, NULL) == 0) {
        const char *line = strstr(buf_str(&text), "\nbtime ");
        const char *cursor = line != NULL ? line + strlen("\nbtime ") : "";
        seconds = scan_u64(&cursor, &seconds) ? seconds : 0;
    }
    return (double)seconds;
}

/* Shorter intervals show the granularity of the kernel's counters. */
#define MIN_INTERVAL_NS (20 * CLOCK_NS_PER_MS)

static size_t cpu_row(const struct cgroup_tree *tree) {
    for (size_t i = 0; i < tree->n_rows; i++) {
        if ((tree->rows[i].controllers & CGROUP_CPUACCT) != 0) {
            return i;
        }
    }
    return tree->primary;
}

/* In seconds, from "21170124123" ns (v1) or "usage_usec 1234" (v2); NaN if it cannot be read. */
static double read_cpu(int fd, bool unified) {
    static const char key[] = "usage_usec ";
    char text[512];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *number = text;
    uint64_t value;
    if (unified) {
        const char *line = strstr(text, key);
        number = line != NULL ? line + strlen(key) : "";
    }
    return scan_u64(&number, &value) ? (double)value / (unified ? 1e6 : 1e9) : NAN;
}

static void take_cpu(struct container *container, double seconds, int64_t now_ns) {
    container->used_seconds = seconds;
    int64_t interval_ns = now_ns - container->cpu_ns;
    if (container->cpu_ns != 0 && interval_ns < MIN_INTERVAL_NS) {
        return;
    }
    if (container->cpu_ns != 0 && seconds >= container->cpu_seconds) {
        double cores = (seconds - container->cpu_seconds) * 1e9 / (double)interval_ns;
        peak_add(&container->peak, now_ns, cores);
    }
    container->cpu_seconds = seconds;
    container->cpu_ns = now_ns;
}

/* Reads the container's CPU time and updates its peak. `keep_open`: keep the file for the next
 * time. */
static void sample_cpu(struct container *container, const struct cgroup_tree *tree, bool keep_open,
                       int64_t now_ns) {
    size_t row = cpu_row(tree);
    bool unified = tree->rows[row].unified;
    if (container->cpu_fd < 0) {
        container->cpu_fd = openat(container->place.fds[row],
                                   unified ? "cpu.stat" : "cpuacct.usage", O_RDONLY | O_CLOEXEC);
    }
    if (container->cpu_fd < 0) {
        return;
    }
    double seconds = read_cpu(container->cpu_fd, unified);
    if (isfinite(seconds)) {
        take_cpu(container, seconds, now_ns);
    }
    if (!isfinite(seconds) || !keep_open) {
        close(TAKE_FD(container->cpu_fd));
    }
}

enum { MAX_HOT_FILES = 256, MAX_KEPT_OPEN = 256, MAX_STAT_BYTES = 4096 };

struct containers {
    const char *procfs;
    struct cgroup_tree tree;
    struct container_set set;
    struct container_names *names;
    struct filter include, exclude;
    struct metric_desc *descs;
    struct cgroup_hot hot;
    struct container_energy *energy;
    struct block_devices devices;
    uint64_t host_namespace;
    double boot_seconds; /* since 1970; 0: not known */
    struct buf scratch;
    struct cgroup_stats stats;
};

/* The first process started or the last one ended: its total usage can still be read now. */
static void changed(void *context, struct container *container) {
    struct containers *containers = context;
    sample_cpu(container, &containers->tree, container->cpu_fd >= 0, clock_monotonic_ns());
}

/* A container is shown if its name or image is included and neither is excluded. */
static bool shown(void *context, const char *name, const char *image) {
    const struct containers *containers = context;
    const struct filter *include = &containers->include;
    const struct filter *exclude = &containers->exclude;
    bool included = filter_includes(include, name) || filter_includes(include, image);
    return included && !filter_excludes(exclude, name) && !filter_excludes(exclude, image);
}

static void name_one(struct containers *containers, struct container *container, int64_t now_ns) {
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    container_names_look_up(containers->names, container, now_ns, &info);
    container_describe(container, &info, shown, containers);
}

static void name_all(struct containers *containers, int64_t now_ns) {
    container_names_step(containers->names, now_ns);
    for (size_t i = 0; i < containers->set.n_rows; i++) {
        struct container *container = containers->set.rows[i];
        if (container_names_due(containers->names, container, now_ns)) {
            name_one(containers, container, now_ns);
        }
    }
}

static void gone(void *context, struct container *container) {
    struct containers *containers = context;
    if (container->info.image == NULL) { /* the runtime may know it by now */
        name_one(containers, container, clock_monotonic_ns());
    }
    container_energy_count_ended(containers->energy, container);
    container_names_forget(containers->names, container);
}

static int update(struct containers *containers, bool all, int64_t now_ns, struct error *err) {
    int r = container_set_update(&containers->set, all, now_ns, err);
    name_all(containers, now_ns);
    return r;
}

int container_sample_at(void *state, int64_t now_ns) {
    struct containers *containers = state;
    int r = update(containers, false, now_ns, NULL);
    for (size_t i = 0; i < containers->set.n_rows; i++) {
        struct container *container = containers->set.rows[i];
        sample_cpu(container, &containers->tree, i < MAX_KEPT_OPEN, now_ns);
    }
    container_energy_step(containers->energy, false, now_ns);
    return r;
}

static void add_devices(struct containers *containers, struct container *container,
                        struct snapshot *out) {
    for (size_t i = 0; i < containers->stats.n_devices; i++) {
        const struct cgroup_io *device = &containers->stats.devices[i];
        const struct labels *labels =
            io_series_labels(&container->io, container->labels, "/dev/", &containers->devices,
                             device->major, device->minor);
        for (size_t value = CGROUP_IO_READ_BYTES; value <= CGROUP_IO_WRITES; value++) {
            if (!isnan(device->values[value])) {
                snapshot_add(out, &containers->descs[CONTAINER_FS_READS_BYTES + value], labels,
                             device->values[value]);
            }
        }
    }
}

/* A cgroup's time stamp may be younger than the container; its oldest process never is. */
static void correct_start(struct containers *containers, struct container *container) {
    int fd = container->network.proc_fd;
    if (fd < 0 || containers->boot_seconds <= 0 ||
        file_read_at(fd, "stat", MAX_STAT_BYTES, &containers->scratch, NULL) < 0) {
        return;
    }
    double start = parse_start(buf_str(&containers->scratch));
    if (start >= 0 && containers->boot_seconds + start < container->start_seconds) {
        container->start_seconds = containers->boot_seconds + start;
    }
}

static int read_processes(struct containers *containers, struct container *container,
                          struct procs *ret_procs) {
    int dirfd = container->place.fds[containers->tree.primary];
    *ret_procs = (struct procs){0};
    int r = read_procs(dirfd, 0, &containers->scratch, ret_procs);
    if (r == 0 && ret_procs->first > 0 && !container_network_alive(&container->network)) {
        container_network_enter(&container->network, containers->procfs, ret_procs->first);
        correct_start(containers, container);
    }
    return r;
}

static void add_values(struct containers *containers, struct container *container, int64_t now_ns,
                       double now_seconds, struct snapshot *out) {
    const struct metric_desc *descs = containers->descs;
    struct cgroup_stats *stats = &containers->stats;
    double usage = stats->values[CGROUP_CPU_USAGE];
    if (isfinite(usage)) {
        container->used_seconds = usage;
        snapshot_add(out, &descs[CONTAINER_CPU_USAGE], container->cpu_labels, usage);
    }
    double peak;
    if (peak_get(&container->peak, now_ns, &peak)) {
        snapshot_add(out, &descs[CONTAINER_CPU_PEAK], container->labels, peak);
    }
    container_metrics_add(descs, stats, container->labels, out);
    for (size_t i = 0; i < CONTAINER_N_FAILURES; i++) {
        double value = stats->values[container_failures[i].value];
        if (isfinite(value)) {
            snapshot_add(out, &descs[CONTAINER_MEMORY_FAILURES], container->failure_labels[i],
                         value);
        }
    }
    add_devices(containers, container, out);
    snapshot_add(out, &descs[CONTAINER_START_TIME], container->labels, container->start_seconds);
    snapshot_add(out, &descs[CONTAINER_LAST_SEEN], container->labels, floor(now_seconds));
}

/* Whether the cgroup was removed: then its files cannot be opened. */
static bool is_gone(const struct containers *containers, const struct container *container) {
    return faccessat(container->place.fds[containers->tree.primary], "cgroup.procs", F_OK, 0) < 0;
}

/* The containers of a pod share a network namespace: its metrics go to the sandbox, else to the
 * oldest container. The host's namespace belongs to the collector `host`. */
static bool owns_network(const struct containers *containers, const struct container *container) {
    uint64_t namespace = container->network.namespace;
    if (namespace == 0 || containers->host_namespace == 0 ||
        namespace == containers->host_namespace) {
        return false;
    }
    for (size_t i = 0; i < containers->set.n_rows; i++) {
        const struct container *other = containers->set.rows[i];
        if (other == container || other->labels == NULL || other->gone ||
            other->network.namespace != namespace) {
            continue;
        }
        if (other->info.sandbox != container->info.sandbox
                ? other->info.sandbox
                : other->start_seconds < container->start_seconds ||
                      (other->start_seconds <= container->start_seconds &&
                       strcmp(other->path, container->path) < 0)) {
            return false;
        }
    }
    return true;
}

static void add_networks(struct containers *containers, struct snapshot *out) {
    for (size_t i = 0; i < containers->set.n_rows; i++) {
        struct container *container = containers->set.rows[i];
        if (container->labels != NULL && !container->gone && owns_network(containers, container)) {
            container_network_add(&container->network, containers->descs, container->labels,
                                  &containers->scratch, out);
        }
    }
}

/* v1 does not list processes outside of our pid namespace: if none is listed but there are tasks,
 * the number is unknown. (v2 lists each of them as 0.) */
static bool hides_processes(const struct containers *containers, const struct procs *procs) {
    return procs->n == 0 && !containers->tree.rows[containers->tree.primary].unified &&
           containers->stats.values[CGROUP_PIDS_CURRENT] > 0;
}

/* Checks that the cgroup still exists after all was read: a container has all its series or none.
 */
static int collect_one(struct containers *containers, struct container *container, int64_t now_ns,
                       double now_seconds, struct snapshot *out, struct error *err) {
    struct procs procs;
    struct cgroup_reading reading = {&containers->tree, CGROUP_FOR_CONTAINER, &containers->hot,
                                     &containers->scratch};
    int r = cgroup_place_read(&container->place, &reading, now_ns, &containers->stats, err);
    bool counted = read_processes(containers, container, &procs) == 0;
    container->gone = is_gone(containers, container);
    if (container->gone) {
        return r;
    }
    add_values(containers, container, now_ns, now_seconds, out);
    if (counted && !hides_processes(containers, &procs)) {
        snapshot_add(out, &containers->descs[CONTAINER_PROCESSES], container->labels,
                     (double)procs.n);
    }
    return r;
}

int container_collect_at(void *state, int64_t now_ns, struct snapshot *out, struct error *err) {
    struct containers *containers = state;
    double now_seconds = clock_wall_seconds();
    block_devices_refresh(&containers->devices, now_ns);
    int result = update(containers, true, now_ns, err);
    for (size_t i = 0; i < containers->set.n_rows; i++) {
        struct container *container = containers->set.rows[i];
        if (container->labels != NULL) {
            int r = collect_one(containers, container, now_ns, now_seconds, out,
                                result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    container_set_drop_gone(&containers->set);
    add_networks(containers, out);
    container_energy_step(containers->energy, true, now_ns);
    container_energy_add(containers->energy, containers->descs, out);
    return result;
}

static int containers_sample(void *state) {
    return container_sample_at(state, clock_monotonic_ns());
}

static int containers_collect(void *state, struct snapshot *out, struct error *err) {
    return container_collect_at(state, clock_monotonic_ns(), out, err);
}

static int containers_wake_fd(void *state) {
    const struct containers *containers = state;
    return containers->set.inotify_fd;
}

static void containers_wake(void *state) {
    struct containers *containers = state;
    container_set_wake(&containers->set);
    name_all(containers, clock_monotonic_ns()); /* while they exist */
}

static void containers_close(void *state) {
    struct containers *containers = state;
    container_set_close(&containers->set);
    container_names_destroy(containers->names);
    container_energy_destroy(containers->energy);
    cgroup_tree_close(&containers->tree);
    filter_finish(&containers->include);
    filter_finish(&containers->exclude);
    container_metrics_destroy(containers->descs);
    block_devices_finish(&containers->devices);
    cgroup_stats_finish(&containers->stats);
    buf_finish(&containers->scratch);
    free(containers);
}

static void prepare(struct containers *containers, const struct collector_env *env) {
    const struct settings *settings = env->settings;
    containers->procfs = env->procfs;
    containers->devices.sysfs = env->sysfs;
    containers->descs =
        container_metrics_create(settings_string(settings, "collector.container.prefix"));
    containers->hot.max_kept = MAX_HOT_FILES;
    containers->names = container_names_create(env->rootfs, settings);
    containers->host_namespace = container_network_host(env->procfs);
    containers->boot_seconds = boot_time(env->procfs);
    filter_init(&containers->include, settings, "collector.container.include");
    filter_init(&containers->exclude, settings, "collector.container.exclude");
    containers->set = (struct container_set){
        .tree = &containers->tree,
        .max_containers = (size_t)settings_int(settings, "collector.container.max-containers"),
        .peak_window_ns = settings_duration_ms(settings, "sample.peak-window") * CLOCK_NS_PER_MS,
        .changed = changed,
        .gone = gone,
        .context = containers,
    };
    container_set_open(&containers->set);
    containers->energy = container_energy_create(env, &containers->set);
}

static int containers_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct containers *containers = mem_zalloc(1, sizeof(*containers));
    int r = cgroup_tree_open(&containers->tree, env->cgroupfs, err);
    if (r < 0) {
        containers_close(containers);
        return r;
    }
    prepare(containers, env);
    *ret_state = containers;
    return 0;
}

const struct collector container_collector = {
    .name = "container",
    .help = "CPU, memory, disks, network and pressure of containers, under cAdvisor's names",
    .tables = (const struct metric_desc *const[]){container_descs, NULL},
    .options = options,
    .on_by_default = true,
    .open = containers_open,
    .sample = containers_sample,
    .wake_fd = containers_wake_fd,
    .wake = containers_wake,
    .collect = containers_collect,
    .close = containers_close,
};
