#include "exporter/http/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exporter/core/file.h"

static const struct metric_desc cpu_seconds = {
    .name = "process_cpu_seconds_total",
    .help = "Total user and system CPU time spent in seconds.",
    .type = METRIC_COUNTER,
    .unit = "seconds",
};
static const struct metric_desc max_fds = {
    .name = "process_max_fds",
    .help = "Maximum number of open file descriptors.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc open_fds = {
    .name = "process_open_fds",
    .help = "Number of open file descriptors.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc resident_memory = {
    .name = "process_resident_memory_bytes",
    .help = "Resident memory size in bytes.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};
static const struct metric_desc start_time = {
    .name = "process_start_time_seconds",
    .help = "Start time of the process since unix epoch in seconds.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
};
static const struct metric_desc threads = {
    .name = "process_threads",
    .help = "Number of OS threads in the process.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc virtual_memory = {
    .name = "process_virtual_memory_bytes",
    .help = "Virtual memory size in bytes.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};
static const struct metric_desc virtual_memory_max = {
    .name = "process_virtual_memory_max_bytes",
    .help = "Maximum amount of virtual memory available in bytes.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};

const struct metric_desc *const process_metrics_all[] = {
    &cpu_seconds, &max_fds, &open_fds,       &resident_memory,
    &start_time,  &threads, &virtual_memory, &virtual_memory_max,
    NULL,
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
    unsigned long utime, stime;
    long n_threads, rss_pages;
    unsigned long long start_ticks;
    unsigned long vsize;
    if (after_name == NULL ||
        sscanf(after_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %ld %*d %llu "
               "%lu %ld",
               &utime, &stime, &n_threads, &start_ticks, &vsize, &rss_pages) != 6) {
        return;
    }
    double ticks = (double)sysconf(_SC_CLK_TCK);
    static double boot_seconds;
    snapshot_add(out, &threads, NULL, (double)n_threads);
    snapshot_add(out, &virtual_memory, NULL, (double)vsize);
    snapshot_add(out, &resident_memory, NULL, (double)rss_pages * (double)sysconf(_SC_PAGESIZE));
    if (boot_seconds != 0 || boot_time(&boot_seconds)) {
        snapshot_add(out, &start_time, NULL, boot_seconds + (double)start_ticks / ticks);
    }
}

static void add_usage(struct snapshot *out) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        snapshot_add(out, &cpu_seconds, NULL, seconds);
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
    snapshot_add(out, &open_fds, NULL, n);
}

struct exposition_part *process_metrics_part(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    add_usage(&snapshot);
    add_stat(&snapshot);
    add_fds(&snapshot);
    add_limit(&snapshot, &max_fds, RLIMIT_NOFILE);
    add_limit(&snapshot, &virtual_memory_max, RLIMIT_AS);
    return exposition_part_create(&snapshot, NULL);
}
