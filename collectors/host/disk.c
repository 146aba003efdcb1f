#include <string.h>

#include "collectors/host/devices.h"
#include "collectors/host/part.h"
#include "collectors/source/procfs.h"

/* In the order of the fields of /proc/diskstats. */
const struct metric_desc host_disk_metrics[] = {
    {"node_disk_reads_completed_total", "Read requests that the disk has completed.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_reads_merged_total", "Read requests merged with a neighbour before being issued.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_read_bytes_total", "Bytes read from the disk.", METRIC_COUNTER, "bytes", "device"},
    {"node_disk_read_time_seconds_total", "Time that all read requests took together.",
     METRIC_COUNTER, "seconds", "device"},
    {"node_disk_writes_completed_total", "Write requests that the disk has completed.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_writes_merged_total", "Write requests merged with a neighbour before being issued.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_written_bytes_total", "Bytes written to the disk.", METRIC_COUNTER, "bytes",
     "device"},
    {"node_disk_write_time_seconds_total", "Time that all write requests took together.",
     METRIC_COUNTER, "seconds", "device"},
    {"node_disk_io_now", "Requests in flight.", METRIC_GAUGE, NULL, "device"},
    {"node_disk_io_time_seconds_total", "Time during which at least one request was in flight.",
     METRIC_COUNTER, "seconds", "device"},
    {"node_disk_io_time_weighted_seconds_total",
     "Time in flight, each moment counted once per request.", METRIC_COUNTER, "seconds", "device"},
    {"node_disk_discards_completed_total", "Discard requests that the disk has completed.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_discards_merged_total",
     "Discard requests merged with a neighbour before being issued.", METRIC_COUNTER, NULL,
     "device"},
    {"node_disk_discarded_sectors_total", "Sectors of 512 bytes that were discarded.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_discard_time_seconds_total", "Time that all discard requests took together.",
     METRIC_COUNTER, "seconds", "device"},
    {"node_disk_flush_requests_total", "Flush requests that the disk has completed.",
     METRIC_COUNTER, NULL, "device"},
    {"node_disk_flush_requests_time_seconds_total", "Time that all flush requests took together.",
     METRIC_COUNTER, "seconds", "device"},
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

static int disk_collect(void *state, struct buf *scratch, struct snapshot *out, struct error *err) {
    (void)scratch;
    (void)err;
    host_devices_emit(state, host_disk_metrics, out);
    return 0;
}

static void disk_open(void *state, const struct collector_env *env) {
    host_devices_init(state, env->settings, "collector.host.disk.device-exclude");
}

const struct host_part host_disk_part = {
    .state_size = sizeof(struct host_devices),
    .files = (const char *const[]){"diskstats", NULL},
    .line = disk_line,
    .open = disk_open,
    .collect = disk_collect,
    .close = host_devices_finish,
};
