#include <stdlib.h>

#include "exporter/core/hash.h"
#include "exporter/push/store_private.h"

static uint64_t hash_pair(const struct push_store *store, const struct push_family *family,
                          const struct push_owner *owner) {
    return hash_mix(owner->hash ^ store->seed, family->number ^ store->seed);
}

static struct push_member *find(const struct push_store *store, const struct push_family *family,
                                const struct push_owner *owner) {
    uint64_t hash = hash_pair(store, family, owner);
    size_t cursor = 0;
    struct push_member *member;
    while ((member = hash_index_next(&store->members, hash, &cursor)) != NULL) {
        if (member->family == family && member->owner == owner) {
            return member;
        }
    }
    return NULL;
}

bool push_member_is(const struct push_store *store, const struct push_family *family,
                    const struct push_owner *owner) {
    return find(store, family, owner) != NULL;
}

struct push_member *push_member_join(struct push_store *store, const struct push_family *family,
                                     const struct push_owner *owner) {
    struct push_member *member = find(store, family, owner);
    if (member == NULL) {
        member = hash_index_reserve(&store->members, 1) ? calloc(1, sizeof(*member)) : NULL;
        if (member == NULL) {
            return NULL;
        }
        *member = (struct push_member){
            .hash = hash_pair(store, family, owner), .family = family, .owner = owner};
        hash_index_add(&store->members, member->hash, member);
    }
    member->n_series++;
    return member;
}

void push_member_leave(struct push_store *store, struct push_member *member) {
    if (member != NULL && --member->n_series == 0) {
        hash_index_remove(&store->members, member->hash, member);
        free(member);
    }
}
