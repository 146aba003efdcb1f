#include "collectors/host/devices.h"
#include "collectors/host/part.h"
#include "collectors/source/procfs.h"

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

static int network_line(void *context, size_t number, const char *text) {
    const struct host_reading *reading = context;
    if (number <= 2) {
        return 0; /* two lines of headings */
    }
    struct net_dev_line line;
    int r = net_dev_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct host_device *device = host_devices_see(reading->state, line.device);
    device->n_values = NET_DEV_FIELDS;
    for (size_t i = 0; i < NET_DEV_FIELDS; i++) {
        device->values[i] = (double)line.fields[i];
    }
    return 0;
}

static void network_open(void *state, const struct collector_env *env) {
    host_devices_init(state, host_network_metrics, env->settings,
                      "collector.host.network.device-exclude");
}

const struct host_part host_network_part = {
    .state_size = sizeof(struct host_devices),
    .files = (const char *const[]){"1/net/dev", NULL},
    .line = network_line,
    .open = network_open,
    .collect = host_devices_collect,
    .close = host_devices_finish,
};
