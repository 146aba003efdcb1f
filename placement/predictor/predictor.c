#include "placement/predictor/predictor.h"

#include <inttypes.h>
#include <string.h>

const char *const feature_names[N_FEATURES] = {
    [FEATURE_CONV_LAYERS] = "conv_layers",
    [FEATURE_LOAD] = "device_load_percent",
    [FEATURE_READ_BYTES] = "disk_io_read_bytes",
    [FEATURE_WRITE_BYTES] = "disk_io_write_bytes",
    [FEATURE_DISK_USAGE] = "device_disk_usage_percent",
    [FEATURE_FILTERS] = "filter_details",
    [FEATURE_FC_LAYERS] = "fully_conn_layers",
    [FEATURE_DEVICE] = "device",
    [FEATURE_POOL_LAYERS] = "pool_layers",
    [FEATURE_PARAMETERS] = "total_parameters",
};

enum device device_of(const char *name) {
    if (strcasestr(name, "raspberry") != NULL) {
        return DEVICE_RASPBERRY;
    }
    return strcasestr(name, "jetson") != NULL ? DEVICE_JETSON : DEVICE_OTHER;
}

const char run_header[] =
    "conv_layers,device,device_disk_usage_percent,device_load_percent,disk_io_read_bytes,"
    "disk_io_write_bytes,execution_number,execution_time,filter_details,fully_conn_layers,"
    "model_name,pool_layers,total_parameters\n";

void run_write(const struct run *run, struct buf *out) {
    buf_printf(out,
               "%" PRIu64 ",%s,%.1f,%.1f,%" PRId64 ",%" PRId64 ",%u,%.6f,%" PRIu64 ",%" PRIu64
               ",%s,%" PRIu64 ",%" PRIu64 "\n",
               run->conv_layers, run->device, run->disk_percent, run->load_percent, run->read_bytes,
               run->write_bytes, run->number, run->seconds, run->filters, run->fc_layers,
               run->model, run->pool_layers, run->parameters);
}
