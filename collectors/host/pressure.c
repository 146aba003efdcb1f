#include <errno.h>
#include <stdlib.h>

#include "collectors/host/part.h"
#include "collectors/source/procfs.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

#define PRESSURE(name, help)                                                                       \
    { "node_pressure_" name "_seconds_total", help, METRIC_COUNTER, "seconds" }

const struct metric_desc host_pressure_metrics[] = {
    PRESSURE("cpu_waiting", "Time during which some task waited for a CPU."),
    PRESSURE("io_waiting", "Time during which some task waited for input or output."),
    PRESSURE("io_stalled", "Time during which every task waited for input or output."),
    PRESSURE("memory_waiting", "Time during which some task waited for memory."),
    PRESSURE("memory_stalled", "Time during which every task waited for memory."),
    PRESSURE("irq_stalled", "Time during which interrupts kept every task from running."),
    {0},
};

/* The kernel also prints a "full" line for the CPU, which is always zero for the whole system. */
static const struct {
    const char *file;
    const struct metric_desc *some;
    const struct metric_desc *full;
} resources[] = {
    {"pressure/cpu", &host_pressure_metrics[0], NULL},
    {"pressure/io", &host_pressure_metrics[1], &host_pressure_metrics[2]},
    {"pressure/irq", NULL, &host_pressure_metrics[5]},
    {"pressure/memory", &host_pressure_metrics[3], &host_pressure_metrics[4]},
};

struct pressure {
    struct source_file files[ARRAY_LEN(resources)];
    size_t resource; /* the one being read */
    struct snapshot *out;
};

static int take_line(void *context, size_t number, const char *text) {
    (void)number;
    struct pressure *pressure = context;
    struct pressure_line line;
    int r = pressure_parse(text, &line);
    if (r < 0) {
        return r;
    }
    const struct metric_desc *metric =
        line.full ? resources[pressure->resource].full : resources[pressure->resource].some;
    if (metric != NULL) {
        snapshot_add(pressure->out, metric, NULL, (double)line.total_usec / 1e6);
    }
    return 0;
}

static int pressure_collect(void *state, struct buf *scratch, struct snapshot *out,
                            struct error *err) {
    struct pressure *pressure = state;
    pressure->out = out;
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        struct source_file *file = &pressure->files[i];
        struct error *first = result == 0 ? err : NULL;
        pressure->resource = i;
        int r = source_file_read(file, scratch, first);
        if (r == 0) {
            r = scan_lines(buf_str(scratch), file->path, take_line, pressure, first);
        }
        if (r < 0 && result == 0 && !source_file_absent(r)) {
            result = r;
        }
    }
    return result;
}

static void pressure_close(void *state) {
    struct pressure *pressure = state;
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        source_file_finish(&pressure->files[i]);
    }
    free(pressure);
}

static void *pressure_open(const struct collector_env *env) {
    struct pressure *pressure = mem_zalloc(1, sizeof(*pressure));
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        source_file_init(&pressure->files[i], env->procfs, resources[i].file, NULL);
    }
    return pressure;
}

const struct host_part host_pressure_part = {
    .name = "pressure",
    .open = pressure_open,
    .collect = pressure_collect,
    .close = pressure_close,
};
