#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "collectors/host.h"
#include "exporter/core/cleanup.h"

/* CPU time of one collection of `host` on this machine, against the bare system calls on the same
 * files: open, read to the end, close, and statfs of the root. */

enum { N_ROUNDS = 2000 };

static const char *const files[] = {
    "/proc/stat",         "/proc/diskstats",       "/proc/1/mounts",     "/proc/loadavg",
    "/proc/meminfo",      "/proc/1/net/dev",       "/proc/pressure/cpu", "/proc/pressure/io",
    "/proc/pressure/irq", "/proc/pressure/memory",
};

static double cpu_usec(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void read_bare(void) {
    static char text[1 << 16];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int fd CLEANUP_CLOSE = open(files[i], O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && read(fd, text, sizeof(text)) > 0) {
        }
    }
    struct statfs stat;
    statfs("/", &stat);
}

static void *open_host(struct settings **ret_settings) {
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = host_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    *ret_settings = settings_create(options, n);
    struct collector_env env = {
        .procfs = "/proc",
        .sysfs = "/sys",
        .cgroupfs = "/sys/fs/cgroup",
        .rootfs = "/",
        .settings = *ret_settings,
    };
    struct error err;
    void *state = NULL;
    if (host_collector.open(&env, &state, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return state;
}

int main(void) {
    struct settings *settings CLEANUP_SETTINGS = NULL;
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    void *host = open_host(&settings);
    double best_bare = 1e18;
    double best_host = 1e18;
    for (int turn = 0; turn < 5; turn++) {
        double begin = cpu_usec();
        for (int i = 0; i < N_ROUNDS; i++) {
            read_bare();
        }
        double middle = cpu_usec();
        for (int i = 0; i < N_ROUNDS; i++) {
            snapshot_reset(&snapshot);
            host_collector.collect(host, &snapshot, NULL);
        }
        double end = cpu_usec();
        best_bare = middle - begin < best_bare ? middle - begin : best_bare;
        best_host = end - middle < best_host ? end - middle : best_host;
    }
    printf("%-32s %10.1f us\n", "bare open, read, close, statfs", best_bare / N_ROUNDS);
    printf("%-32s %10.1f us\n", "collect", best_host / N_ROUNDS);
    printf("%-32s %10.2f\n", "ratio", best_host / best_bare);
    printf("%-32s %10zu\n", "samples", snapshot_n_samples(&snapshot));
    host_collector.close(host);
    return 0;
}
