#include <errno.h>
#include <stdlib.h>

#include "collectors/host/devices.h"
#include "collectors/host/part.h"
#include "collectors/source/procfs.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

#define NETWORK(name, help)                                                                        \
    { "node_network_" name "_total", help, METRIC_COUNTER, NULL, "device" }
#define NETWORK_BYTES(name, help)                                                                  \
    { "node_network_" name "_bytes_total", help, METRIC_COUNTER, "bytes", "device" }

/* In the order of the columns of /proc/net/dev. */
const struct metric_desc host_network_metrics[] = {
    NETWORK_BYTES("receive", "Bytes received."),
    NETWORK("receive_packets", "Packets received."),
    NETWORK("receive_errs", "Received packets that were faulty."),
    NETWORK("receive_drop", "Received packets that were dropped."),
    NETWORK("receive_fifo", "Received packets lost because the device's queue was full."),
    NETWORK("receive_frame", "Received packets with wrong length, checksum or framing."),
    NETWORK("receive_compressed", "Compressed packets received."),
    NETWORK("receive_multicast", "Multicast packets received."),
    NETWORK_BYTES("transmit", "Bytes sent."),
    NETWORK("transmit_packets", "Packets sent."),
    NETWORK("transmit_errs", "Packets that could not be sent for a fault."),
    NETWORK("transmit_drop", "Packets dropped instead of being sent."),
    NETWORK("transmit_fifo", "Packets to send lost because the device's queue ran empty or full."),
    NETWORK("transmit_colls", "Collisions while sending."),
    NETWORK("transmit_carrier", "Packets not sent because the link was lost."),
    NETWORK("transmit_compressed", "Compressed packets sent."),
    {0},
};

struct network {
    struct source_file file;
    struct host_devices devices;
};

static int network_line(void *context, size_t number, const char *text) {
    struct network *network = context;
    if (number <= 2) {
        return 0; /* two lines of headings */
    }
    struct net_dev_line line;
    int r = net_dev_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct host_device *device = host_devices_see(&network->devices, line.device);
    device->n_values = NET_DEV_FIELDS;
    for (size_t i = 0; i < NET_DEV_FIELDS; i++) {
        device->values[i] = (double)line.fields[i];
    }
    return 0;
}

static int network_collect(void *state, struct buf *scratch, struct snapshot *out,
                           struct error *err) {
    struct network *network = state;
    int r = source_file_read(&network->file, scratch, err);
    if (r < 0) {
        return source_file_absent(r) ? 0 : r;
    }
    host_devices_begin(&network->devices);
    r = scan_lines(buf_str(scratch), network->file.path, network_line, network, err);
    host_devices_sweep(&network->devices);
    host_devices_emit(&network->devices, host_network_metrics, out);
    return r;
}

static void network_close(void *state) {
    struct network *network = state;
    host_devices_finish(&network->devices);
    source_file_finish(&network->file);
    free(network);
}

static void *network_open(const struct collector_env *env) {
    struct network *network = mem_zalloc(1, sizeof(*network));
    /* net/ is our own network namespace; the host's is that of its first process. */
    source_file_init(&network->file, env->procfs, "1/net/dev", "net/dev");
    filter_init(&network->devices.exclude, env->settings, "collector.host.network.device-exclude");
    return network;
}

const struct host_part host_network_part = {
    .name = "network",
    .open = network_open,
    .collect = network_collect,
    .close = network_close,
};
