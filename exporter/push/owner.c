#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/net/network.h"
#include "exporter/push/private.h"

/* Owners, notes, claims, and the shares of peers. */

enum {
    NAMED_LABELS = 5,
    OWNER_COST = 1 << 10, /* of an owner in memory, beside its entry */

    /* Words of an owner's entry. */
    WORD_PUSH = 0,
    WORD_FAILURE,
    WORD_CLAIM,   /* 0: unclaimed */
    WORD_ADDRESS, /* four */
    N_WORDS = WORD_ADDRESS + 4,
};

/* ---- shares ---- */

static struct push_share *find_share(const struct push_store *store, const char *peer) {
    for (struct push_link *i = store->shares.next; i != &store->shares; i = i->next) {
        struct push_share *share = CONTAINER_OF(i, struct push_share, link);
        if (strcmp(share->peer, peer) == 0) {
            return share;
        }
    }
    return NULL;
}

static struct push_share *create_share(struct push_store *store, const char *peer) {
    size_t size = strlen(peer) + 1;
    struct push_share *share = mem_zalloc(1, sizeof(*share) + size);
    memcpy(share->peer, peer, size);
    push_link_append(&store->shares, &share->link);
    return share;
}

struct push_share *push_share_ref(struct push_share *share) {
    if (share != NULL) {
        share->n_refs++;
    }
    return share;
}

void push_share_unref(struct push_share *share) {
    if (share != NULL && --share->n_refs == 0) {
        push_link_remove(&share->link);
        free(share);
    }
}

void push_charge(struct push_store *store, struct push_owner *owner, ptrdiff_t n) {
    store->cost += (size_t)n;
    owner->cost += (size_t)n;
    if (owner->share != NULL) {
        owner->share->cost += (size_t)n;
    }
}

int push_check_room(const struct push_store *store, ptrdiff_t n_more, size_t reserve,
                    const char *name, struct error *err) {
    size_t max = store->config.table_bytes - reserve;
    if ((ptrdiff_t)store->cost + n_more <= (ptrdiff_t)max) {
        return 0;
    }
    return error_set(err, -ENOSPC,
                     "%s: no room: all that is pushed would take more than %zu bytes "
                     "(push.table-size)",
                     name, max);
}

/* ---- identity ---- */

static int compare_labels(const void *a, const void *b) {
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* All labels of an identity, sorted. */
static struct label *gather_labels(const struct push_identity *identity, size_t *ret_n) {
    const struct label named[NAMED_LABELS] = {
        {"container", identity->container},
        {"job", identity->job},
        {"namespace", identity->namespace},
        {"plugin", identity->plugin},
        {"pod", identity->pod},
    };
    struct label *labels = mem_zalloc(NAMED_LABELS + identity->n_labels, sizeof(*labels));
    size_t n = 0;
    for (size_t i = 0; i < NAMED_LABELS; i++) {
        if (named[i].value != NULL && named[i].value[0] != '\0') {
            labels[n++] = named[i];
        }
    }
    for (size_t i = 0; i < identity->n_labels; i++) {
        if (identity->labels[i].value[0] != '\0') {
            labels[n++] = identity->labels[i];
        }
    }
    qsort(labels, n, sizeof(*labels), compare_labels);
    *ret_n = n;
    return labels;
}

static struct push_owner *find(const struct push_store *store, bool group,
                               const struct label *labels, size_t n) {
    uint64_t hash = push_hash_labels(store, labels, n);
    size_t cursor = 0;
    struct push_owner *owner;
    while ((owner = hash_index_next(&store->by_identity, hash, &cursor)) != NULL) {
        if (owner->group == group && owner->n_labels == n &&
            push_labels_equal(owner->labels, labels, n)) {
            return owner;
        }
    }
    return NULL;
}

struct push_owner *push_store_find_owner(const struct push_store *store,
                                         const struct push_identity *identity) {
    size_t n = 0;
    struct label *labels CLEANUP_FREE = gather_labels(identity, &n);
    return find(store, identity->group, labels, n);
}

/* ---- creating ---- */

/* For messages: "plugin a, container b". */
static char *name_owner(const struct push_owner *owner) {
    struct buf text = {0};
    buf_add_str(&text, owner->group ? "group" : "plugin ");
    buf_add_str(&text, owner->group ? "" : owner->plugin);
    for (size_t i = 0; i < owner->n_labels; i++) {
        const struct label *label = &owner->labels[i];
        if (owner->group) {
            buf_printf(&text, " %s=%s", label->name, label->value);
        } else if (label->value != owner->plugin) {
            buf_printf(&text, ", %s %s", label->name, label->value);
        }
    }
    return buf_take(&text);
}

static void free_owner(struct push_store *store, struct push_owner *owner) {
    push_defer_free(store, owner->rendered, owner->collected);
    free(owner->name);
    free(owner);
}

static struct push_owner *allocate(const struct push_store *store, bool group,
                                   const struct label *labels, size_t n) {
    size_t labels_size = n * sizeof(struct label);
    struct push_owner *owner =
        mem_zalloc(1, sizeof(*owner) + labels_size + push_labels_size(labels, n));
    owner->group = group;
    owner->n_labels = n;
    push_copy_labels(owner->labels, (char *)(owner->labels + n), labels, n);
    owner->plugin = label_find(owner->labels, n, "plugin");
    owner->hash = push_hash_labels(store, labels, n);
    owner->name = name_owner(owner);
    owner->rendered = push_labels_render(owner, NULL, 0);
    push_link_init(&owner->series);
    return owner;
}

static size_t owner_cost(const struct push_owner *owner) {
    return OWNER_COST + push_table_cost(owner->entry->size);
}

/* The longest silent of the plugins that only have notes and the groups whose pushes were all
 * refused; of that share, or of all (NULL). */
static struct push_owner *find_idle(const struct push_store *store,
                                    const struct push_share *share) {
    struct push_owner *idle = NULL;
    for (struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        bool is_candidate = owner->n_refs == 0 && owner->n_series == 0 &&
                            owner->push_seconds == 0 && (share == NULL || owner->share == share);
        if (is_candidate && (idle == NULL || owner->seen_ms < idle->seen_ms)) {
            idle = owner;
        }
    }
    return idle;
}

static int make_room(struct push_store *store, const char *name, struct error *err) {
    int r;
    struct push_owner *idle;
    while ((r = push_check_room(store, 2 * OWNER_COST, 0, name, err)) < 0 &&
           (idle = find_idle(store, NULL)) != NULL) {
        push_owner_destroy(store, idle);
    }
    return r;
}

static int add_entry(struct push_store *store, struct push_owner *owner, struct error *err) {
    struct push_entry_spec spec = {
        .type = PUSH_ENTRY_OWNER,
        .flags = owner->group ? PUSH_OWNER_GROUP : 0,
        .n_words = N_WORDS,
        .key = {{owner->labels + owner->n_labels,
                 push_labels_size(owner->labels, owner->n_labels)}},
    };
    int r = push_table_add(store->table, &spec, &owner->entry, err);
    if (r == 0) {
        push_table_commit(store->table, owner->entry);
    }
    return r;
}

static int create(struct push_store *store, bool group, const struct label *labels, size_t n,
                  struct push_owner **ret_owner, struct error *err) {
    struct push_owner *owner = allocate(store, group, labels, n);
    int r = add_entry(store, owner, err);
    if (r < 0) {
        free_owner(store, owner);
        return r;
    }
    owner->number = ++store->number;
    owner->seen_ms = push_store_now_ms(store);
    push_charge(store, owner, (ptrdiff_t)owner_cost(owner));
    hash_index_add(&store->by_identity, owner->hash, owner);
    if (!owner->group) {
        hash_index_add(&store->by_plugin, push_hash_text(store, owner->plugin), owner);
    }
    push_link_append(&store->owners, &owner->link);
    *ret_owner = owner;
    return 0;
}

static int create_checked(struct push_store *store, const struct push_identity *identity,
                          const struct label *labels, size_t n, struct push_owner **ret_owner,
                          struct error *err) {
    int r = push_check_identity(identity, labels, n, err);
    r = r == 0 ? make_room(store, identity->group ? "group" : identity->plugin, err) : r;
    return r == 0 ? create(store, identity->group, labels, n, ret_owner, err) : r;
}

int push_store_owner(struct push_store *store, const struct push_identity *identity,
                     struct push_owner **ret_owner, struct error *err) {
    size_t n = 0;
    struct label *labels CLEANUP_FREE = gather_labels(identity, &n);
    struct push_owner *owner = find(store, identity->group, labels, n);
    if (owner == NULL) {
        push_store_lock(store);
        int r = create_checked(store, identity, labels, n, &owner, err);
        push_store_unlock(store);
        if (r != 0) {
            push_store_count_refused(store, r);
            return r;
        }
    }
    owner->n_refs++;
    owner->seen_ms = push_store_now_ms(store);
    *ret_owner = owner;
    return 0;
}

/* ---- life ---- */

int64_t push_allowance_wait_ns(struct push_allowance *allowance, size_t max, int64_t now_ns) {
    double most = (double)max;
    allowance->left += (double)(now_ns - allowance->counted_ns) / 1e9 * most;
    allowance->left = allowance->left < most ? allowance->left : most;
    allowance->counted_ns = now_ns;
    return allowance->left < 1 ? (int64_t)((1 - allowance->left) / most * 1e9) + 1 : 0;
}

void push_allowance_spend(struct push_allowance *allowance, size_t max, size_t n) {
    double max_debt = 10 * (double)max; /* ten seconds */
    allowance->left -= (double)n;
    allowance->left = allowance->left > -max_debt ? allowance->left : -max_debt;
}

struct push_allowance *push_owner_allowance(struct push_owner *owner) {
    return &owner->allowance;
}

static double claim_word(const struct push_owner *owner) {
    const struct push_claim *claim = &owner->claim;
    double uid = claim->has_uid ? 1 + (double)claim->uid : 0;
    return owner->is_claimed ? (1 + (double)claim->kind) * 0x1p33 + uid : 0;
}

void push_owner_save(struct push_store *store, const struct push_owner *owner) {
    double *words = push_entry_values(owner->entry);
    const uint32_t *address = owner->claim.address.s6_addr32;
    const struct push_change changes[N_WORDS] = {
        {&words[WORD_PUSH], owner->push_seconds},
        {&words[WORD_FAILURE], owner->push_failure_seconds},
        {&words[WORD_CLAIM], claim_word(owner)},
        {&words[WORD_ADDRESS], address[0]},
        {&words[WORD_ADDRESS + 1], address[1]},
        {&words[WORD_ADDRESS + 2], address[2]},
        {&words[WORD_ADDRESS + 3], address[3]},
    };
    push_table_write(store->table, changes, N_WORDS);
}

void push_owner_note_failure(struct push_store *store, struct push_owner *owner, double seconds) {
    if (owner->push_failure_seconds == seconds) {
        return;
    }
    push_store_lock(store);
    owner->push_failure_seconds = seconds;
    push_owner_save(store, owner);
    push_store_unlock(store);
}

void push_owner_linger(struct push_owner *owner) {
    owner->lingers = true;
}

static void free_notes(struct push_store *store, struct push_owner *owner) {
    while (owner->notes != NULL) {
        struct push_note *note = owner->notes;
        owner->notes = note->next;
        push_charge(store, owner, -(ptrdiff_t)push_table_cost(note->entry->size));
        push_table_remove(store->table, note->entry);
        free(note);
    }
}

static void remove_series(struct push_store *store, struct push_owner *owner) {
    while (owner->series.next != &owner->series) {
        push_series_destroy(store, CONTAINER_OF(owner->series.next, struct push_series, of_owner));
    }
}

void push_owner_destroy(struct push_store *store, struct push_owner *owner) {
    remove_series(store, owner);
    free_notes(store, owner);
    push_charge(store, owner, -(ptrdiff_t)owner_cost(owner));
    push_table_remove(store->table, owner->entry);
    push_share_unref(owner->share);
    hash_index_remove(&store->by_identity, owner->hash, owner);
    if (!owner->group) {
        hash_index_remove(&store->by_plugin, push_hash_text(store, owner->plugin), owner);
    }
    push_walks_skip(store, &owner->link);
    push_link_remove(&owner->link);
    store->stats.changes++;
    free_owner(store, owner);
}

void push_owner_drop_if_idle(struct push_store *store, struct push_owner *owner) {
    bool has_pushed = owner->push_seconds > 0 || owner->push_failure_seconds > 0;
    if (owner->n_refs == 0 && owner->n_series == 0 && !owner->lingers && owner->notes == NULL &&
        !has_pushed) {
        push_owner_destroy(store, owner);
    }
}

void push_owner_forget_pushes(struct push_store *store, struct push_owner *owner) {
    remove_series(store, owner);
    owner->push_seconds = 0;
    owner->push_failure_seconds = 0;
    push_owner_save(store, owner);
    push_owner_drop_if_idle(store, owner);
}

void push_owner_unref(struct push_store *store, struct push_owner *owner) {
    if (owner == NULL) {
        return;
    }
    owner->seen_ms = push_store_now_ms(store);
    if (--owner->n_refs == 0) {
        push_store_lock(store);
        push_owner_drop_if_idle(store, owner);
        push_store_unlock(store);
    }
}

void push_owner_clear(struct push_store *store, struct push_owner *owner) {
    free_notes(store, owner);
    owner->lingers = false;
    push_owner_forget_pushes(store, owner);
}

void push_store_remove_owner(struct push_store *store, struct push_owner *owner) {
    push_store_lock(store);
    push_owner_clear(store, owner);
    push_store_unlock(store);
}

/* ---- notes ---- */

static struct push_note **find_note(struct push_owner *owner, const char *key) {
    struct push_note **link = &owner->notes;
    while (*link != NULL && strcmp((*link)->key, key) != 0) {
        link = &(*link)->next;
    }
    return link;
}

const char *push_store_note(const struct push_store *store, const struct push_owner *owner,
                            const char *key) {
    (void)store;
    for (const struct push_note *note = owner->notes; note != NULL; note = note->next) {
        if (strcmp(note->key, key) == 0) {
            return note->text;
        }
    }
    return NULL;
}

void push_store_visit_notes(const struct push_store *store, const struct push_owner *owner,
                            void (*visit)(const char *key, const char *text, void *context),
                            void *context) {
    (void)store;
    for (const struct push_note *note = owner->notes; note != NULL; note = note->next) {
        visit(note->key, note->text, context);
    }
}

/* A peer cannot make notes at will, so they are not part of the limit of a peer. */
static int create_note(struct push_store *store, struct push_owner *owner, const char *key,
                       const char *text, struct push_note **ret_note, struct error *err) {
    size_t key_size = strlen(key) + 1;
    size_t text_size = strlen(text) + 1;
    struct push_entry_spec spec = {
        .type = PUSH_ENTRY_NOTE,
        .owner = push_table_id(store->table, owner->entry),
        .key = {{key, key_size}, {text, text_size}},
    };
    struct push_entry *entry = NULL;
    int r = push_check_room(store, (ptrdiff_t)push_table_size(&spec), 0, key, err);
    r = r == 0 ? push_table_add(store->table, &spec, &entry, err) : r;
    if (r != 0) {
        return r;
    }
    struct push_note *note = mem_alloc(sizeof(*note) + key_size + text_size);
    note->entry = entry;
    memcpy(note->key, key, key_size);
    note->text = memcpy(note->key + key_size, text, text_size);
    push_table_commit(store->table, entry);
    push_charge(store, owner, (ptrdiff_t)push_table_cost(entry->size));
    *ret_note = note;
    return 0;
}

int push_store_put_note(struct push_store *store, struct push_owner *owner, const char *key,
                        const char *text, struct error *err) {
    struct push_note *note = NULL;
    push_store_lock(store);
    int r = text != NULL ? create_note(store, owner, key, text, &note, err) : 0;
    if (r == 0) {
        store->stats.changes++;
        struct push_note **link = find_note(owner, key);
        struct push_note *old = *link;
        struct push_note *next = old != NULL ? old->next : NULL;
        if (note != NULL) {
            note->next = next;
        }
        *link = note != NULL ? note : next;
        if (old != NULL) {
            push_charge(store, owner, -(ptrdiff_t)push_table_cost(old->entry->size));
            push_table_remove(store->table, old->entry);
            free(old);
        }
    }
    push_store_unlock(store);
    return r;
}

/* ---- claims ---- */

void push_claim_format(const struct push_claim *claim, struct buf *out) {
    static const char *const kinds[] = {
        [PUSH_CLAIM_HTTP] = "http",         [PUSH_CLAIM_UNVERIFIED] = "unverified",
        [PUSH_CLAIM_PYWAGGLE] = "pywaggle", [PUSH_CLAIM_ENDED] = "ended uid",
        [PUSH_CLAIM_UID] = "uid",           [PUSH_CLAIM_CONTAINER] = "container",
    };
    char address[INET6_ADDRSTRLEN];
    buf_add_str(out, kinds[claim->kind]);
    if (claim->has_uid) {
        buf_printf(out, "%s %u", claim->kind == PUSH_CLAIM_HTTP ? " uid" : "",
                   (unsigned)claim->uid);
    } else if (network_is_loopback(&claim->address)) {
        buf_add_str(out, " localhost");
    } else if (!IN6_IS_ADDR_UNSPECIFIED(&claim->address)) {
        network_format(&claim->address, address);
        buf_printf(out, " %s", address);
    }
}

/* All clients of HTTP are one peer, as an address proves nothing. */
static bool is_same(const struct push_claim *a, const struct push_claim *b) {
    return a->kind == b->kind && (a->kind == PUSH_CLAIM_HTTP || a->uid == b->uid);
}

const struct push_claim *push_claim_of(const struct push_owner *owner) {
    return owner->is_claimed ? &owner->claim : NULL;
}

const char *push_claim_share(const struct push_owner *owner) {
    return owner->share != NULL ? owner->share->peer : NULL;
}

uint64_t push_claim_number(const struct push_owner *owner) {
    return owner->claim_number;
}

/* A group ranks below an unclaimed plugin, and that below a claimed one. */
static int rank_of(const struct push_owner *owner) {
    return owner->group ? 0 : !owner->is_claimed ? 1 : 2 + (int)owner->claim.kind;
}

bool push_claim_outranks(const struct push_owner *owner, const struct push_owner *other) {
    return rank_of(owner) > rank_of(other);
}

/* Whether one peer can appear as any number of such claimants: as users of a container that has
 * ended, or as subordinate users. */
static bool is_one_of_many(const struct push_claim *claim) {
    return claim->kind == PUSH_CLAIM_ENDED ||
           (claim->has_uid && claim->uid >= PUSH_CLAIM_SUBORDINATE_UIDS);
}

/* The name of a claimant, whichever plugin name it uses. */
static void name_peer(const struct push_claim *claim, const char *container, const char *pod,
                      const char *namespace, struct buf *out) {
    const char *const parts[] = {container, pod, namespace};
    if (is_one_of_many(claim)) {
        buf_add_str(out, "ended or subordinate users");
        return;
    }
    push_claim_format(claim, out);
    for (size_t i = 0; claim->kind == PUSH_CLAIM_CONTAINER && i < ARRAY_LEN(parts); i++) {
        buf_printf(out, " %s", parts[i] != NULL ? parts[i] : "");
    }
}

/* Moves what the owner has to the share of its claimant. */
static void join_share(struct push_store *store, struct push_owner *owner) {
    struct buf name CLEANUP_BUF = {0};
    const struct label *labels = owner->labels;
    size_t n = owner->n_labels;
    name_peer(&owner->claim, label_find(labels, n, "container"), label_find(labels, n, "pod"),
              label_find(labels, n, "namespace"), &name);
    struct push_share *share = find_share(store, buf_str(&name));
    share = push_share_ref(share != NULL ? share : create_share(store, buf_str(&name)));
    share->cost += owner->cost;
    if (owner->share != NULL) {
        owner->share->cost -= owner->cost;
        push_share_unref(owner->share);
    }
    owner->share = share;
}

int push_claim_check(struct push_store *store, const struct push_identity *identity,
                     const struct push_claim *claim, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    name_peer(claim, identity->container, identity->pod, identity->namespace, &name);
    size_t max = store->config.limits.max_peer_bytes;
    const struct push_share *share = find_share(store, buf_str(&name));
    if (share == NULL || share->cost + OWNER_COST <= max ||
        push_store_find_owner(store, identity) != NULL) {
        return 0;
    }
    struct push_owner *idle = find_idle(store, share);
    if (idle != NULL) {
        push_store_lock(store);
        push_owner_destroy(store, idle);
        push_store_unlock(store);
        return 0;
    }
    return error_set(err, -E2BIG,
                     "%s: no room for one more plugin or group: they would keep more than %zu "
                     "bytes (push.max-size-per-peer)",
                     share->peer, max);
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

/* Whether it is a plugin in use whose claimant is better known than HTTP. */
static bool is_known(const struct push_owner *owner) {
    bool in_use = owner->n_refs > 0 || owner->n_series > 0;
    return !owner->group && in_use && owner->is_claimed && owner->claim.kind > PUSH_CLAIM_HTTP;
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
        if (covers(owner, labels, n_labels, plugin) && is_known(plugin)) {
            struct buf claimant CLEANUP_BUF = {0};
            push_claim_format(&plugin->claim, &claimant);
            return error_set(err, -EACCES, "%s: has the labels of %s, which is owned by %s", name,
                             plugin->name, buf_str(&claimant));
        }
    }
    return 0;
}

static int refuse_claim(const struct push_owner *owner, const struct push_claim *claim,
                        struct error *err) {
    struct buf theirs CLEANUP_BUF = {0}, yours CLEANUP_BUF = {0};
    push_claim_format(&owner->claim, &theirs);
    push_claim_format(claim, &yours);
    return error_set(err, -EACCES, "%s is owned by %s; you are %s", owner->name, buf_str(&theirs),
                     buf_str(&yours));
}

static int claim_owner(struct push_store *store, struct push_owner *owner,
                       const struct push_claim *claim, bool may_take, struct error *err) {
    if (owner->is_claimed && is_same(&owner->claim, claim)) {
        return 0;
    }
    bool in_use = owner->n_refs > 1 || owner->n_series > 0 || owner->lingers;
    bool stronger = owner->is_claimed && claim->kind > owner->claim.kind;
    if (owner->is_claimed && in_use && !stronger && !may_take) {
        return refuse_claim(owner, claim, err);
    }
    push_store_lock(store);
    if (stronger) { /* first, or after a crash they would belong to the new claimant */
        remove_series(store, owner);
    }
    owner->is_claimed = true;
    owner->claim = *claim;
    owner->claim_number++;
    owner->allowance = (struct push_allowance){0}; /* debts of the former claimant end */
    store->stats.changes++;
    push_owner_save(store, owner);
    join_share(store, owner);
    push_store_unlock(store);
    return 0;
}

int push_claim(struct push_store *store, struct push_owner *owner, const struct push_claim *claim,
               bool may_take, struct error *err) {
    int r = push_claim_check_labels(store, owner, owner->name, NULL, 0, err);
    r = r == 0 ? claim_owner(store, owner, claim, may_take, err) : r;
    store->claims += r == 0 && is_known(owner) ? 1 : 0;
    return r;
}

/* ---- restoring ---- */

/* Words are not covered by the entry's check, and times must be valid as dates. */
static double take_time(double seconds) {
    return seconds > 0 && seconds < 1e11 ? seconds : 0;
}

static bool take_claim(const double *words, struct push_claim *ret_claim) {
    double word = words[WORD_CLAIM];
    if (!(word >= 0x1p33 && word < (2 + (double)PUSH_CLAIM_CONTAINER) * 0x1p33)) {
        return false;
    }
    uint64_t number = (uint64_t)word;
    *ret_claim = (struct push_claim){.kind = (enum push_claim_kind)((number >> 33) - 1)};
    uint64_t uid = number & ((UINT64_C(1) << 33) - 1);
    ret_claim->has_uid = uid > 0;
    ret_claim->uid = uid > 0 ? (uid_t)(uid - 1) : 0;
    for (size_t i = 0; i < 4; i++) {
        double part = words[WORD_ADDRESS + i];
        ret_claim->address.s6_addr32[i] = part >= 0 && part <= UINT32_MAX ? (uint32_t)part : 0;
    }
    return true;
}

int push_owner_restore(struct push_store *store, bool group, const struct label *labels, size_t n,
                       const uint64_t *words, size_t n_words, struct push_owner **ret_owner) {
    struct push_identity identity = {.group = group, .plugin = group ? NULL : "restored"};
    double values[N_WORDS];
    if (n_words != N_WORDS || push_check_identity(&identity, labels, n, NULL) < 0 ||
        find(store, group, labels, n) != NULL ||
        (!group && label_find(labels, n, "plugin") == NULL)) {
        return -EINVAL;
    }
    struct push_owner *owner = NULL;
    int r = create(store, group, labels, n, &owner, NULL);
    if (r < 0) {
        return r;
    }
    memcpy(values, words, sizeof(values));
    owner->push_seconds = take_time(values[WORD_PUSH]);
    owner->push_failure_seconds = take_time(values[WORD_FAILURE]);
    owner->is_claimed = take_claim(values, &owner->claim);
    push_owner_save(store, owner);
    if (owner->is_claimed) {
        join_share(store, owner);
    }
    *ret_owner = owner;
    return 0;
}
