#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cgroup/parse.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

/* A tree of cgroups made of plain files, which cost less to read than the kernel's: against real
 * cgroups what we add to the bare calls is a smaller part. */

static char groups_root[64];
static int *groups_fds;
static int groups_n;

static const struct groups_text {
    const char *name;
    const char *text; /* NULL: that of groups_memory_stat */
    enum cgroup_reader readers;
} groups_texts[] = {
    {"cgroup.procs", "", CGROUP_FOR_CONTAINER},
    {"cgroup.stat", "nr_descendants 0\nnr_dying_descendants 0\n", CGROUP_FOR_CGROUP},
    {"cpu.pressure",
     "some avg10=0.00 avg60=0.00 avg300=0.00 total=18227537\n"
     "full avg10=0.00 avg60=0.00 avg300=0.00 total=18127537\n",
     CGROUP_FOR_BOTH},
    {"cpu.stat",
     "usage_usec 21170124\nuser_usec 20011000\nsystem_usec 1159124\n"
     "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n",
     CGROUP_FOR_BOTH},
    {"io.pressure",
     "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
     "full avg10=0.00 avg60=0.00 avg300=0.00 total=240000\n",
     CGROUP_FOR_BOTH},
    {"io.stat", "8:0 rbytes=4096000 wbytes=8192 rios=120 wios=2 dbytes=0 dios=0\n",
     CGROUP_FOR_BOTH},
    {"memory.current", "52428800\n", CGROUP_FOR_BOTH},
    {"memory.events", "low 0\nhigh 0\nmax 36\noom 1\noom_kill 1\noom_group_kill 0\n",
     CGROUP_FOR_BOTH},
    {"memory.peak", "67108864\n", CGROUP_FOR_BOTH},
    {"memory.pressure",
     "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000001\n"
     "full avg10=0.00 avg60=0.00 avg300=0.00 total=2000001\n",
     CGROUP_FOR_BOTH},
    {"memory.stat", NULL, CGROUP_FOR_BOTH},
    {"memory.swap.current", "0\n", CGROUP_FOR_BOTH},
    {"pids.current", "14\n", CGROUP_FOR_BOTH},
    {"pids.peak", "31\n", CGROUP_FOR_CGROUP},
};

/* As the kernel prints it: all keys that we know and as many that we do not. */
static inline const char *groups_memory_stat(void) {
    static const char *const keys[] = {
        "anon",           "file",          "kernel",         "kernel_stack",  "pagetables",
        "sec_pagetables", "percpu",        "sock",           "vmalloc",       "shmem",
        "zswap",          "zswapped",      "file_mapped",    "file_dirty",    "file_writeback",
        "swapcached",     "anon_thp",      "file_thp",       "shmem_thp",     "inactive_anon",
        "active_anon",    "inactive_file", "active_file",    "unevictable",   "slab_reclaimable",
        "slab",           "pgscan",        "pgsteal",        "pgscan_kswapd", "pgscan_direct",
        "pgsteal_kswapd", "pgfault",       "pgmajfault",     "pgrefill",      "pgactivate",
        "pgdeactivate",   "pglazyfree",    "thp_fault_alloc"};
    static struct buf text;
    buf_reset(&text);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        buf_printf(&text, "%s %zu\n", keys[i], 1234567 * (i + 1));
    }
    return buf_str(&text);
}

static inline void groups_write(const char *directory, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    if (file == NULL || fputs(text, file) < 0) {
        perror(path);
        exit(1);
    }
}

/* Makes `n` of them, each where `name` says. */
static inline void groups_make(int n, void (*name)(int i, char path[static 128])) {
    snprintf(groups_root, sizeof(groups_root), "/tmp/bench_groups.XXXXXX");
    if (mkdtemp(groups_root) == NULL) {
        perror(groups_root);
        exit(1);
    }
    groups_write(groups_root, "cgroup.controllers", "cpu io memory pids\n");
    groups_fds = calloc((size_t)n, sizeof(int));
    groups_n = n;
    for (int i = 0; i < n; i++) {
        char below[128], path[256];
        name(i, below);
        snprintf(path, sizeof(path), "%s/%s", groups_root, below);
        mkdir(path, 0700);
        for (size_t t = 0; t < ARRAY_LEN(groups_texts); t++) {
            const char *text = groups_texts[t].text;
            groups_write(path, groups_texts[t].name, text != NULL ? text : groups_memory_stat());
        }
        groups_fds[i] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
}

/* Opens, reads and closes what `reader` reads every time, or just the file `only`. */
static inline void groups_read_bare(enum cgroup_reader reader, const char *only) {
    static char text[8192];
    for (int i = 0; i < groups_n; i++) {
        for (size_t t = 0; t < ARRAY_LEN(groups_texts); t++) {
            const char *name = groups_texts[t].name;
            if ((groups_texts[t].readers & reader) == 0 ||
                (only != NULL && strcmp(name, only) != 0)) {
                continue;
            }
            int fd CLEANUP_CLOSE = openat(groups_fds[i], name, O_RDONLY | O_CLOEXEC);
            if (fd < 0 || read(fd, text, sizeof(text)) < 0) {
                perror(name);
                exit(1);
            }
        }
    }
}

static inline void groups_remove(void) {
    for (int i = 0; i < groups_n; i++) {
        close(groups_fds[i]);
    }
    free(groups_fds);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", groups_root);
    if (system(command) != 0) {
        exit(1);
    }
}
