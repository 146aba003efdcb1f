#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "prom_types.h"

/* Buckets on the heap are kept in a list, so that those shared by two histograms, which libprom
 * frees twice, are freed once. */
struct node {
    prom_histogram_buckets_t buckets; /* first, so that its address is the node's */
    struct node *next;
    double bounds[];
};

static struct node *nodes; /* guarded by waap_prom_lock */

static const double default_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
static prom_histogram_buckets_t default_buckets = {
    .count = sizeof(default_bounds) / sizeof(default_bounds[0]), .upper_bounds = default_bounds};
prom_histogram_buckets_t *prom_histogram_default_buckets = &default_buckets;

static struct node *node_create(size_t count) {
    if (count == 0 || count > 10000) {
        return NULL;
    }
    struct node *node = calloc(1, sizeof(*node) + count * sizeof(node->bounds[0]));
    if (node == NULL) {
        return NULL;
    }
    node->buckets.count = (int)count;
    node->buckets.upper_bounds = node->bounds;
    pthread_mutex_lock(&waap_prom_lock);
    node->next = nodes;
    nodes = node;
    pthread_mutex_unlock(&waap_prom_lock);
    return node;
}

prom_histogram_buckets_t *prom_histogram_buckets_new(size_t count, double bucket, ...) {
    struct node *node = node_create(count);
    if (node == NULL) {
        return NULL;
    }
    va_list more;
    va_start(more, bucket);
    node->bounds[0] = bucket;
    for (size_t i = 1; i < count; i++) {
        node->bounds[i] = va_arg(more, double);
    }
    va_end(more);
    return &node->buckets;
}

prom_histogram_buckets_t *prom_histogram_buckets_linear(double start, double width, size_t count) {
    struct node *node = width > 0 ? node_create(count) : NULL;
    for (size_t i = 0; node != NULL && i < count; i++) {
        node->bounds[i] = start + (double)i * width;
    }
    return node != NULL ? &node->buckets : NULL;
}

prom_histogram_buckets_t *prom_histogram_buckets_exponential(double start, double factor,
                                                             size_t count) {
    struct node *node = start > 0 && factor > 1 ? node_create(count) : NULL;
    double bound = start;
    for (size_t i = 0; node != NULL && i < count; i++) {
        node->bounds[i] = bound;
        bound *= factor;
    }
    return node != NULL ? &node->buckets : NULL;
}

int prom_histogram_buckets_destroy(prom_histogram_buckets_t *self) {
    pthread_mutex_lock(&waap_prom_lock);
    struct node **at = &nodes;
    while (*at != NULL && &(*at)->buckets != self) {
        at = &(*at)->next;
    }
    struct node *found = *at;
    if (found != NULL) {
        *at = found->next;
    }
    pthread_mutex_unlock(&waap_prom_lock);
    free(found);
    return self != NULL && found == NULL;
}

size_t prom_histogram_buckets_count(prom_histogram_buckets_t *self) {
    return self != NULL ? (size_t)self->count : 0;
}
