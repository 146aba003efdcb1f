#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "collectors/host/host.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/settings.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one collection of `host` on this machine, against the bare system calls on the same
 * files: open, read to the end, close, and statfs of the root. */

enum { N_ROUNDS = 500, N_TURNS = 5 };

static const char *const files[] = {
    "/proc/stat",         "/proc/diskstats",       "/proc/1/mounts",     "/proc/loadavg",
    "/proc/meminfo",      "/proc/1/net/dev",       "/proc/pressure/cpu", "/proc/pressure/io",
    "/proc/pressure/irq", "/proc/pressure/memory",
};

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
    const int n_rounds = stopwatch_count(N_ROUNDS);
    struct settings *settings CLEANUP_SETTINGS = NULL;
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    void *host = open_host(&settings);
    double best_bare = 1e9;
    double best_host = 1e9;
    for (int turn = 0; turn < stopwatch_count(N_TURNS); turn++) {
        double begin = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++) {
            read_bare();
        }
        double middle = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++) {
            snapshot_reset(&snapshot);
            host_collector.collect(host, &snapshot, NULL);
        }
        double end = stopwatch_cpu_seconds();
        best_bare = middle - begin < best_bare ? middle - begin : best_bare;
        best_host = end - middle < best_host ? end - middle : best_host;
    }
    printf("one collection of host\t%.4g\t%.4g\tbare open, read, close\n", best_host / n_rounds,
           best_bare / n_rounds);
    host_collector.close(host);
    return 0;
}
