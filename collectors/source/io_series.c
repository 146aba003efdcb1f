#include "collectors/source/io_series.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

#define KEEP_NS (60 * CLOCK_NS_PER_SEC)

static void forget(struct block_devices *devices) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        free(devices->rows[i].name);
    }
    devices->n_rows = 0;
    devices->generation++;
}

void block_devices_refresh(struct block_devices *devices, int64_t now_ns) {
    if (now_ns >= devices->forget_ns) {
        devices->forget_ns = now_ns + KEEP_NS;
        forget(devices);
    }
}

void block_devices_finish(struct block_devices *devices) {
    forget(devices);
    free(devices->rows);
    *devices = (struct block_devices){0};
}

/* /sys/dev/block/8:1 is a link to ../../devices/…/sda/sda1. The kernel writes ! for a slash. */
static char *look_up(const char *sysfs, uint32_t major, uint32_t minor) {
    struct buf text CLEANUP_BUF = {0};
    char target[PATH_MAX];
    buf_printf(&text, "%s/dev/block/%u:%u", sysfs, major, minor);
    ssize_t n = readlink(buf_str(&text), target, sizeof(target) - 1);
    buf_reset(&text);
    if (n > 0) {
        target[n] = '\0';
        const char *slash = strrchr(target, '/');
        buf_add_str(&text, slash != NULL ? slash + 1 : target);
    } else {
        buf_printf(&text, "%u:%u", major, minor);
    }
    char *name = buf_take(&text);
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '!' ? '/' : *c;
    }
    return name;
}

/* "sda", or "8:0" if `sysfs` does not know the device. Owned by `devices`. */
static const char *device_name(struct block_devices *devices, uint32_t major, uint32_t minor) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        if (devices->rows[i].major == major && devices->rows[i].minor == minor) {
            return devices->rows[i].name;
        }
    }
    char *name = look_up(devices->sysfs, major, minor);
    ARRAY_GROW(&devices->rows, &devices->cap_rows, devices->n_rows + 1);
    devices->rows[devices->n_rows++] =
        (struct block_device){.major = major, .minor = minor, .name = name};
    return name;
}

void io_series_finish(struct io_series *series) {
    for (size_t i = 0; i < series->n_rows; i++) {
        labels_destroy(series->rows[i].labels);
    }
    free(series->rows);
    *series = (struct io_series){0};
}

const struct labels *io_series_labels(struct io_series *series, const struct labels *base,
                                      const char *prefix, struct block_devices *devices,
                                      uint32_t major, uint32_t minor) {
    if (series->generation != devices->generation) {
        io_series_finish(series);
        series->generation = devices->generation;
    }
    for (size_t i = 0; i < series->n_rows; i++) {
        if (series->rows[i].major == major && series->rows[i].minor == minor) {
            return series->rows[i].labels;
        }
    }
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, prefix);
    buf_add_str(&text, device_name(devices, major, minor));
    struct labels *labels = labels_with(base, "device", buf_str(&text));
    ARRAY_GROW(&series->rows, &series->cap_rows, series->n_rows + 1);
    series->rows[series->n_rows++] =
        (struct io_series_row){.major = major, .minor = minor, .labels = labels};
    return labels;
}
