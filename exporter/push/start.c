#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/hash.h"
#include "exporter/push/store_private.h"

/* How long one that has left, or that was there before us, may take to come back; and how many of
 * those that have left are waited for. */
enum { RETURN_MS = 60 * 1000, MAX_LEFT = 4096 };

uint64_t push_start_number(const char *start) {
    /* The seed is constant: numbers are kept over restarts of the daemon. */
    uint64_t number = hash_seeded(UINT64_C(0x5741415053544152), start, strlen(start));
    return number != 0 ? number : 1;
}

static struct push_start *find(const struct push_store *store, uint64_t number) {
    size_t cursor = 0;
    return hash_index_next(&store->starts, number, &cursor);
}

static void forget(struct push_store *store, struct push_start *start) {
    hash_index_remove(&store->starts, start->number, start);
    free(start);
}

static void forget_oldest_left(struct push_store *store) {
    struct push_start *oldest = CONTAINER_OF(store->starts_left.next, struct push_start, left);
    push_link_remove(&oldest->left);
    store->n_starts_left--;
    forget(store, oldest);
}

static bool is_awaited(const struct push_start *start, int64_t now_ms) {
    return now_ms - start->left_ms < RETURN_MS;
}

static void forget_long_gone(struct push_store *store, int64_t now_ms) {
    while (store->n_starts_left > 0 &&
           !is_awaited(CONTAINER_OF(store->starts_left.next, struct push_start, left), now_ms)) {
        forget_oldest_left(store);
    }
}

void push_store_start_enter(struct push_store *store, uint64_t number) {
    struct push_start *start = find(store, number);
    if (start == NULL) {
        start = hash_index_reserve(&store->starts, 1) ? calloc(1, sizeof(*start)) : NULL;
        if (start == NULL) {
            return; /* as if it had left long ago */
        }
        start->number = number;
        hash_index_add(&store->starts, number, start);
    } else if (start->n_sessions == 0) {
        push_link_remove(&start->left);
        store->n_starts_left--;
    }
    start->n_sessions++;
}

void push_store_start_leave(struct push_store *store, uint64_t number) {
    struct push_start *start = find(store, number);
    if (start == NULL || --start->n_sessions > 0) {
        return;
    }
    int64_t now_ms = push_store_now_ms(store);
    start->left_ms = now_ms;
    push_link_append(&store->starts_left, &start->left);
    store->n_starts_left++;
    forget_long_gone(store, now_ms);
    if (store->n_starts_left > MAX_LEFT) {
        forget_oldest_left(store);
    }
}

bool push_start_is_connected(const struct push_store *store, uint64_t number) {
    const struct push_start *start = find(store, number);
    return start != NULL && start->n_sessions > 0;
}

bool push_start_may_return(const struct push_store *store, uint64_t number, int64_t now_ms) {
    const struct push_start *start = find(store, number);
    return now_ms - store->created_ms < RETURN_MS ||
           (start != NULL && (start->n_sessions > 0 || is_awaited(start, now_ms)));
}

void push_starts_finish(struct push_store *store) {
    for (size_t i = 0; i < store->starts.n_slots; i++) {
        free(store->starts.slots[i].item);
    }
    hash_index_finish(&store->starts);
}
