#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/host/devices.h"
#include "collectors/host/part.h"
#include "collectors/source/procfs.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

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

struct disk {
    struct source_file file;
    struct host_devices devices;
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
    struct disk *disk = context;
    struct diskstats_line line;
    int r = diskstats_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct host_device *device = host_devices_see(&disk->devices, line.device);
    device->n_values = line.n_fields;
    for (size_t i = 0; i < line.n_fields; i++) {
        device->values[i] = in_unit(&host_disk_metrics[i], line.fields[i]);
    }
    return 0;
}

static int disk_collect(void *state, struct buf *scratch, struct snapshot *out, struct error *err) {
    struct disk *disk = state;
    int r = source_file_read(&disk->file, scratch, err);
    if (r < 0) {
        return source_file_absent(r) ? 0 : r;
    }
    host_devices_begin(&disk->devices);
    r = scan_lines(buf_str(scratch), disk->file.path, disk_line, disk, err);
    host_devices_sweep(&disk->devices);
    host_devices_emit(&disk->devices, host_disk_metrics, out);
    return r;
}

static void disk_close(void *state) {
    struct disk *disk = state;
    host_devices_finish(&disk->devices);
    source_file_finish(&disk->file);
    free(disk);
}

static void *disk_open(const struct collector_env *env) {
    struct disk *disk = mem_zalloc(1, sizeof(*disk));
    source_file_init(&disk->file, env->procfs, "diskstats", NULL);
    filter_init(&disk->devices.exclude, env->settings, "collector.host.disk.device-exclude");
    return disk;
}

const struct host_part host_disk_part = {
    .name = "disk",
    .open = disk_open,
    .collect = disk_collect,
    .close = disk_close,
};
