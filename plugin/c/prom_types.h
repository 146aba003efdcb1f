#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "include/waap/plugin.h"
#include "include/waap/prom/prom.h"

enum { PROM_N_SLOTS = 64 };

/* A series with its label values; never freed before its metric, so that it is found with no lock.
 */
struct prom_child {
    struct prom_child *next;
    struct waap_metric *series;
    char *values[]; /* one per key */
};

struct prom_metric {
    enum waap_type type;
    char *name;
    char *help;
    size_t n_keys;
    char **keys;
    double *bounds;
    size_t n_bounds;
    prom_histogram_buckets_t *buckets;
    struct waap_metric *series; /* of a metric without labels */
    _Atomic(struct prom_child *) slots[PROM_N_SLOTS];
    struct prom_collector *collector; /* NULL: registered nowhere */
    struct prom_metric *next;         /* in the collector */
};

struct prom_collector {
    char *name;
    bool is_process;
    char *limits_path, *stat_path; /* of the process; NULL: this one's */
    prom_collect_fn *collect;
    uint64_t round; /* in which it was last called, or registered */
    struct prom_metric *metrics;
    struct prom_collector_registry *registry;
    struct prom_collector *next;
};

struct prom_collector_registry {
    char *name;
    struct prom_collector *collectors;
    struct prom_collector_registry *next;
};

/* Guards who is registered where, and the buckets; never held while the application is called.
 * Recursive, as the calls here use one another. */
extern pthread_mutex_t waap_prom_lock;

/* Takes a metric out of its collector. */
void waap_prom_leave(struct prom_metric *metric);

/* Calls the collect functions of one registry, NULL: of all; not with the lock held. */
void waap_prom_collect(struct prom_collector_registry *only);

void waap_prom_put_number(FILE *out, double value);

/* The families of a process collector as text. */
void waap_prom_put_process(FILE *out, const struct prom_collector *collector);

int waap_prom_destroy(struct prom_metric *metric);
