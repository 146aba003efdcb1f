#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cgroup.h"
#include "collectors/cgroup_files.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one collection of a thousand cgroups, against the bare openat, read and close of the
 * same files. They are plain
 * files, which cost less to read than the kernel's: against real cgroups the ratio is lower. */

enum { N_GROUPS = 1000, N_TURNS = 7 };

static char root[] = "/tmp/bench_cgroup.XXXXXX";
static int fds[N_GROUPS];

static const struct {
    const char *name;
    const char *text;
} texts[] = {
    {"cgroup.stat", "nr_descendants 0\nnr_dying_descendants 0\n"},
    {"cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=18227537\n"
                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=18127537\n"},
    {"cpu.stat", "usage_usec 21170124\nuser_usec 20011000\nsystem_usec 1159124\n"
                 "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n"},
    {"io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
                    "full avg10=0.00 avg60=0.00 avg300=0.00 total=240000\n"},
    {"io.stat", "8:0 rbytes=4096000 wbytes=8192 rios=120 wios=2 dbytes=0 dios=0\n"},
    {"memory.current", "52428800\n"},
    {"memory.events", "low 0\nhigh 0\nmax 36\noom 1\noom_kill 1\noom_group_kill 0\n"},
    {"memory.peak", "67108864\n"},
    {"memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000001\n"
                        "full avg10=0.00 avg60=0.00 avg300=0.00 total=2000001\n"},
    {"memory.swap.current", "0\n"},
    {"pids.current", "14\n"},
    {"pids.peak", "31\n"},
};

static void write_file(const char *directory, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0) {
        perror(path);
        exit(1);
    }
}

/* memory.stat as the kernel prints it: all keys that we know and as many that we do not. */
static void write_memory_stat(const char *directory) {
    static const char *const keys[] = {
        "anon",           "file",          "kernel",         "kernel_stack",  "pagetables",
        "sec_pagetables", "percpu",        "sock",           "vmalloc",       "shmem",
        "zswap",          "zswapped",      "file_mapped",    "file_dirty",    "file_writeback",
        "swapcached",     "anon_thp",      "file_thp",       "shmem_thp",     "inactive_anon",
        "active_anon",    "inactive_file", "active_file",    "unevictable",   "slab_reclaimable",
        "slab",           "pgscan",        "pgsteal",        "pgscan_kswapd", "pgscan_direct",
        "pgsteal_kswapd", "pgfault",       "pgmajfault",     "pgrefill",      "pgactivate",
        "pgdeactivate",   "pglazyfree",    "thp_fault_alloc"};
    struct buf text CLEANUP_BUF = {0};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        buf_printf(&text, "%s %zu\n", keys[i], 1234567 * (i + 1));
    }
    write_file(directory, "memory.stat", buf_str(&text));
}

static void make_tree(void) {
    if (mkdtemp(root) == NULL) {
        perror(root);
        exit(1);
    }
    write_file(root, "cgroup.controllers", "cpu io memory pids\n");
    for (int i = 0; i < N_GROUPS; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/g%d.slice", root, i);
        mkdir(path, 0700);
        for (size_t t = 0; t < ARRAY_LEN(texts); t++) {
            write_file(path, texts[t].name, texts[t].text);
        }
        write_memory_stat(path);
        fds[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
}

static void read_bare(void) {
    static char text[8192];
    for (int i = 0; i < N_GROUPS; i++) {
        for (size_t t = 0; t <= ARRAY_LEN(texts); t++) {
            const char *name = t < ARRAY_LEN(texts) ? texts[t].name : "memory.stat";
            int fd CLEANUP_CLOSE = openat(fds[i], name, O_RDONLY | O_CLOEXEC);
            if (fd < 0 || read(fd, text, sizeof(text)) < 0) {
                perror(name);
                exit(1);
            }
        }
    }
}

static void *open_collector(struct settings *settings) {
    struct collector_env env = {
        .procfs = "/proc", .sysfs = "/sys", .cgroupfs = root, .rootfs = "/", .settings = settings};
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
    make_tree();
    void *state = open_collector(settings);
    double best_bare = 1e9;
    double best_ours = 1e9;
    for (int turn = 0; turn < N_TURNS; turn++) {
        double begin = stopwatch_cpu_seconds();
        read_bare();
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
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command) == 0 ? 0 : 1;
}
