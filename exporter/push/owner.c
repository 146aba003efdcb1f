#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

enum { OWNER_NAMED_LABELS = 5 };

/* ---- identity ---- */

static int compare_labels(const void *a, const void *b) {
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* All labels of an identity, sorted. NULL when memory is out. */
static struct label *gather_labels(const struct push_identity *identity, size_t *ret_n) {
    const struct label named[OWNER_NAMED_LABELS] = {
        {"container", identity->container},
        {"job", identity->job},
        {"namespace", identity->namespace},
        {"plugin", identity->plugin},
        {"pod", identity->pod},
    };
    struct label *labels = calloc(OWNER_NAMED_LABELS + identity->n_labels, sizeof(*labels));
    if (labels == NULL) {
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < OWNER_NAMED_LABELS; i++) {
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

static bool is_owner(const struct push_owner *owner, bool group, const struct label *labels,
                     size_t n) {
    bool same = owner->group == group && owner->n_labels == n;
    for (size_t i = 0; same && i < n; i++) {
        same = strcmp(owner->labels[i].name, labels[i].name) == 0 &&
               strcmp(owner->labels[i].value, labels[i].value) == 0;
    }
    return same;
}

static struct push_owner *find(const struct push_store *store, bool group,
                               const struct label *labels, size_t n) {
    uint64_t hash = push_hash_labels(store, labels, n);
    size_t cursor = 0;
    struct push_owner *owner;
    while ((owner = hash_index_next(&store->by_identity, hash, &cursor)) != NULL) {
        if (is_owner(owner, group, labels, n)) {
            return owner;
        }
    }
    return NULL;
}

struct push_owner *push_store_find_owner(const struct push_store *store,
                                         const struct push_identity *identity) {
    size_t n = 0;
    struct label *labels CLEANUP_FREE = gather_labels(identity, &n);
    return labels != NULL ? find(store, identity->group, labels, n) : NULL;
}

/* ---- making ---- */

/* "plugin a, container b": what messages call it. */
static char *name_owner(const struct push_owner *owner) {
    struct buf text = {0};
    if (owner->group) {
        buf_add_str(&text, "group");
    }
    for (size_t i = 0; i < owner->n_labels; i++) {
        const struct label *label = &owner->labels[i];
        if (owner->group) {
            buf_printf(&text, " %s=%s", label->name, label->value);
        } else if (strcmp(label->name, "plugin") == 0) {
            buf_printf(&text, "plugin %s", label->value);
        }
    }
    for (size_t i = 0; !owner->group && i < owner->n_labels; i++) {
        const struct label *label = &owner->labels[i];
        if (strcmp(label->name, "plugin") != 0) {
            buf_printf(&text, ", %s %s", label->name, label->value);
        }
    }
    return buf_take(&text);
}

static void free_owner(struct push_store *store, struct push_owner *owner) {
    push_bury(store, owner->rendered, owner->collected);
    free(owner->name);
    free(owner);
}

static struct push_owner *allocate(struct push_store *store, bool group, const struct label *labels,
                                   size_t n) {
    size_t labels_size = n * sizeof(struct label);
    struct push_owner *owner =
        calloc(1, sizeof(*owner) + labels_size + push_labels_size(labels, n));
    if (owner == NULL) {
        return NULL;
    }
    owner->group = group;
    owner->n_labels = n;
    push_copy_labels(owner->labels, (char *)(owner->labels + n), labels, n);
    owner->plugin = label_find(owner->labels, n, "plugin");
    owner->hash = push_hash_labels(store, labels, n);
    owner->name = name_owner(owner);
    owner->rendered = push_labels_render(owner, NULL, 0);
    push_link_init(&owner->series);
    if (owner->name == NULL || owner->rendered == NULL) {
        free_owner(store, owner);
        return NULL;
    }
    return owner;
}

/* Of plugins that only left notes behind, or groups that were only refused, the one not seen for
 * longest. */
static struct push_owner *find_departed(const struct push_store *store, bool group) {
    struct push_owner *departed = NULL;
    for (struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        if (owner->group == group && owner->n_refs == 0 && owner->n_series == 0 &&
            owner->push_seconds == 0 && (departed == NULL || owner->seen_ms < departed->seen_ms)) {
            departed = owner;
        }
    }
    return departed;
}

static int make_room(struct push_store *store, bool group, struct error *err) {
    const struct push_limits *limits = &store->config.limits;
    size_t n = group ? store->n_groups : store->by_identity.n_items - store->n_groups;
    size_t max = group ? limits->max_groups : limits->max_owners;
    if (n >= max) {
        struct push_owner *departed = find_departed(store, group);
        if (departed == NULL) {
            return error_set(err, -E2BIG, "there are %zu %s, no more are allowed (push.max-%s)",
                             max, group ? "groups" : "plugins", group ? "groups" : "plugins");
        }
        push_owner_destroy(store, departed);
    }
    bool room =
        hash_index_reserve(&store->by_identity, 1) && hash_index_reserve(&store->by_plugin, 1);
    return room ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int create(struct push_store *store, const struct push_identity *identity,
                  const struct label *labels, size_t n, struct push_owner **ret_owner,
                  struct error *err) {
    int r = push_check_identity(store, identity, labels, n, err);
    if (r == 0) {
        r = make_room(store, identity->group, err);
    }
    if (r < 0) {
        return r;
    }
    struct push_owner *owner = allocate(store, identity->group, labels, n);
    if (owner == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    r = push_persist_owner(store, owner, err);
    if (r < 0) {
        free_owner(store, owner);
        return r;
    }
    push_table_commit(store->table);
    owner->number = ++store->number;
    owner->seen_ms = push_store_now_ms(store);
    hash_index_add(&store->by_identity, owner->hash, owner);
    if (!owner->group) {
        hash_index_add(&store->by_plugin, push_hash_text(store, owner->plugin), owner);
    }
    store->n_groups += owner->group ? 1 : 0;
    push_link_append(&store->owners, &owner->link);
    *ret_owner = owner;
    return 0;
}

int push_owner_restore(struct push_store *store, bool group, const struct label *labels, size_t n,
                       struct push_owner **ret_owner) {
    struct push_identity identity = {.group = group, .plugin = group ? NULL : "restored"};
    if (find(store, group, labels, n) != NULL) {
        return -EEXIST;
    }
    if (!group && label_find(labels, n, "plugin") == NULL) {
        return -EINVAL;
    }
    return create(store, &identity, labels, n, ret_owner, NULL);
}

int push_store_owner(struct push_store *store, const struct push_identity *identity,
                     struct push_owner **ret_owner, struct error *err) {
    size_t n = 0;
    struct label *labels CLEANUP_FREE = gather_labels(identity, &n);
    if (labels == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    struct push_owner *owner = find(store, identity->group, labels, n);
    if (owner == NULL) {
        push_store_lock(store);
        int r = create(store, identity, labels, n, &owner, err);
        push_store_unlock(store);
        if (r < 0) {
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
    double longest_debt = 10 * (double)max; /* ten seconds */
    allowance->left -= (double)n;
    allowance->left = allowance->left > -longest_debt ? allowance->left : -longest_debt;
}

struct push_allowance *push_owner_allowance(struct push_owner *owner) {
    return &owner->allowance;
}

void push_owner_note_failure(struct push_store *store, struct push_owner *owner, double seconds) {
    if (owner->push_failure_seconds == seconds) {
        return;
    }
    push_store_lock(store);
    owner->push_failure_seconds = seconds;
    push_persist_times(store, owner);
    push_store_unlock(store);
}

void push_owner_linger(struct push_owner *owner) {
    owner->lingers = true;
}

/* ---- end ---- */

static void free_notes(struct push_store *store, struct push_owner *owner) {
    while (owner->notes != NULL) {
        struct push_note *note = owner->notes;
        owner->notes = note->next;
        push_persist_remove(store, owner, note->entry);
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
    push_persist_remove(store, owner, owner->entry);
    push_share_leave(owner);
    hash_index_remove(&store->by_identity, owner->hash, owner);
    if (!owner->group) {
        hash_index_remove(&store->by_plugin, push_hash_text(store, owner->plugin), owner);
    }
    store->n_groups -= owner->group ? 1 : 0;
    push_cursors_leave_owner(store, owner);
    push_link_remove(&owner->link);
    store->removals++;
    free_owner(store, owner);
}

static bool has_lasting_note(const struct push_owner *owner) {
    const struct push_note *note = owner->notes;
    while (note != NULL && note->key[0] == '.') {
        note = note->next;
    }
    return note != NULL;
}

void push_owner_drop_if_idle(struct push_store *store, struct push_owner *owner) {
    bool has_pushed = owner->push_seconds > 0 || owner->push_failure_seconds > 0;
    if (owner->n_refs == 0 && owner->n_series == 0 && !owner->lingers && !has_lasting_note(owner) &&
        !has_pushed) {
        push_owner_destroy(store, owner);
    }
}

void push_owner_forget_pushes(struct push_store *store, struct push_owner *owner) {
    remove_series(store, owner);
    owner->push_seconds = 0;
    owner->push_failure_seconds = 0;
    push_persist_times(store, owner);
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

static int create_note(struct push_store *store, struct push_owner *owner, const char *key,
                       const char *text, struct push_note **ret_note, struct error *err) {
    size_t key_size = strlen(key) + 1;
    struct push_note *note = malloc(sizeof(*note) + key_size + strlen(text) + 1);
    if (note == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", key);
    }
    memcpy(note->key, key, key_size);
    note->text = strcpy(note->key + key_size, text);
    int r = push_persist_note(store, owner, note, err);
    if (r < 0) {
        free(note);
        return r;
    }
    *ret_note = note;
    return 0;
}

int push_store_put_note(struct push_store *store, struct push_owner *owner, const char *key,
                        const char *text, struct error *err) {
    struct push_note *note = NULL;
    push_store_lock(store);
    int r = text != NULL ? create_note(store, owner, key, text, &note, err) : 0;
    if (r < 0) {
        push_store_unlock(store);
        return r;
    }
    store->removals++;
    push_table_commit(store->table);
    struct push_note **link = find_note(owner, key);
    struct push_note *old = *link;
    struct push_note *next = old != NULL ? old->next : NULL;
    if (note != NULL) {
        note->next = next;
    }
    *link = note != NULL ? note : next;
    if (old != NULL) {
        push_persist_remove(store, owner, old->entry);
        free(old);
    }
    push_store_unlock(store);
    return 0;
}
