#include "collectors/host/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/host/part.h"
#include "collectors/source/rows.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/scan.h"

enum { CPU_JUMP_SECONDS = 3 };
enum { CPU_SECONDS, CPU_GUEST_SECONDS, CPU_FIRST_TOTAL };

const struct metric_desc host_cpu_metrics[] = {
    {"node_cpu_seconds_total", "Time each CPU has spent in each mode.", METRIC_COUNTER, "seconds",
     "cpu, mode"},
    {"node_cpu_guest_seconds_total",
     "Time each CPU has spent running virtual machines; also part of its user and nice time.",
     METRIC_COUNTER, "seconds", "cpu, mode"},
    {"node_boot_time_seconds", "When the system was booted, in seconds since 1970.", METRIC_GAUGE,
     "seconds", NULL},
    {"node_context_switches_total", "Context switches on all CPUs.", METRIC_COUNTER, NULL, NULL},
    {"node_forks_total", "Processes and threads created since boot.", METRIC_COUNTER, NULL, NULL},
    {"node_intr_total", "Interrupts served since boot.", METRIC_COUNTER, NULL, NULL},
    {"node_procs_blocked", "Processes waiting for input or output.", METRIC_GAUGE, NULL, NULL},
    {"node_procs_running", "Processes running or ready to run.", METRIC_GAUGE, NULL, NULL},
    {0},
};

/* Lines of /proc/stat that hold one number we want, in the order of the metrics above. */
static const char *const total_keys[] = {
    "btime", "ctxt", "processes", "intr", "procs_blocked", "procs_running",
};
enum { CPU_N_TOTALS = ARRAY_LEN(total_keys) };

static const struct {
    int metric;
    const char *mode;
} modes[CPU_STAT_N_MODES] = {
    [CPU_STAT_USER] = {CPU_SECONDS, "user"},
    [CPU_STAT_NICE] = {CPU_SECONDS, "nice"},
    [CPU_STAT_SYSTEM] = {CPU_SECONDS, "system"},
    [CPU_STAT_IDLE] = {CPU_SECONDS, "idle"},
    [CPU_STAT_IOWAIT] = {CPU_SECONDS, "iowait"},
    [CPU_STAT_IRQ] = {CPU_SECONDS, "irq"},
    [CPU_STAT_SOFTIRQ] = {CPU_SECONDS, "softirq"},
    [CPU_STAT_STEAL] = {CPU_SECONDS, "steal"},
    [CPU_STAT_GUEST] = {CPU_GUEST_SECONDS, "user"},
    [CPU_STAT_GUEST_NICE] = {CPU_GUEST_SECONDS, "nice"},
};

struct cpu_row {
    struct row row; /* "cpu0" */
    struct cpu_stat_line line;
    struct labels *labels[CPU_STAT_N_MODES];
};

struct cpu {
    uint64_t ticks_per_second;
    struct rows rows;
    bool total_seen[CPU_N_TOTALS];
    uint64_t totals[CPU_N_TOTALS];
};

void host_cpu_follow(struct cpu_stat_line *kept, const struct cpu_stat_line *seen,
                     uint64_t ticks_per_second) {
    if (kept->ticks[CPU_STAT_IDLE] >=
        seen->ticks[CPU_STAT_IDLE] + CPU_JUMP_SECONDS * ticks_per_second) {
        *kept = *seen;
        return;
    }
    kept->n_modes = seen->n_modes;
    for (size_t i = 0; i < seen->n_modes; i++) {
        if (seen->ticks[i] > kept->ticks[i]) {
            kept->ticks[i] = seen->ticks[i];
        }
    }
}

static void finish_row(void *row) {
    struct cpu_row *cpu = row;
    for (size_t i = 0; i < CPU_STAT_N_MODES; i++) {
        labels_destroy(cpu->labels[i]);
    }
}

static int see_cpu(struct cpu *cpu, struct scan_word key, const char *text) {
    struct cpu_stat_line line;
    int r = cpu_stat_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct cpu_row *row = rows_see(&cpu->rows, key);
    char name[24];
    snprintf(name, sizeof(name), "%" PRIu64, line.id);
    for (size_t i = 0; row->row.is_new && i < CPU_STAT_N_MODES; i++) {
        row->labels[i] = labels_render("cpu", name, "mode", modes[i].mode);
    }
    host_cpu_follow(&row->line, &line, cpu->ticks_per_second);
    return 0;
}

static int stat_line(void *context, size_t number, const char *line) {
    (void)number;
    const struct host_reading *reading = context;
    struct cpu *cpu = reading->state;
    struct scan_word key;
    const char *cursor = line;
    if (!scan_word(&cursor, &key) || scan_word_equal(key, "cpu")) {
        return 0; /* the sum of all CPUs */
    }
    if (key.len > 3 && memcmp(key.text, "cpu", 3) == 0) {
        return see_cpu(cpu, key, line);
    }
    for (size_t i = 0; i < CPU_N_TOTALS; i++) {
        if (scan_word_equal(key, total_keys[i])) {
            cpu->total_seen[i] = scan_u64(&cursor, &cpu->totals[i]);
            return cpu->total_seen[i] ? 0 : -EINVAL;
        }
    }
    return 0;
}

static void emit_modes(const struct cpu *cpu, int metric, struct snapshot *out) {
    double per_second = (double)cpu->ticks_per_second;
    for (size_t i = 0; i < cpu->rows.n; i++) {
        const struct cpu_row *row = (const struct cpu_row *)cpu->rows.all[i];
        for (size_t mode = 0; mode < row->line.n_modes; mode++) {
            if (modes[mode].metric == metric) {
                snapshot_add(out, &host_cpu_metrics[metric], row->labels[mode],
                             (double)row->line.ticks[mode] / per_second);
            }
        }
    }
}

static int cpu_collect(void *state, struct buf *scratch, struct snapshot *out, struct error *err) {
    (void)scratch;
    (void)err;
    struct cpu *cpu = state;
    rows_sweep(&cpu->rows); /* a CPU that was switched off has no line; its series end */
    emit_modes(cpu, CPU_SECONDS, out);
    emit_modes(cpu, CPU_GUEST_SECONDS, out);
    for (size_t i = 0; i < CPU_N_TOTALS; i++) {
        if (cpu->total_seen[i]) {
            snapshot_add(out, &host_cpu_metrics[CPU_FIRST_TOTAL + i], NULL, (double)cpu->totals[i]);
        }
        cpu->total_seen[i] = false;
    }
    return 0;
}

static void cpu_close(void *state) {
    struct cpu *cpu = state;
    rows_finish(&cpu->rows);
}

static void cpu_open(void *state, const struct collector_env *env) {
    (void)env;
    struct cpu *cpu = state;
    cpu->ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    cpu->rows = (struct rows){sizeof(struct cpu_row), finish_row};
}

const struct host_part host_cpu_part = {
    .state_size = sizeof(struct cpu),
    .files = (const char *const[]){"stat", NULL},
    .line = stat_line,
    .open = cpu_open,
    .collect = cpu_collect,
    .close = cpu_close,
};
