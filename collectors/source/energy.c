#include "collectors/source/energy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

struct shown {
    char *name;
    struct energy_row row;
};

struct energy {
    pthread_mutex_t lock; /* of all below */
    struct shown *meters;
    size_t n_meters;
    uint64_t last; /* number that was given to a meter */
};

struct energy_meter {
    struct energy *energy;
    uint64_t number;
};

static void row_finish(struct energy_row *row) {
    for (size_t i = 0; i < row->n_shares; i++) {
        free((char *)row->shares[i].id);
    }
    free(row->shares);
    *row = (struct energy_row){0};
}

static void row_set_shares(struct energy_row *row, const struct energy_share *shares, size_t n) {
    row->shares = n > 0 ? mem_zalloc(n, sizeof(*shares)) : NULL;
    row->n_shares = n;
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
    if (energy == NULL) {
        return;
    }
    for (size_t i = 0; i < energy->n_meters; i++) {
        free(energy->meters[i].name);
        row_finish(&energy->meters[i].row);
    }
    free(energy->meters);
    pthread_mutex_destroy(&energy->lock);
    free(energy);
}

static struct shown *find_name(struct energy *energy, const char *name) {
    for (size_t i = 0; i < energy->n_meters; i++) {
        if (strcmp(energy->meters[i].name, name) == 0) {
            return &energy->meters[i];
        }
    }
    return NULL;
}

static struct shown *find_number(struct energy *energy, uint64_t number) {
    for (size_t i = 0; i < energy->n_meters; i++) {
        if (energy->meters[i].row.meter == number) {
            return &energy->meters[i];
        }
    }
    return NULL;
}

/* Takes the name's place, or makes one. */
static struct shown *take_place(struct energy *energy, const char *name) {
    struct shown *shown = find_name(energy, name);
    if (shown != NULL) {
        row_finish(&shown->row);
        return shown;
    }
    energy->meters = mem_resize(energy->meters, energy->n_meters + 1, sizeof(*energy->meters));
    shown = &energy->meters[energy->n_meters++];
    *shown = (struct shown){.name = mem_strdup(name)};
    return shown;
}

struct energy_meter *energy_meter_open(struct energy *energy, const char *name) {
    if (energy == NULL) {
        return NULL;
    }
    struct energy_meter *meter = mem_zalloc(1, sizeof(*meter));
    meter->energy = energy;
    pthread_mutex_lock(&energy->lock);
    meter->number = ++energy->last;
    take_place(energy, name)->row.meter = meter->number;
    pthread_mutex_unlock(&energy->lock);
    return meter;
}

void energy_meter_close(struct energy_meter *meter) {
    if (meter == NULL) {
        return;
    }
    struct energy *energy = meter->energy;
    pthread_mutex_lock(&energy->lock);
    struct shown *shown = find_number(energy, meter->number);
    if (shown != NULL) {
        free(shown->name);
        row_finish(&shown->row);
        *shown = energy->meters[--energy->n_meters];
    }
    pthread_mutex_unlock(&energy->lock);
    free(meter);
}

void energy_meter_put(struct energy_meter *meter, const struct energy_reading *reading,
                      const struct energy_share *shares, size_t n_shares) {
    if (meter == NULL) {
        return;
    }
    struct energy *energy = meter->energy;
    pthread_mutex_lock(&energy->lock);
    struct shown *shown = find_number(energy, meter->number);
    if (shown != NULL) {
        row_finish(&shown->row);
        shown->row = (struct energy_row){.meter = meter->number, .reading = *reading};
        row_set_shares(&shown->row, shares, n_shares);
    }
    pthread_mutex_unlock(&energy->lock);
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
        const struct energy_row *row = &energy->meters[list->n_rows].row;
        list->rows[list->n_rows] =
            (struct energy_row){.meter = row->meter, .reading = row->reading};
        row_set_shares(&list->rows[list->n_rows], row->shares, row->n_shares);
    }
    pthread_mutex_unlock(&energy->lock);
}
