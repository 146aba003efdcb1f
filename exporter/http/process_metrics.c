#include "exporter/http/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/file.h"

enum {
    CPU_SECONDS,
    MAX_FDS,
    OPEN_FDS,
    RESIDENT_MEMORY,
    START_TIME,
    THREADS,
    VIRTUAL_MEMORY,
    VIRTUAL_MEMORY_MAX,
    N_METRICS
};

const struct metric_desc process_metrics[] = {
    [CPU_SECONDS] = {"process_cpu_seconds_total",
                     "Total user and system CPU time spent in seconds.", METRIC_COUNTER, "seconds"},
    [MAX_FDS] = {"process_max_fds", "Maximum number of open file descriptors.", METRIC_GAUGE},
    [OPEN_FDS] = {"process_open_fds", "Number of open file descriptors.", METRIC_GAUGE},
    [RESIDENT_MEMORY] = {"process_resident_memory_bytes", "Resident memory size in bytes.",
                         METRIC_GAUGE, "bytes"},
    [START_TIME] = {"process_start_time_seconds",
                    "Start time of the process since unix epoch in seconds.", METRIC_GAUGE,
                    "seconds"},
    [THREADS] = {"process_threads", "Number of OS threads in the process.", METRIC_GAUGE},
    [VIRTUAL_MEMORY] = {"process_virtual_memory_bytes", "Virtual memory size in bytes.",
                        METRIC_GAUGE, "bytes"},
    [VIRTUAL_MEMORY_MAX] = {"process_virtual_memory_max_bytes",
                            "Maximum amount of virtual memory available in bytes.", METRIC_GAUGE,
                            "bytes"},
    [N_METRICS] = {0},
};

/* "btime 1763278612" in /proc/stat. */
static bool boot_time(double *ret_seconds) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/proc/stat", &text, NULL) < 0) {
        return false;
    }
    const char *line = strstr(buf_str(&text), "\nbtime ");
    return line != NULL && sscanf(line, "\nbtime %lf", ret_seconds) == 1;
}

/* /proc/self/stat: the second field, the name, may contain anything and ends at the last
 * parenthesis. */
static void add_stat(struct snapshot *out) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/proc/self/stat", &text, NULL) < 0) {
        return;
    }
    const char *after_name = strrchr(buf_str(&text), ')');
    long n_threads, rss_pages;
    unsigned long long start_ticks;
    unsigned long vsize;
    if (after_name == NULL ||
        sscanf(after_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu "
               "%lu %ld",
               &n_threads, &start_ticks, &vsize, &rss_pages) != 4) {
        return;
    }
    double ticks = (double)sysconf(_SC_CLK_TCK);
    static double boot_seconds;
    snapshot_add(out, &process_metrics[THREADS], NULL, (double)n_threads);
    snapshot_add(out, &process_metrics[VIRTUAL_MEMORY], NULL, (double)vsize);
    snapshot_add(out, &process_metrics[RESIDENT_MEMORY], NULL,
                 (double)rss_pages * (double)sysconf(_SC_PAGESIZE));
    if (boot_seconds != 0 || boot_time(&boot_seconds)) {
        snapshot_add(out, &process_metrics[START_TIME], NULL,
                     boot_seconds + (double)start_ticks / ticks);
    }
}

static void add_usage(struct snapshot *out) {
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        snapshot_add(out, &process_metrics[CPU_SECONDS], NULL,
                     (double)used.tv_sec + (double)used.tv_nsec / 1e9);
    }
}

static void add_limit(struct snapshot *out, const struct metric_desc *desc, int resource) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        snapshot_add(out, desc, NULL, (double)limit.rlim_cur);
    }
}

static void add_fds(struct snapshot *out) {
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return;
    }
    int n = -1; /* the directory's own descriptor */
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    snapshot_add(out, &process_metrics[OPEN_FDS], NULL, n);
}

struct exposition_part *process_metrics_part(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    add_usage(&snapshot);
    add_stat(&snapshot);
    add_fds(&snapshot);
    add_limit(&snapshot, &process_metrics[MAX_FDS], RLIMIT_NOFILE);
    add_limit(&snapshot, &process_metrics[VIRTUAL_MEMORY_MAX], RLIMIT_AS);
    return exposition_part_create(&snapshot, NULL);
}
