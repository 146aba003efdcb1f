#include "collectors/container/finished.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"

enum { MAX_IMAGES = 256 };

void container_finished_finish(struct container_finished *finished) {
    for (size_t i = 0; i < finished->n_rows; i++) {
        free(finished->rows[i].image);
        labels_destroy(finished->rows[i].labels);
    }
    free(finished->rows);
    *finished = (struct container_finished){0};
}

static struct container_finished_row *find(const struct container_finished *finished,
                                           const char *image) {
    for (size_t i = 0; i < finished->n_rows; i++) {
        if (strcmp(finished->rows[i].image, image) == 0) {
            return &finished->rows[i];
        }
    }
    return NULL;
}

static struct container_finished_row *add(struct container_finished *finished, const char *image) {
    if (finished->n_rows == finished->cap_rows) {
        size_t cap = 2 * finished->cap_rows + 8;
        struct container_finished_row *rows = reallocarray(finished->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return NULL;
        }
        finished->rows = rows;
        finished->cap_rows = cap;
    }
    char *copy CLEANUP_FREE = strdup(image);
    struct labels *labels = labels_render("image", image);
    if (copy == NULL || labels == NULL) {
        labels_destroy(labels);
        return NULL;
    }
    struct container_finished_row *row = &finished->rows[finished->n_rows++];
    *row = (struct container_finished_row){.image = TAKE(copy), .labels = labels};
    return row;
}

void container_finished_count(struct container_finished *finished, const char *image,
                              const struct container_use *use, double left_cpu_seconds) {
    struct container_finished_row *row = find(finished, image);
    if (row == NULL && finished->n_rows >= MAX_IMAGES - 1) {
        image = "other";
        row = find(finished, image);
    }
    row = row != NULL ? row : add(finished, image);
    if (row != NULL) {
        row->n++;
        row->use.cpu_seconds += use->cpu_seconds;
        row->use.lifetime_seconds += use->lifetime_seconds > 0 ? use->lifetime_seconds : 0;
        row->use.joules += use->joules;
        row->left_cpu_seconds += left_cpu_seconds;
    }
}

void container_finished_add(const struct container_finished *finished,
                            const struct metric_desc *descs, bool energy, struct snapshot *out) {
    for (size_t i = 0; i < finished->n_rows; i++) {
        const struct container_finished_row *row = &finished->rows[i];
        snapshot_add(out, &descs[CONTAINER_FINISHED], row->labels, row->n);
        snapshot_add(out, &descs[CONTAINER_FINISHED_CPU], row->labels, row->use.cpu_seconds);
        snapshot_add(out, &descs[CONTAINER_FINISHED_LIFETIME], row->labels,
                     row->use.lifetime_seconds);
        if (energy) {
            snapshot_add(out, &descs[CONTAINER_FINISHED_ENERGY], row->labels, row->use.joules);
        }
    }
}
