#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum cpu_file { CPU_ONLINE, CPU_MEASURED, CPU_REQUESTED, CPU_MAX, CPU_MIN, CPU_N_FILES };

static const char *const cpu_files[CPU_N_FILES] = {
    [CPU_ONLINE] = "online",                     /* CPU 0 often has none: always on */
    [CPU_MEASURED] = "cpufreq/cpuinfo_cur_freq", /* kilohertz; for root only */
    [CPU_REQUESTED] = "cpufreq/scaling_cur_freq",
    [CPU_MAX] = "cpufreq/scaling_max_freq",
    [CPU_MIN] = "cpufreq/scaling_min_freq",
};

struct cpu {
    struct labels *labels;
    struct source_file files[CPU_N_FILES];
};

struct cpus {
    struct cpu *rows;
    size_t n_rows;
};

static void cpu_init(struct cpu *cpu, const char *dir, const char *number) {
    cpu->labels = labels_render("cpu", number);
    for (size_t i = 0; i < CPU_N_FILES; i++) {
        source_file_init(&cpu->files[i], dir, cpu_files[i], NULL);
    }
}

static int add_frequencies(struct cpu *cpu, struct snapshot *out, struct error *err) {
    double kilohertz;
    int r = source_file_number(&cpu->files[CPU_MEASURED], &kilohertz, err);
    if (r == 0) {
        r = source_file_number(&cpu->files[CPU_REQUESTED], &kilohertz, err);
    }
    if (r > 0) {
        snapshot_add(out, &jetson_descs[JETSON_CPU_FREQUENCY], cpu->labels, kilohertz * 1000);
    }
    int max = jetson_add_number(&cpu->files[CPU_MAX], 1000, &jetson_descs[JETSON_CPU_FREQUENCY_MAX],
                                cpu->labels, out, r < 0 ? NULL : err);
    int min = jetson_add_number(&cpu->files[CPU_MIN], 1000, &jetson_descs[JETSON_CPU_FREQUENCY_MIN],
                                cpu->labels, out, r < 0 || max < 0 ? NULL : err);
    return r < 0 ? r : max < 0 ? max : min;
}

static int add_cpu(struct cpu *cpu, struct snapshot *out, struct error *err) {
    double online = 1;
    int r = source_file_number(&cpu->files[CPU_ONLINE], &online, err);
    if (r < 0) {
        return r;
    }
    snapshot_add(out, &jetson_descs[JETSON_CPU_ONLINE], cpu->labels, online != 0);
    return online != 0 ? add_frequencies(cpu, out, err) : 0;
}

static int cpu_collect(void *state, struct jetson_round *round, struct snapshot *out,
                       struct error *err) {
    (void)round;
    struct cpus *cpus = state;
    int result = 0;
    for (size_t i = 0; i < cpus->n_rows; i++) {
        int r = add_cpu(&cpus->rows[i], out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

static void cpu_close(void *state) {
    struct cpus *cpus = state;
    for (size_t i = 0; i < cpus->n_rows; i++) {
        labels_destroy(cpus->rows[i].labels);
        for (size_t file = 0; file < CPU_N_FILES; file++) {
            source_file_finish(&cpus->rows[i].files[file]);
        }
    }
    free(cpus->rows);
    free(cpus);
}

/* All that the module has: those that are switched off stay listed. */
static void find_cpus(struct cpus *cpus, const char *sysfs) {
    char *base CLEANUP_FREE = file_path_join(sysfs, "devices/system/cpu");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, base, "cpu");
    cpus->rows = mem_zalloc(entries.n_names + 1, sizeof(*cpus->rows));
    for (size_t i = 0; i < entries.n_names; i++) {
        const char *number = entries.names[i] + strlen("cpu");
        if (number[0] == '\0' || number[strspn(number, "0123456789")] != '\0') {
            continue; /* cpufreq, cpuidle */
        }
        char *dir CLEANUP_FREE = file_path_join(base, entries.names[i]);
        cpu_init(&cpus->rows[cpus->n_rows++], dir, number);
    }
}

static void *cpu_open(const struct collector_env *env, const struct jetson_board *board) {
    (void)board;
    struct cpus *cpus = mem_zalloc(1, sizeof(*cpus));
    find_cpus(cpus, env->sysfs);
    return cpus;
}

const struct jetson_part jetson_cpu_part = {
    .name = "cpu",
    .open = cpu_open,
    .collect = cpu_collect,
    .close = cpu_close,
};
