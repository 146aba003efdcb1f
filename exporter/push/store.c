#include "exporter/push/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/push/private.h"

/* ---- time ---- */

/* The coarse clock is the cheapest; it is right within 4 ms. */
static int64_t system_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / CLOCK_NS_PER_MS;
}

int64_t push_store_now_ms(const struct push_store *store) {
    return store->config.now_ms();
}

/* ---- the lock ---- */

/* Readers yield it to the loop thread, see read.c. */
void push_store_lock(struct push_store *store) {
    atomic_fetch_add(&store->n_waiting, 1);
    pthread_mutex_lock(&store->lock);
    atomic_fetch_sub(&store->n_waiting, 1);
}

void push_store_unlock(struct push_store *store) {
    pthread_mutex_unlock(&store->lock);
}

/* ---- hashes ---- */

uint64_t push_hash_text(const struct push_store *store, const char *text) {
    return hash_seeded(store->seed, text, strlen(text));
}

uint64_t push_hash_labels(const struct push_store *store, const struct label *labels, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t name = hash_seeded(store->seed, labels[i].name, strlen(labels[i].name));
        sum += hash_seeded(name, labels[i].value, strlen(labels[i].value));
    }
    return sum;
}

/* ---- memory that a snapshot may refer to ---- */

/* The oldest collection that may still be rendered. */
static uint64_t oldest_in_use(const struct push_store *store) {
    uint64_t oldest = UINT64_MAX;
    for (const struct push_link *i = store->readers.next; i != &store->readers; i = i->next) {
        uint64_t collection = CONTAINER_OF(i, struct push_reader, link)->collection;
        oldest = collection != 0 && collection < oldest ? collection : oldest;
    }
    return oldest;
}

static void free_deferred(struct push_store *store, uint64_t oldest) {
    size_t n_kept = 0;
    for (size_t i = 0; i < store->n_deferred; i++) {
        if (store->deferred[i].collected < oldest) {
            free(store->deferred[i].memory);
        } else {
            store->deferred[n_kept++] = store->deferred[i];
        }
    }
    store->n_deferred = n_kept;
    if (n_kept == 0) {
        free(TAKE(store->deferred));
        store->cap_deferred = 0;
    }
}

void push_defer_free(struct push_store *store, void *memory, uint64_t collected) {
    if (memory == NULL || collected == 0 || collected < oldest_in_use(store)) {
        free(memory);
        return;
    }
    ARRAY_GROW(&store->deferred, &store->cap_deferred, store->n_deferred + 1);
    store->deferred[store->n_deferred++] = (struct push_deferred){memory, collected};
}

void push_store_free_deferred(struct push_store *store) {
    free_deferred(store, oldest_in_use(store));
}

/* ---- snapshots ---- */

struct push_reader *push_reader_create(struct push_store *store) {
    struct push_reader *reader = mem_zalloc(1, sizeof(*reader));
    reader->store = store;
    pthread_mutex_lock(&store->lock);
    push_link_append(&store->readers, &reader->link);
    pthread_mutex_unlock(&store->lock);
    return reader;
}

void push_reader_destroy(struct push_reader *reader) {
    if (reader == NULL) {
        return;
    }
    pthread_mutex_lock(&reader->store->lock);
    push_link_remove(&reader->link);
    push_store_free_deferred(reader->store);
    pthread_mutex_unlock(&reader->store->lock);
    free(reader);
}

/* ---- life ---- */

void push_store_configure(struct push_store *store, const struct push_store_config *config) {
    store->config.limits = config->limits;
    store->config.ttl_ms = config->ttl_ms;
}

const struct push_limits *push_store_limits(const struct push_store *store) {
    return &store->config.limits;
}

int push_store_create(const struct push_store_config *config, struct push_store **ret_store,
                      struct error *err) {
    struct push_store *store = mem_zalloc(1, sizeof(*store));
    push_reserve_names(store, config->collectors);
    store->plan = push_plan_create(store);
    push_store_configure(store, config);
    store->config.table_bytes = config->table_bytes;
    store->config.now_ms = config->now_ms != NULL ? config->now_ms : system_now_ms;
    store->seed = hash_seed();
    store->batch = 1; /* 0: of series that no batch has named */
    pthread_mutex_init(&store->lock, NULL);
    push_link_init(&store->families);
    push_link_init(&store->readers);
    push_link_init(&store->owners);
    push_link_init(&store->shares);
    int r = push_table_create(config->table_path, config->table_bytes, &store->table, err);
    if (r < 0) {
        push_store_destroy(store);
        return r;
    }
    *ret_store = store;
    return 0;
}

void push_store_destroy(struct push_store *store) {
    if (store == NULL) {
        return;
    }
    struct push_table *table = TAKE(store->table); /* nothing is removed from it */
    while (store->owners.next != &store->owners) {
        push_owner_destroy(store, CONTAINER_OF(store->owners.next, struct push_owner, link));
    }
    push_table_destroy(table);
    hash_index_finish(&store->names);
    hash_index_finish(&store->series);
    hash_index_finish(&store->by_identity);
    hash_index_finish(&store->by_plugin);
    for (size_t i = 0; i < store->starts.n_slots; i++) {
        free(store->starts.slots[i].item);
    }
    hash_index_finish(&store->starts);
    free_deferred(store, UINT64_MAX);
    push_plan_destroy(store->plan);
    free(store->reserved);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

int push_store_publish(struct push_store *store, struct error *err) {
    return push_table_publish(store->table, err);
}

bool push_store_copy_some(const struct push_store *store, struct buf *out, size_t n) {
    size_t len = 0;
    const char *pages = push_table_pages(store->table, &len);
    size_t left = len - out->len;
    buf_add(out, pages + out->len, n < left ? n : left);
    return out->len < len;
}

/* ---- counters ---- */

enum reason { CONFLICT, FORBIDDEN, INVALID, LIMIT, MEMORY, RATE, RESERVED, ROOM, UNREADABLE };

static const char *const reasons[PUSH_REASONS] = {
    [CONFLICT] = "conflict", [FORBIDDEN] = "forbidden", [INVALID] = "invalid",
    [LIMIT] = "limit",       [MEMORY] = "memory",       [RATE] = "rate",
    [RESERVED] = "reserved", [ROOM] = "room",           [UNREADABLE] = "unreadable",
};

static enum reason find_reason(int code) {
    static const struct {
        int code;
        enum reason reason;
    } codes[] = {
        {E2BIG, LIMIT},
        {EACCES, FORBIDDEN},
        {EAGAIN, RATE},
        {EBADMSG, UNREADABLE},
        {EBUSY, RATE},
        {EEXIST, CONFLICT},
        {EFBIG, LIMIT},
        {ENOMEM, MEMORY},
        {ENOSPC, ROOM},
        {EPERM, RESERVED},
        {EPROTONOSUPPORT, UNREADABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].code == -code) {
            return codes[i].reason;
        }
    }
    return INVALID;
}

const char *push_reason(int code) {
    return reasons[find_reason(code)];
}

void push_store_count_refused(struct push_store *store, int code) {
    store->stats.refused[find_reason(code)].n++;
}

struct push_stats push_store_stats(const struct push_store *store) {
    struct push_stats stats = store->stats;
    stats.n_owners = store->by_identity.n_items;
    stats.table_bytes = push_table_used(store->table);
    stats.in_file = push_table_is_file(store->table);
    for (size_t i = 0; i < PUSH_REASONS; i++) {
        stats.refused[i].reason = reasons[i];
    }
    return stats;
}
