#include "exporter/push_claim.h"

#include <errno.h>
#include <string.h>

#define NOTE ".peer"

const char *push_claimant(const struct push_store *store, const struct push_owner *owner) {
    return push_store_note(store, owner, NOTE);
}

int push_claim(struct push_store *store, struct push_owner *owner, const char *who, bool may_take,
               struct error *err) {
    const char *theirs = push_claimant(store, owner);
    if (theirs != NULL && strcmp(theirs, who) == 0) {
        return 0;
    }
    struct push_owner_view view = push_owner_view(store, owner);
    bool in_use = view.n_refs > 1 || view.n_series > 0;
    if (theirs != NULL && in_use && !may_take) {
        return error_set(err, -EACCES, "%s is another's (%s), not yours (%s)", view.name, theirs,
                         who);
    }
    return push_store_put_note(store, owner, NOTE, who, err);
}
