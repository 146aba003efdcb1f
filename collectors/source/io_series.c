#include "collectors/source/io_series.h"

#include <stdlib.h>

#include "exporter/core/buf.h"

void io_series_finish(struct io_series *series) {
    for (size_t i = 0; i < series->n_rows; i++) {
        labels_destroy(series->rows[i].labels);
    }
    free(series->rows);
    *series = (struct io_series){0};
}

static struct labels *render(const struct labels *base, const char *prefix, const char *name) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, prefix);
    buf_add_str(&text, name);
    return text.failed ? NULL : labels_with(base, "device", buf_str(&text));
}

static struct io_series_row *add(struct io_series *series) {
    if (series->n_rows == series->cap_rows) {
        size_t cap = 2 * series->cap_rows + 2;
        struct io_series_row *rows = reallocarray(series->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return NULL;
        }
        series->rows = rows;
        series->cap_rows = cap;
    }
    return &series->rows[series->n_rows];
}

const struct labels *io_series_labels(struct io_series *series, const struct labels *base,
                                      const char *prefix, struct block_devices *devices,
                                      const char *sysfs, uint32_t major, uint32_t minor) {
    for (size_t i = 0; i < series->n_rows; i++) {
        if (series->rows[i].major == major && series->rows[i].minor == minor) {
            return series->rows[i].labels;
        }
    }
    const char *name = block_devices_name(devices, sysfs, major, minor);
    struct io_series_row *row = name != NULL ? add(series) : NULL;
    struct labels *labels = row != NULL ? render(base, prefix, name) : NULL;
    if (labels != NULL) {
        *row = (struct io_series_row){.major = major, .minor = minor, .labels = labels};
        series->n_rows++;
    }
    return labels;
}
