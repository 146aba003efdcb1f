#include "collectors/host/part.h"
#include "collectors/source/procfs.h"

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

static const char *const files[] = {
    "pressure/cpu", "pressure/io", "pressure/irq", "pressure/memory", NULL,
};

/* In the order of the files: the metrics of the lines "some" and "full". The kernel also prints a
 * "full" line for the CPU, which is always zero for the whole system. */
static const struct metric_desc *const lines[][2] = {
    {&host_pressure_metrics[0], NULL},
    {&host_pressure_metrics[1], &host_pressure_metrics[2]},
    {NULL, &host_pressure_metrics[5]},
    {&host_pressure_metrics[3], &host_pressure_metrics[4]},
};

static int take_line(void *context, size_t number, const char *text) {
    (void)number;
    const struct host_reading *reading = context;
    struct pressure_line line;
    int r = pressure_parse(text, &line);
    if (r < 0) {
        return r;
    }
    const struct metric_desc *metric = lines[reading->file][line.full];
    if (metric != NULL) {
        snapshot_add(reading->out, metric, NULL, (double)line.total_usec / 1e6);
    }
    return 0;
}

const struct host_part host_pressure_part = {
    .files = files,
    .line = take_line,
};
