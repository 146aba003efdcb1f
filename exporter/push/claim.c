#include "exporter/push/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

#define NOTE ".peer"

/* How claims begin, the weakest first. A user can name a cgroup after a container, see push_peer.c;
 * the container itself is more. */
static const char *const kinds[] = {"http", "unverified", "pywaggle", "ended", "uid", "container"};

enum { HTTP = 0, ENDED = 3, CONTAINER = 5 };

/* One that we do not know is worth as little as the weakest. */
static size_t rank_of(const char *who) {
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t len = strlen(kinds[i]);
        if (strncmp(who, kinds[i], len) == 0 && (who[len] == '\0' || who[len] == ' ')) {
            return i;
        }
    }
    return 0;
}

/* An address proves nothing: those of HTTP are one. */
static bool is_same(const char *a, const char *b) {
    return strcmp(a, b) == 0 || (rank_of(a) == HTTP && rank_of(b) == HTTP);
}

const char *push_claimant(const struct push_store *store, const struct push_owner *owner) {
    return push_store_note(store, owner, NOTE);
}

const char *push_claim_share(const struct push_owner *owner) {
    return owner->share != NULL ? owner->share->peer : NULL;
}

uint64_t push_claim_number(const struct push_owner *owner) {
    return owner->claim;
}

/* What nobody has claimed is worth less than any claim, a group less than any plugin. */
static size_t rank_of_owner(const struct push_store *store, const struct push_owner *owner) {
    const char *who = push_claimant(store, owner);
    return owner->group ? 0 : who == NULL ? 1 : 2 + rank_of(who);
}

bool push_claim_outranks(const struct push_store *store, const struct push_owner *owner,
                         const struct push_owner *other) {
    return rank_of_owner(store, owner) > rank_of_owner(store, other);
}

/* ---- shares of the room ---- */

/* Whether one peer can be as many claimants of that kind as it likes: users of a container that has
 * ended, subordinate users. */
static bool is_one_of_many(const char *who) {
    const char *uid = strstr(who, "uid ");
    return rank_of(who) == ENDED ||
           (uid != NULL && strtoul(uid + strlen("uid "), NULL, 10) >= PUSH_CLAIM_SUBORDINATE_UIDS);
}

/* What a claimant is called among those who share the room. */
static void name_share(const char *who, const char *container, const char *pod,
                       const char *namespace, struct buf *out) {
    size_t rank = rank_of(who);
    buf_add_str(out, is_one_of_many(who) ? "ended or subordinate users" : who);
    const char *const parts[] = {container, pod, namespace};
    for (size_t i = 0; rank == CONTAINER && i < ARRAY_LEN(parts); i++) {
        buf_printf(out, " %s", parts[i] != NULL ? parts[i] : "");
    }
}

int push_claim_restore(struct push_store *store, struct push_owner *owner) {
    const char *who = push_claimant(store, owner);
    struct buf name CLEANUP_BUF = {0};
    if (who == NULL) {
        return 0;
    }
    const struct label *labels = owner->labels;
    size_t n = owner->n_labels;
    name_share(who, label_find(labels, n, "container"), label_find(labels, n, "pod"),
               label_find(labels, n, "namespace"), &name);
    return name.failed ? -ENOMEM : push_share_join(store, owner, buf_str(&name));
}

int push_claim_check(const struct push_store *store, const struct push_identity *identity,
                     const char *who, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    name_share(who, identity->container, identity->pod, identity->namespace, &name);
    const struct push_share *share = push_share_find(store, buf_str(&name));
    size_t max = store->config.limits.max_peer_owners;
    if (share == NULL || share->n_owners < max || push_store_find_owner(store, identity) != NULL ||
        push_share_count(store, share) < max) {
        return 0;
    }
    return error_set(err, -E2BIG,
                     "%zu plugins and groups of %s are there already (push.max-plugins-per-peer)",
                     max, share->peer);
}

/* ---- groups that have a plugin's labels ---- */

static bool covers(const struct push_owner *group, const struct label *labels, size_t n_labels,
                   const struct push_owner *plugin) {
    for (size_t i = 0; i < plugin->n_labels; i++) {
        const char *value = label_find(group->labels, group->n_labels, plugin->labels[i].name);
        value = value != NULL ? value : label_find(labels, n_labels, plugin->labels[i].name);
        if (value == NULL || strcmp(value, plugin->labels[i].value) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether it is a plugin's, which is there, and which we know by more than HTTP. */
static bool is_known(const struct push_store *store, const struct push_owner *owner) {
    const char *who = push_claimant(store, owner);
    bool in_use = owner->n_refs > 0 || owner->n_series > 0;
    return !owner->group && in_use && who != NULL && rank_of(who) > HTTP;
}

int push_claim_check_labels(const struct push_store *store, const struct push_owner *owner,
                            const char *name, const struct label *labels, size_t n_labels,
                            struct error *err) {
    const char *named =
        owner->plugin != NULL ? owner->plugin : label_find(labels, n_labels, "plugin");
    if (!owner->group || named == NULL) {
        return 0;
    }
    uint64_t hash = push_hash_text(store, named);
    size_t cursor = 0;
    const struct push_owner *plugin;
    while ((plugin = hash_index_next(&store->by_plugin, hash, &cursor)) != NULL) {
        if (covers(owner, labels, n_labels, plugin) && is_known(store, plugin)) {
            return error_set(err, -EACCES, "%s: has the labels of %s, which is another's (%s)",
                             name, plugin->name, push_claimant(store, plugin));
        }
    }
    return 0;
}

/* ---- claims ---- */

static int claim(struct push_store *store, struct push_owner *owner, const char *who, bool may_take,
                 struct error *err) {
    const char *theirs = push_claimant(store, owner);
    if (theirs != NULL && is_same(theirs, who)) {
        return 0;
    }
    bool in_use = owner->n_refs > 1 || owner->n_series > 0;
    bool stronger = theirs != NULL && rank_of(who) > rank_of(theirs);
    if (theirs != NULL && in_use && !stronger && !may_take) {
        return error_set(err, -EACCES, "%s is another's (%s), not yours (%s)", owner->name, theirs,
                         who);
    }
    if (stronger) { /* first, or a crash would leave them as the rightful owner's */
        push_store_remove_of(store, owner, NULL, NULL);
    }
    push_share_leave(owner); /* whose part of the table may be full */
    int r = push_store_put_note(store, owner, NOTE, who, err);
    if (r < 0) {
        return push_claim_restore(store, owner) < 0 ? -ENOMEM : r;
    }
    owner->claim++;
    owner->allowance = (struct push_allowance){0}; /* what another owes is not this one's */
    r = push_claim_restore(store, owner);
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

int push_claim(struct push_store *store, struct push_owner *owner, const char *who, bool may_take,
               struct error *err) {
    int r = push_claim_check_labels(store, owner, owner->name, NULL, 0, err);
    r = r == 0 ? claim(store, owner, who, may_take, err) : r;
    store->claims += r == 0 && is_known(store, owner) ? 1 : 0;
    return r;
}
