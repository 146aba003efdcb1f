#include "collectors/host/parse.h"

#include <errno.h>
#include <string.h>

#include "collectors/host/part.h"
#include "exporter/core/scan.h"

const struct metric_desc host_load_metrics[] = {
    {"node_load1", "Mean number of running or blocked processes over one minute.", METRIC_GAUGE},
    {"node_load5", "Mean number of running or blocked processes over five minutes.", METRIC_GAUGE},
    {"node_load15", "Mean number of running or blocked processes over fifteen minutes.",
     METRIC_GAUGE},
    {0},
};

int host_load_parse(const char *text, double ret_loads[static HOST_LOAD_FIELDS]) {
    double loads[HOST_LOAD_FIELDS];
    for (size_t i = 0; i < HOST_LOAD_FIELDS; i++) {
        if (!scan_double(&text, &loads[i])) {
            return -EINVAL;
        }
    }
    memcpy(ret_loads, loads, sizeof(loads));
    return 0;
}

static int load_line(void *context, size_t number, const char *line) {
    const struct host_reading *reading = context;
    double loads[HOST_LOAD_FIELDS];
    int r = number == 1 ? host_load_parse(line, loads) : -EINVAL;
    for (size_t i = 0; r == 0 && i < HOST_LOAD_FIELDS; i++) {
        snapshot_add(reading->out, &host_load_metrics[i], NULL, loads[i]);
    }
    return r;
}

const struct host_part host_load_part = {
    .files = (const char *const[]){"loadavg", NULL},
    .line = load_line,
};
