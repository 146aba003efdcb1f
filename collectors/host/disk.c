#include <string.h>

#include "collectors/host/devices.h"
#include "collectors/host/part.h"
#include "collectors/source/procfs.h"

#define COUNT(name, help)                                                                          \
    { "node_disk_" name "_total", help, METRIC_COUNTER, NULL, "device" }
#define SECONDS(name, help)                                                                        \
    { "node_disk_" name "_seconds_total", help, METRIC_COUNTER, "seconds", "device" }
#define BYTES(name, help)                                                                          \
    { "node_disk_" name "_bytes_total", help, METRIC_COUNTER, "bytes", "device" }

/* In the order of the fields of /proc/diskstats. */
const struct metric_desc host_disk_metrics[] = {
    COUNT("reads_completed", "Read requests that the disk has completed."),
    COUNT("reads_merged", "Read requests merged with a neighbour before being issued."),
    BYTES("read", "Bytes read from the disk."),
    SECONDS("read_time", "Time that all read requests took together."),
    COUNT("writes_completed", "Write requests that the disk has completed."),
    COUNT("writes_merged", "Write requests merged with a neighbour before being issued."),
    BYTES("written", "Bytes written to the disk."),
    SECONDS("write_time", "Time that all write requests took together."),
    {"node_disk_io_now", "Requests in flight.", METRIC_GAUGE, NULL, "device"},
    SECONDS("io_time", "Time during which at least one request was in flight."),
    SECONDS("io_time_weighted", "Time in flight, each moment counted once per request."),
    COUNT("discards_completed", "Discard requests that the disk has completed."),
    COUNT("discards_merged", "Discard requests merged with a neighbour before being issued."),
    COUNT("discarded_sectors", "Sectors of 512 bytes that were discarded."),
    SECONDS("discard_time", "Time that all discard requests took together."),
    COUNT("flush_requests", "Flush requests that the disk has completed."),
    SECONDS("flush_requests_time", "Time that all flush requests took together."),
    {0},
};

/* The kernel counts in sectors of 512 bytes, whatever the disk's are, and in milliseconds. Dividing
 * by 1000 yields the number nearest to what is meant; multiplying by 0.001 does not. */
static double in_unit(const struct metric_desc *metric, uint64_t field) {
    if (metric->unit == NULL) {
        return (double)field;
    }
    return strcmp(metric->unit, "bytes") == 0 ? (double)field * 512 : (double)field / 1000;
}

static int disk_line(void *context, size_t number, const char *text) {
    (void)number;
    const struct host_reading *reading = context;
    struct diskstats_line line;
    int r = diskstats_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct host_device *device = host_devices_see(reading->state, line.device);
    device->n_values = line.n_fields;
    for (size_t i = 0; i < line.n_fields; i++) {
        device->values[i] = in_unit(&host_disk_metrics[i], line.fields[i]);
    }
    return 0;
}

static void disk_open(void *state, const struct collector_env *env) {
    host_devices_init(state, host_disk_metrics, env->settings,
                      "collector.host.disk.device-exclude");
}

const struct host_part host_disk_part = {
    .state_size = sizeof(struct host_devices),
    .files = (const char *const[]){"diskstats", NULL},
    .line = disk_line,
    .open = disk_open,
    .collect = host_devices_collect,
    .close = host_devices_finish,
};
