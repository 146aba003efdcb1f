#include "collectors/cgroup/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_DEVICES = 1024 };

void cgroup_stats_reset(struct cgroup_stats *stats) {
    for (size_t i = 0; i < CGROUP_N_VALUES; i++) {
        stats->values[i] = NAN;
    }
    stats->n_devices = 0;
}

void cgroup_stats_finish(struct cgroup_stats *stats) {
    free(stats->devices);
    *stats = (struct cgroup_stats){0};
}

static struct cgroup_io *add_device(struct cgroup_stats *stats) {
    if (stats->n_devices == MAX_DEVICES) {
        return NULL;
    }
    if (stats->n_devices == stats->cap_devices) {
        size_t cap = 2 * stats->cap_devices + 8;
        struct cgroup_io *devices = reallocarray(stats->devices, cap, sizeof(*devices));
        if (devices == NULL) {
            return NULL;
        }
        stats->devices = devices;
        stats->cap_devices = cap;
    }
    return &stats->devices[stats->n_devices++];
}

struct cgroup_io *cgroup_stats_device(struct cgroup_stats *stats, uint32_t major, uint32_t minor) {
    for (size_t i = 0; i < stats->n_devices; i++) {
        if (stats->devices[i].major == major && stats->devices[i].minor == minor) {
            return &stats->devices[i];
        }
    }
    struct cgroup_io *device = add_device(stats);
    if (device != NULL) {
        device->major = major;
        device->minor = minor;
        for (size_t i = 0; i < CGROUP_IO_N_VALUES; i++) {
            device->values[i] = NAN;
        }
    }
    return device;
}

double cgroup_stats_working_set(const struct cgroup_stats *stats) {
    double set = stats->values[CGROUP_MEMORY_CURRENT] - stats->values[CGROUP_MEMORY_INACTIVE_FILE];
    return set < 0 ? 0 : set; /* the two files are not read at the same moment */
}
