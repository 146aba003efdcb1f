#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

const struct push_share *push_share_find(const struct push_store *store, const char *peer) {
    for (const struct push_link *i = store->shares.next; i != &store->shares; i = i->next) {
        const struct push_share *share = CONTAINER_OF(i, struct push_share, link);
        if (strcmp(share->peer, peer) == 0) {
            return share;
        }
    }
    return NULL;
}

static struct push_share *create(struct push_store *store, const char *peer) {
    size_t size = strlen(peer) + 1;
    struct push_share *share = calloc(1, sizeof(*share) + size);
    if (share != NULL) {
        memcpy(share->peer, peer, size);
        push_link_append(&store->shares, &share->link);
    }
    return share;
}

void push_share_leave(struct push_owner *owner) {
    struct push_share *share = TAKE(owner->share);
    if (share == NULL) {
        return;
    }
    share->n_series -= owner->n_series;
    share->text_size -= owner->text_size;
    share->table_size -= owner->table_size;
    if (--share->n_owners == 0) {
        push_link_remove(&share->link);
        free(share);
    }
}

int push_share_join(struct push_store *store, struct push_owner *owner, const char *peer) {
    struct push_share *share = (struct push_share *)push_share_find(store, peer);
    share = share != NULL ? share : create(store, peer);
    if (share == NULL) {
        return -ENOMEM;
    }
    share->n_owners++;
    share->n_series += owner->n_series;
    share->text_size += owner->text_size;
    share->table_size += owner->table_size;
    push_share_leave(owner);
    owner->share = share;
    return 0;
}

static bool names_plugin(const struct push_series *series) {
    return label_find(series->own, series->n_labels, "plugin") != NULL;
}

void push_share_add(struct push_store *store, const struct push_series *series) {
    struct push_owner *owner = series->owner;
    store->text_size += series->text_size;
    owner->text_size += series->text_size;
    owner->n_series++;
    owner->n_naming += names_plugin(series) ? 1 : 0;
    if (owner->share != NULL) {
        owner->share->text_size += series->text_size;
        owner->share->n_series++;
    }
}

void push_share_remove(struct push_store *store, const struct push_series *series) {
    struct push_owner *owner = series->owner;
    store->text_size -= series->text_size;
    owner->text_size -= series->text_size;
    owner->n_series--;
    owner->n_naming -= names_plugin(series) ? 1 : 0;
    if (owner->share != NULL) {
        owner->share->text_size -= series->text_size;
        owner->share->n_series--;
    }
}

void push_share_pay(struct push_owner *owner, size_t entry_size) {
    size_t n_bytes = push_table_cost(entry_size);
    owner->table_size += n_bytes;
    if (owner->share != NULL) {
        owner->share->table_size += n_bytes;
    }
}

void push_share_repay(struct push_owner *owner, size_t entry_size) {
    size_t n_bytes = push_table_cost(entry_size);
    owner->table_size -= n_bytes;
    if (owner->share != NULL) {
        owner->share->table_size -= n_bytes;
    }
}

size_t push_share_count(const struct push_store *store, const struct push_share *share) {
    size_t n = 0;
    for (const struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        const struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        bool stays = owner->n_refs > 0 || owner->n_series > 0 || owner->push_seconds > 0;
        n += owner->share == share && stays ? 1 : 0;
    }
    return n;
}

/* ---- limits ---- */

int push_check_room(const struct push_store *store, const struct push_owner *owner, size_t n_series,
                    size_t n_more, size_t n_less, const char *name, struct error *err) {
    const struct push_limits *limits = &store->config.limits;
    const struct push_share *share = owner->share;
    if (owner->n_series + n_more - n_less > limits->max_owner_series) {
        return error_set(err, -E2BIG,
                         "%s: %s would have more than %zu series (push.max-series-per-plugin)",
                         name, owner->name, limits->max_owner_series);
    }
    if (share != NULL && share->n_series + n_more - n_less > limits->max_peer_series) {
        return error_set(err, -E2BIG,
                         "%s: %s would have more than %zu series by all its names "
                         "(push.max-series-per-peer)",
                         name, share->peer, limits->max_peer_series);
    }
    if (n_series > limits->max_series) {
        return error_set(err, -E2BIG, "%s: there would be more than %zu series (push.max-series)",
                         name, limits->max_series);
    }
    return 0;
}

int push_check_text_sizes(const struct push_store *store, const struct push_share *share,
                          size_t text_size, size_t peer_text_size, const char *name,
                          struct error *err) {
    const struct push_limits *limits = &store->config.limits;
    if (share != NULL && peer_text_size > limits->max_peer_text) {
        return error_set(err, -E2BIG,
                         "%s: the series of %s would take more than %zu bytes on a page "
                         "(push.max-text-size-per-peer)",
                         name, share->peer, limits->max_peer_text);
    }
    if (text_size > limits->max_text) {
        return error_set(err, -E2BIG,
                         "%s: all series would take more than %zu bytes on a page "
                         "(push.max-text-size)",
                         name, limits->max_text);
    }
    return 0;
}

/* One peer may have as much of the table as of the series. */
static size_t max_peer_table(const struct push_store *store) {
    const struct push_limits *limits = &store->config.limits;
    if (limits->max_peer_series >= limits->max_series) {
        return SIZE_MAX;
    }
    double part = (double)limits->max_peer_series / (double)limits->max_series;
    return (size_t)((double)store->config.table_bytes * part);
}

int push_check_table(const struct push_store *store, const struct push_owner *owner, size_t n_more,
                     size_t n_less, const char *name, struct error *err) {
    const struct push_share *share = owner->share;
    size_t max = max_peer_table(store);
    if (share == NULL || share->table_size + n_more - n_less <= max) {
        return 0;
    }
    return error_set(err, -E2BIG,
                     "%s: what %s pushes would take more than %zu bytes of the table, its part of "
                     "push.table-size as push.max-series-per-peer is of push.max-series",
                     name, share->peer, max);
}

bool push_is_replacing(const struct push_store *store) {
    return store->applying != NULL && store->applying->batch->mode != PUSH_MERGE;
}

int push_check_text(const struct push_store *store, const struct push_series *series,
                    const char *name, struct error *err) {
    const struct push_share *share = series->owner->share;
    size_t part = push_is_replacing(store) ? 2 : 1;
    size_t peer_text_size = share != NULL ? share->text_size + series->text_size : 0;
    return push_check_text_sizes(store, share, (store->text_size + series->text_size) / part,
                                 peer_text_size / part, name, err);
}
