#include "collectors/source/block_device.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/buf.h"

void block_devices_forget(struct block_devices *devices) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        free(devices->rows[i].name);
    }
    devices->n_rows = 0;
}

void block_devices_finish(struct block_devices *devices) {
    block_devices_forget(devices);
    free(devices->rows);
    *devices = (struct block_devices){0};
}

/* /sys/dev/block/8:1 is a link to ../../devices/…/sda/sda1. The kernel writes ! for a slash. */
static char *look_up(const char *sysfs, uint32_t major, uint32_t minor) {
    struct buf text CLEANUP_BUF = {0};
    char target[PATH_MAX];
    buf_printf(&text, "%s/dev/block/%u:%u", sysfs, major, minor);
    ssize_t n = text.failed ? -1 : readlink(buf_str(&text), target, sizeof(target) - 1);
    buf_reset(&text);
    if (n > 0) {
        target[n] = '\0';
        const char *slash = strrchr(target, '/');
        buf_add_str(&text, slash != NULL ? slash + 1 : target);
    } else {
        buf_printf(&text, "%u:%u", major, minor);
    }
    char *name = buf_take(&text);
    for (char *c = name; c != NULL && *c != '\0'; c++) {
        *c = *c == '!' ? '/' : *c;
    }
    return name;
}

static struct block_device *add(struct block_devices *devices) {
    if (devices->n_rows == devices->cap_rows) {
        size_t cap = 2 * devices->cap_rows + 8;
        struct block_device *rows = reallocarray(devices->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return NULL;
        }
        devices->rows = rows;
        devices->cap_rows = cap;
    }
    return &devices->rows[devices->n_rows];
}

const char *block_devices_name(struct block_devices *devices, const char *sysfs, uint32_t major,
                               uint32_t minor) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        if (devices->rows[i].major == major && devices->rows[i].minor == minor) {
            return devices->rows[i].name;
        }
    }
    struct block_device *device = add(devices);
    char *name = device != NULL ? look_up(sysfs, major, minor) : NULL;
    if (name == NULL) {
        return NULL;
    }
    *device = (struct block_device){.major = major, .minor = minor, .name = name};
    devices->n_rows++;
    return name;
}
