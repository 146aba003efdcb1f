#include "exporter/core/container_of.h"
#include "exporter/push/claim.h"
#include "exporter/push/store_private.h"

/* ---- what goes ---- */

bool push_owner_has_expired(const struct push_store *store, const struct push_owner *owner,
                            int64_t now_ms) {
    bool stays = owner->group && (owner->push_seconds > 0 || owner->n_series > 0);
    int64_t ttl_ms = store->config.ttl_ms;
    return owner->n_refs == 0 && !stays && ttl_ms > 0 && now_ms - owner->seen_ms > ttl_ms;
}

static bool has_expired(const struct push_series *series, bool owner_gone, int64_t now_ms) {
    if (series->ttl_ms == PUSH_TTL_DEFAULT) {
        return owner_gone;
    }
    return series->ttl_ms > 0 && now_ms - series->updated_ms > series->ttl_ms;
}

/* Whether it had been pushed while nobody was there whose labels these are. */
static bool seems_plugins(const struct push_store *store, const struct push_owner *group,
                          const struct push_series *series) {
    const struct label *labels = series != NULL ? series->own : NULL;
    size_t n_labels = series != NULL ? series->n_labels : 0;
    return push_claim_check_labels(store, group, group->name, labels, n_labels, NULL) < 0;
}

/* ---- a pass ---- */

static void begin_pass(struct push_store *store) {
    struct push_expiry *expiry = &store->expiry;
    push_cursor_begin(store, &expiry->at);
    expiry->has_begun = true;
    expiry->has_claims = expiry->claims != store->claims;
    expiry->claims = store->claims;
}

/* Whether any series of the owner may have to go. */
static bool begin_owner(struct push_store *store, struct push_owner *owner, int64_t now_ms) {
    struct push_expiry *expiry = &store->expiry;
    if (owner->n_refs > 0) {
        owner->seen_ms = now_ms;
    }
    bool is_checked = owner->group && expiry->has_claims;
    expiry->at.series = owner->series.next;
    expiry->is_evicted = is_checked && seems_plugins(store, owner, NULL);
    return expiry->is_evicted || owner->n_with_ttl > 0 || (is_checked && owner->n_naming > 0) ||
           push_owner_has_expired(store, owner, now_ms);
}

/* Looks at one series. */
static void expire_next(struct push_store *store, struct push_owner *owner, int64_t now_ms) {
    struct push_expiry *expiry = &store->expiry;
    struct push_series *series = CONTAINER_OF(expiry->at.series, struct push_series, of_owner);
    bool is_evicted = expiry->is_evicted ||
                      (owner->group && expiry->has_claims && seems_plugins(store, owner, series));
    bool has_ended = has_expired(series, push_owner_has_expired(store, owner, now_ms), now_ms);
    expiry->at.series = expiry->at.series->next;
    if (is_evicted || has_ended) {
        push_series_destroy(store, series);
        store->expired += has_ended ? 1 : 0;
    }
}

static void leave_owner(struct push_cursor *at, const struct push_owner *owner) {
    at->owner = owner->link.next;
    at->series = NULL;
}

static void end_owner(struct push_store *store, struct push_owner *owner) {
    struct push_expiry *expiry = &store->expiry;
    leave_owner(&expiry->at, owner);
    owner->lingers &= !push_owner_has_expired(store, owner, push_store_now_ms(store));
    if (expiry->is_evicted) {
        push_owner_clear(store, owner);
    } else if (owner->group && owner->n_series == 0) {
        push_owner_forget_pushes(store, owner);
    } else {
        push_owner_drop_if_idle(store, owner);
    }
}

bool push_store_expire(struct push_store *store, size_t n) {
    struct push_expiry *expiry = &store->expiry;
    struct push_cursor *at = &expiry->at;
    int64_t now_ms = push_store_now_ms(store);
    push_store_lock(store);
    if (!expiry->has_begun) {
        begin_pass(store);
    }
    for (; n > 0 && at->owner != &store->owners; n--) {
        struct push_owner *owner = CONTAINER_OF(at->owner, struct push_owner, link);
        if (at->series == NULL && !begin_owner(store, owner, now_ms)) {
            leave_owner(at, owner);
        } else if (at->series != &owner->series) {
            expire_next(store, owner, now_ms);
        } else {
            end_owner(store, owner);
        }
    }
    expiry->has_begun = at->owner != &store->owners;
    if (!expiry->has_begun) {
        push_cursor_end(store, at);
    }
    push_store_unlock(store);
    return expiry->has_begun;
}
