#define _GNU_SOURCE 1
#include "include/waap/prom/prom.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prom_types.h"

pthread_mutex_t waap_prom_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
prom_collector_registry_t *PROM_COLLECTOR_REGISTRY_DEFAULT;

/* Held while collect functions are called, so that a collector outlives its call; taken before
 * waap_prom_lock. Recursive, as a collect function may destroy collectors. */
static pthread_mutex_t calls_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uint64_t n_rounds; /* of collect functions; guarded by both locks, one is enough to read */
static struct prom_collector_registry *registries;
static struct prom_collector_registry *active; /* what promhttp serves, NULL: the default */

/* In each list an item appears once at most. */
#define LIST_REMOVE(list, item)                                                                    \
    do {                                                                                           \
        __typeof__(list) *at = &(list);                                                            \
        while (*at != NULL && *at != (item)) {                                                     \
            at = &(*at)->next;                                                                     \
        }                                                                                          \
        *at = *at != NULL ? (item)->next : NULL;                                                   \
    } while (0)

/* ---- collectors ---- */

prom_collector_t *prom_collector_new(const char *name) {
    struct prom_collector *collector = name != NULL ? calloc(1, sizeof(*collector)) : NULL;
    if (collector == NULL) {
        return NULL;
    }
    collector->name = strdup(name);
    if (collector->name == NULL) {
        free(collector);
        return NULL;
    }
    return collector;
}

prom_collector_t *prom_collector_process_new(const char *limits_path, const char *stat_path) {
    struct prom_collector *collector = prom_collector_new("process");
    if (collector == NULL) {
        return NULL;
    }
    collector->is_process = true;
    collector->limits_path = limits_path != NULL ? strdup(limits_path) : NULL;
    collector->stat_path = stat_path != NULL ? strdup(stat_path) : NULL;
    return collector;
}

void waap_prom_leave(struct prom_metric *metric) {
    pthread_mutex_lock(&waap_prom_lock);
    if (metric->collector != NULL) {
        LIST_REMOVE(metric->collector->metrics, metric);
    }
    metric->collector = NULL;
    pthread_mutex_unlock(&waap_prom_lock);
}

int prom_collector_destroy(prom_collector_t *self) {
    if (self == NULL) {
        return 0;
    }
    pthread_mutex_lock(&calls_lock);
    pthread_mutex_lock(&waap_prom_lock);
    if (self->registry != NULL) {
        LIST_REMOVE(self->registry->collectors, self);
    }
    while (self->metrics != NULL) {
        waap_prom_destroy(self->metrics);
    }
    pthread_mutex_unlock(&waap_prom_lock);
    pthread_mutex_unlock(&calls_lock);
    free(self->name);
    free(self->limits_path);
    free(self->stat_path);
    free(self);
    return 0;
}

void prom_collector_free_generic(void *gen) {
    prom_collector_destroy(gen);
}

int prom_collector_destroy_generic(void *gen) {
    return prom_collector_destroy(gen);
}

int prom_collector_add_metric(prom_collector_t *self, prom_metric_t *metric) {
    if (self == NULL || metric == NULL) {
        return 1;
    }
    pthread_mutex_lock(&waap_prom_lock);
    bool taken = metric->collector != NULL;
    struct prom_metric **end = &self->metrics;
    for (; *end != NULL; end = &(*end)->next) {
        taken |= strcmp((*end)->name, metric->name) == 0;
    }
    if (!taken) {
        *end = metric;
        metric->next = NULL;
        metric->collector = self;
    }
    pthread_mutex_unlock(&waap_prom_lock);
    return taken;
}

int prom_collector_set_collect_fn(prom_collector_t *self, prom_collect_fn *fn) {
    if (self == NULL) {
        return 1;
    }
    pthread_mutex_lock(&waap_prom_lock);
    self->collect = fn;
    pthread_mutex_unlock(&waap_prom_lock);
    return 0;
}

/* ---- collecting ---- */

/* The next collector that a round has not called, of one registry or of all (NULL). It is looked
 * for again after each call: a collect function may register and destroy what it likes. */
static struct prom_collector *next_to_call(const struct prom_collector_registry *only,
                                           uint64_t round) {
    for (struct prom_collector_registry *r = registries; r != NULL; r = r->next) {
        for (struct prom_collector *c = r->collectors; c != NULL; c = c->next) {
            if ((only == NULL || r == only) && c->collect != NULL && c->round < round) {
                return c;
            }
        }
    }
    return NULL;
}

static bool call_next(const struct prom_collector_registry *only, uint64_t round) {
    pthread_mutex_lock(&waap_prom_lock);
    struct prom_collector *collector = next_to_call(only, round);
    prom_collect_fn *collect = collector != NULL ? collector->collect : NULL;
    if (collector != NULL) {
        collector->round = round;
    }
    pthread_mutex_unlock(&waap_prom_lock);
    if (collector != NULL) {
        collect(collector);
    }
    return collector != NULL;
}

void waap_prom_collect(struct prom_collector_registry *only) {
    pthread_mutex_lock(&calls_lock);
    pthread_mutex_lock(&waap_prom_lock);
    uint64_t round = ++n_rounds;
    pthread_mutex_unlock(&waap_prom_lock);
    while (call_next(only, round)) {
    }
    pthread_mutex_unlock(&calls_lock);
}

static void collect_all(void *unused) {
    (void)unused;
    waap_prom_collect(NULL);
}

static void fork_prepare(void) {
    pthread_mutex_lock(&waap_prom_lock);
}

static void fork_parent(void) {
    pthread_mutex_unlock(&waap_prom_lock);
}

/* A recursive lock knows its owner by number, and the child's thread has another: it cannot unlock
 * what it has locked, except in the eyes of a sanitizer, and makes a new lock. */
static void fork_child(void) {
    pthread_mutex_unlock(&waap_prom_lock);
    waap_prom_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    calls_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

/* Before anybody can hold the lock: a thread may fork while another makes the first metric. No call
 * of the library below is made with the lock held, so fork() may take its locks in any order. */
__attribute__((constructor)) static void prom_load(void) {
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    waap_before_send(collect_all, NULL);
}

/* ---- registries ---- */

prom_collector_registry_t *prom_collector_registry_new(const char *name) {
    struct prom_collector_registry *registry = calloc(1, sizeof(*registry));
    if (registry == NULL) {
        return NULL;
    }
    registry->name = strdup(name != NULL ? name : "");
    if (registry->name == NULL) {
        free(registry);
        return NULL;
    }
    pthread_mutex_lock(&waap_prom_lock);
    registry->next = registries;
    registries = registry;
    pthread_mutex_unlock(&waap_prom_lock);
    return registry;
}

int prom_collector_registry_destroy(prom_collector_registry_t *self) {
    if (self == NULL) {
        return 0;
    }
    pthread_mutex_lock(&calls_lock);
    pthread_mutex_lock(&waap_prom_lock);
    LIST_REMOVE(registries, self);
    while (self->collectors != NULL) {
        prom_collector_destroy(self->collectors);
    }
    PROM_COLLECTOR_REGISTRY_DEFAULT =
        PROM_COLLECTOR_REGISTRY_DEFAULT == self ? NULL : PROM_COLLECTOR_REGISTRY_DEFAULT;
    active = active == self ? NULL : active;
    pthread_mutex_unlock(&waap_prom_lock);
    pthread_mutex_unlock(&calls_lock);
    free(self->name);
    free(self);
    return 0;
}

int prom_collector_registry_default_init(void) {
    pthread_mutex_lock(&waap_prom_lock);
    if (PROM_COLLECTOR_REGISTRY_DEFAULT == NULL) {
        PROM_COLLECTOR_REGISTRY_DEFAULT = prom_collector_registry_new("default");
        prom_collector_registry_enable_process_metrics(PROM_COLLECTOR_REGISTRY_DEFAULT);
    }
    bool good = PROM_COLLECTOR_REGISTRY_DEFAULT != NULL;
    pthread_mutex_unlock(&waap_prom_lock);
    return !good;
}

int prom_collector_registry_enable_process_metrics(prom_collector_registry_t *self) {
    struct prom_collector *process = self != NULL ? prom_collector_process_new(NULL, NULL) : NULL;
    if (prom_collector_registry_register_collector(self, process) != 0) {
        prom_collector_destroy(process); /* it has one already */
    }
    return process == NULL;
}

int prom_collector_registry_register_collector(prom_collector_registry_t *self,
                                               prom_collector_t *collector) {
    if (self == NULL || collector == NULL) {
        return 1;
    }
    pthread_mutex_lock(&waap_prom_lock);
    bool taken = collector->registry != NULL;
    struct prom_collector **end = &self->collectors;
    for (; *end != NULL; end = &(*end)->next) {
        taken |= strcmp((*end)->name, collector->name) == 0;
    }
    if (!taken) {
        *end = collector;
        collector->registry = self;
        collector->round = n_rounds; /* or a round in which others are made might not end */
    }
    pthread_mutex_unlock(&waap_prom_lock);
    return taken;
}

/* The collector of what is registered without one. */
static struct prom_collector *default_collector(void) {
    if (prom_collector_registry_default_init() != 0) {
        return NULL;
    }
    struct prom_collector *c = PROM_COLLECTOR_REGISTRY_DEFAULT->collectors;
    while (c != NULL && strcmp(c->name, "default") != 0) {
        c = c->next;
    }
    if (c == NULL) {
        c = prom_collector_new("default");
        prom_collector_registry_register_collector(PROM_COLLECTOR_REGISTRY_DEFAULT, c);
    }
    return c;
}

int prom_collector_registry_register_metric(prom_metric_t *metric) {
    pthread_mutex_lock(&waap_prom_lock);
    int r = prom_collector_add_metric(default_collector(), metric);
    pthread_mutex_unlock(&waap_prom_lock);
    return r;
}

prom_metric_t *prom_collector_registry_must_register_metric(prom_metric_t *metric) {
    if (prom_collector_registry_register_metric(metric) != 0) {
        fprintf(stderr, "prom: cannot register %s\n", metric != NULL ? metric->name : "no metric");
        exit(1);
    }
    return metric;
}

int prom_collector_registry_validate_metric_name(prom_collector_registry_t *self,
                                                 const char *metric_name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    (void)self;
    if (metric_name == NULL || metric_name[0] == '\0' || strchr(letters, metric_name[0]) == NULL) {
        return 1;
    }
    for (const char *at = metric_name; *at != '\0'; at++) {
        if (strchr(letters, *at) == NULL && (*at < '0' || *at > '9')) {
            return 1;
        }
    }
    return 0;
}

void promhttp_set_active_collector_registry(prom_collector_registry_t *active_registry) {
    pthread_mutex_lock(&waap_prom_lock);
    active = active_registry;
    pthread_mutex_unlock(&waap_prom_lock);
}

prom_collector_registry_t *promhttp_get_active_collector_registry(void) {
    pthread_mutex_lock(&waap_prom_lock);
    struct prom_collector_registry *registry =
        active != NULL ? active : PROM_COLLECTOR_REGISTRY_DEFAULT;
    pthread_mutex_unlock(&waap_prom_lock);
    return registry;
}
