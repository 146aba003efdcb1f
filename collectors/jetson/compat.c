#include "collectors/jetson/compat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "collectors/source/label_pool.h"
#include "collectors/source/procfs.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

enum { COMPAT_MAX_CPUS = 1024, COMPAT_CPU_INTERVAL_MS = 2000 };

#define BYTES_PER_MIB (1 << 20)

#define DESC(id, name, label, from, factor, help) [id] = {name, help, METRIC_GAUGE, NULL, label},
#define TRANSLATION(id, name, label, from, factor, help) [id] = {from, factor},

const struct metric_desc jetson_compat_descs[JETSON_COMPAT_N_METRICS + 1] = {
    TEGRA_METRICS(DESC) PROTOTYPE_METRICS(DESC)};

static const struct {
    const struct metric_desc *from; /* the same value under our name; NULL: none */
    double factor;
} translations[] = {TEGRA_METRICS(TRANSLATION)};

struct cpu_load {
    uint64_t idle, all; /* ticks at the latest look */
    double percent;     /* over the interval before it; below zero: not known */
};

struct compat {
    struct source_file meminfo;
    struct source_file stat;
    int64_t looked_ns;
    struct cpu_load cpus[COMPAT_MAX_CPUS];
    struct label_pool pool; /* of the latest snapshot */
};

static void note_load(struct cpu_load *cpu, const struct cpu_stat_line *line) {
    uint64_t all = 0;
    for (size_t i = 0; i < line->n_modes && i <= CPU_STAT_STEAL; i++) {
        all += line->ticks[i];
    }
    uint64_t iowait = line->n_modes > CPU_STAT_IOWAIT ? line->ticks[CPU_STAT_IOWAIT] : 0;
    uint64_t idle = line->ticks[CPU_STAT_IDLE] + iowait;
    bool advanced = cpu->all > 0 && all > cpu->all && idle >= cpu->idle;
    double span = (double)(all - cpu->all);
    cpu->percent = advanced ? 100 * (1 - (double)(idle - cpu->idle) / span) : -1;
    cpu->idle = idle;
    cpu->all = all;
}

static int stat_line(void *context, size_t number, const char *text) {
    (void)number;
    struct compat *compat = context;
    struct cpu_stat_line line;
    if (cpu_stat_parse(text, &line) == 0 && line.id < COMPAT_MAX_CPUS) {
        note_load(&compat->cpus[line.id], &line);
    }
    return 0;
}

/* The load of the CPUs over an interval, as that of tegrastats. */
static void compat_sample(void *state, struct jetson_round *round) {
    struct compat *compat = state;
    bool due = compat->looked_ns == 0 ||
               round->now_ns - compat->looked_ns >= COMPAT_CPU_INTERVAL_MS * CLOCK_NS_PER_MS;
    if ((round->board->compat & (COMPAT_TEGRA | COMPAT_PROTOTYPE)) == 0 || !due ||
        source_file_read(&compat->stat, round->scratch, NULL) < 0) {
        return;
    }
    compat->looked_ns = round->now_ns;
    for (size_t i = 0; i < COMPAT_MAX_CPUS; i++) {
        compat->cpus[i].percent = -1; /* those that are switched off have no line */
    }
    scan_lines(buf_str(round->scratch), compat->stat.path, stat_line, compat, NULL);
}

/* The value of the first label, `zone="cpu"`. Zones, rails and CPUs have no quotes in theirs. */
static struct scan_word label_value(const struct labels *labels) {
    const char *begin = labels != NULL ? strchr(labels->text, '"') : NULL;
    size_t len = begin != NULL ? strcspn(begin + 1, "\"") : 0;
    return (struct scan_word){.text = begin != NULL ? begin + 1 : "", .len = len};
}

static const struct labels *translate(struct compat *compat, const struct labels *labels,
                                      const char *name) {
    struct scan_word word = label_value(labels);
    char text[64];
    snprintf(text, sizeof(text), "%.*s", (int)word.len, word.text);
    if (strcmp(name, "cpu") == 0) {
        snprintf(text, sizeof(text), "%lu", strtoul(text, NULL, 10) + 1);
    }
    return label_pool_render(&compat->pool, name, text);
}

/* The families move in memory as others are added. */
static void add_family(struct compat *compat, size_t id, size_t family, struct snapshot *out) {
    const struct metric_desc *desc = &jetson_compat_descs[id];
    size_t n = out->families[family].n_samples;
    for (size_t i = 0; i < n; i++) {
        struct sample sample = out->families[family].samples[i];
        const struct labels *labels =
            desc->labels != NULL ? translate(compat, sample.labels, desc->labels) : NULL;
        snapshot_add(out, desc, labels, sample.value * translations[id].factor);
    }
}

static void add_translations(struct compat *compat, struct snapshot *out) {
    size_t n = out->n_families;
    for (size_t i = 0; i < ARRAY_LEN(translations); i++) {
        for (size_t family = 0; family < n; family++) {
            if (out->families[family].desc == translations[i].from) {
                add_family(compat, i, family, out);
            }
        }
    }
    snapshot_add(out, &jetson_compat_descs[TEGRA_LAST_UPDATED], NULL, clock_wall_seconds());
}

static void add_loads(struct compat *compat, bool tegra, bool prototype, struct snapshot *out) {
    double sum = -1;
    for (size_t i = 0; i < COMPAT_MAX_CPUS; i++) {
        double percent = compat->cpus[i].percent;
        if (percent < 0) {
            continue;
        }
        sum = fmax(sum, 0) + percent;
        if (tegra) {
            char number[24];
            snprintf(number, sizeof(number), "%zu", i + 1);
            snapshot_add(out, &jetson_compat_descs[TEGRA_CPU_UTIL],
                         label_pool_render(&compat->pool, "cpu", number), percent);
        }
    }
    if (prototype && sum >= 0) {
        snapshot_add(out, &jetson_compat_descs[PROTOTYPE_CPU], NULL, sum);
    }
}

/* Where a Jetson's driver does not report the GPU's memory, it is what CPUs and GPU share, as CUDA
 * counts it. */
static void add_memory(struct compat *compat, struct jetson_round *round, struct snapshot *out) {
    double info[MEMINFO_N_FIELDS];
    bool has_gpu = gpu_add_prototype(out);
    if (source_file_read(&compat->meminfo, round->scratch, NULL) < 0) {
        return;
    }
    jetson_meminfo_parse(buf_str(round->scratch), info);
    double used = jetson_meminfo_used(info);
    if (!isnan(used)) {
        snapshot_add(out, &jetson_compat_descs[PROTOTYPE_RAM], NULL, used / BYTES_PER_MIB);
        snapshot_add(out, &jetson_compat_descs[PROTOTYPE_TEGRA_RAM], NULL, used / BYTES_PER_MIB);
        if (!has_gpu && round->board->detected) {
            snapshot_add(out, &gpu_descs[GPU_PROTOTYPE_USED], round->board->gpu, used);
        }
    }
}

static int compat_collect(void *state, struct jetson_round *round, struct snapshot *out,
                          struct error *err) {
    (void)err;
    struct compat *compat = state;
    bool tegra = (round->board->compat & COMPAT_TEGRA) != 0;
    bool prototype = (round->board->compat & COMPAT_PROTOTYPE) != 0;
    label_pool_clear(&compat->pool);
    if (tegra) {
        add_translations(compat, out);
    }
    if (prototype) {
        add_memory(compat, round, out);
    }
    add_loads(compat, tegra, prototype, out);
    return 0;
}

static void compat_close(void *state) {
    struct compat *compat = state;
    label_pool_finish(&compat->pool);
    source_file_finish(&compat->meminfo);
    source_file_finish(&compat->stat);
}

static void compat_open(void *state, const struct collector_env *env,
                        const struct jetson_board *board) {
    (void)board;
    struct compat *compat = state;
    source_file_init(&compat->meminfo, env->procfs, "meminfo", NULL);
    source_file_init(&compat->stat, env->procfs, "stat", NULL);
    for (size_t i = 0; i < COMPAT_MAX_CPUS; i++) {
        compat->cpus[i].percent = -1;
    }
}

const struct jetson_part jetson_compat_part = {
    .anywhere = true,
    .state_size = sizeof(struct compat),
    .open = compat_open,
    .sample = compat_sample,
    .collect = compat_collect,
    .close = compat_close,
};
