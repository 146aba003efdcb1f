#include "collectors/source/energy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

struct energy {
    pthread_mutex_t lock; /* of all below, and of the meters */
    struct energy_meter **meters;
    size_t n_meters;
    size_t cap_meters;
    uint64_t last; /* number that was given to a meter */
};

struct energy_meter {
    struct energy *energy;
    char *name;
    struct energy_row row;
};

static void row_finish(struct energy_row *row) {
    for (size_t i = 0; i < row->n_shares; i++) {
        free((char *)row->shares[i].id);
    }
    free(row->shares);
    *row = (struct energy_row){0};
}

static void row_init(struct energy_row *row, uint64_t meter, const struct energy_reading *reading,
                     const struct energy_share *shares, size_t n) {
    *row = (struct energy_row){.meter = meter, .reading = *reading, .n_shares = n};
    row->shares = n > 0 ? mem_zalloc(n, sizeof(*shares)) : NULL;
    for (size_t i = 0; i < n; i++) {
        row->shares[i] =
            (struct energy_share){.id = mem_strdup(shares[i].id), .ratio = shares[i].ratio};
    }
}

struct energy *energy_create(void) {
    struct energy *energy = mem_zalloc(1, sizeof(*energy));
    pthread_mutex_init(&energy->lock, NULL);
    return energy;
}

void energy_destroy(struct energy *energy) {
    if (energy != NULL) {
        free(energy->meters);
        pthread_mutex_destroy(&energy->lock);
    }
    free(energy);
}

struct energy_meter *energy_meter_open(struct energy *energy, const char *name) {
    if (energy == NULL) {
        return NULL;
    }
    struct energy_meter *meter = mem_zalloc(1, sizeof(*meter));
    meter->energy = energy;
    meter->name = mem_strdup(name);
    pthread_mutex_lock(&energy->lock);
    meter->row.meter = ++energy->last;
    size_t i = 0;
    while (i < energy->n_meters && strcmp(energy->meters[i]->name, name) != 0) {
        i++;
    }
    if (i == energy->n_meters) {
        ARRAY_GROW(&energy->meters, &energy->cap_meters, ++energy->n_meters);
    }
    energy->meters[i] = meter;
    pthread_mutex_unlock(&energy->lock);
    return meter;
}

void energy_meter_close(struct energy_meter *meter) {
    if (meter == NULL) {
        return;
    }
    struct energy *energy = meter->energy;
    pthread_mutex_lock(&energy->lock);
    for (size_t i = 0; i < energy->n_meters; i++) {
        if (energy->meters[i] == meter) {
            energy->meters[i] = energy->meters[--energy->n_meters];
        }
    }
    pthread_mutex_unlock(&energy->lock);
    row_finish(&meter->row);
    free(meter->name);
    free(meter);
}

void energy_meter_put(struct energy_meter *meter, const struct energy_reading *reading,
                      const struct energy_share *shares, size_t n_shares) {
    if (meter == NULL) {
        return;
    }
    pthread_mutex_lock(&meter->energy->lock);
    uint64_t number = meter->row.meter;
    row_finish(&meter->row);
    row_init(&meter->row, number, reading, shares, n_shares);
    pthread_mutex_unlock(&meter->energy->lock);
}

void energy_list_finish(struct energy_list *list) {
    for (size_t i = 0; i < list->n_rows; i++) {
        row_finish(&list->rows[i]);
    }
    free(list->rows);
    *list = (struct energy_list){0};
}

void energy_read(struct energy *energy, struct energy_list *list) {
    energy_list_finish(list);
    if (energy == NULL) {
        return;
    }
    pthread_mutex_lock(&energy->lock);
    if (energy->n_meters > 0) {
        list->rows = mem_zalloc(energy->n_meters, sizeof(*list->rows));
    }
    for (; list->n_rows < energy->n_meters; list->n_rows++) {
        const struct energy_row *row = &energy->meters[list->n_rows]->row;
        row_init(&list->rows[list->n_rows], row->meter, &row->reading, row->shares, row->n_shares);
    }
    pthread_mutex_unlock(&energy->lock);
}
