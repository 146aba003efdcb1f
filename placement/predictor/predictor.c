#include "placement/predictor/predictor.h"

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
