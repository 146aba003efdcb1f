#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

/* How the things of the store become entries of its table. An entry that is added counts from the
 * next push_table_commit on. */

/* Room that must be wasted before the table is worth copying, and how long to wait where there was
 * none for a second one. */
enum { COMPACT_MIN_DEAD = 256 << 10, COMPACT_RETRY_MS = 10 * 1000, RELEASE_AT_ONCE = 1 << 20 };

/* What pushes leave of the table, for owners and their notes: who comes, or turns a knob, does not
 * have to wait for a copy. */
static size_t reserve_of(const struct push_store *store) {
    return store->config.table_bytes / 16;
}

static int add(struct push_store *store, struct push_entry_spec spec, struct push_entry **ret_entry,
               struct error *err) {
    spec.reserve = store->applying != NULL ? reserve_of(store) : 0;
    return push_table_add(store->table, &spec, ret_entry, err);
}

/* The same for one that the owner pays for. What a batch replaces is known to go only when all of
 * the batch is. */
static int add_for(struct push_store *store, struct push_owner *owner, const char *name,
                   struct push_entry_spec spec, struct push_entry **ret_entry, struct error *err) {
    int r =
        push_is_replacing(store)
            ? 0
            : push_check_table(store, owner, push_table_cost(push_table_size(&spec)), 0, name, err);
    r = r == 0 ? add(store, spec, ret_entry, err) : r;
    if (r == 0) {
        push_share_pay(owner, (*ret_entry)->size);
    }
    return r;
}

void push_persist_remove(struct push_store *store, struct push_owner *owner,
                         struct push_entry *entry) {
    push_share_repay(owner, entry->size);
    push_table_kill(store->table, entry);
}

static uint32_t next_id(struct push_store *store) {
    return ++store->last_id;
}

/* ---- each kind ---- */

int push_persist_owner(struct push_store *store, struct push_owner *owner, struct error *err) {
    const char group = owner->group ? 1 : 0;
    return add_for(store, owner, owner->name,
                   (struct push_entry_spec){
                       .type = PUSH_ENTRY_OWNER,
                       .id = next_id(store),
                       .n_words = 2,
                       .key = {{&group, 1},
                               {owner->labels + owner->n_labels,
                                push_labels_size(owner->labels, owner->n_labels)}},
                   },
                   &owner->entry, err);
}

int push_persist_family(struct push_store *store, struct push_family *family, uint32_t id,
                        struct error *err) {
    const char *name = family->names[0].text;
    const char *help = family->has_help ? family->desc->help : "";
    return add(store,
               (struct push_entry_spec){
                   .type = PUSH_ENTRY_FAMILY,
                   .id = id != 0 ? id : next_id(store),
                   .owner = family->plain_names ? PUSH_FAMILY_PLAIN : 0,
                   .detail = family->type,
                   .key = {{name, strlen(name) + 1}, {help, strlen(help) + 1}},
               },
               &family->entry, err);
}

static void bind_series(struct push_series *series) {
    series->ttl = push_entry_values(series->entry);
    series->values = series->ttl + 1;
}

int push_persist_series(struct push_store *store, struct push_series *series, struct error *err) {
    int r = add_for(store, series->owner, series->family->desc->main.name,
                    (struct push_entry_spec){
                        .type = PUSH_ENTRY_SERIES,
                        .id = next_id(store),
                        .owner = series->owner->entry->id,
                        .detail = series->family->entry->id,
                        .n_words = 1 + series->n_values,
                        .key = {{series->bounds, series->n_bounds * sizeof(double)},
                                {series->own + series->n_labels,
                                 push_labels_size(series->own, series->n_labels)}},
                    },
                    &series->entry, err);
    if (r == 0) {
        bind_series(series);
        *series->ttl = PUSH_TTL_DEFAULT;
    }
    return r;
}

int push_persist_total(struct push_store *store, struct push_series *series,
                       struct push_total *total, struct error *err) {
    int r = add_for(store, series->owner, series->family->desc->main.name,
                    (struct push_entry_spec){
                        .type = PUSH_ENTRY_TOTAL,
                        .owner = series->owner->entry->id,
                        .detail = series->entry->id,
                        .n_words = series->n_values,
                        .key = {{&total->start, sizeof(total->start)}},
                    },
                    &total->entry, err);
    total->last = r == 0 ? push_entry_values(total->entry) : NULL;
    return r;
}

int push_persist_note(struct push_store *store, struct push_owner *owner, struct push_note *note,
                      struct error *err) {
    /* Few, and not for the peer to make: who turns a knob is not kept from it by what it pushes. */
    int r =
        add(store,
            (struct push_entry_spec){
                .type = PUSH_ENTRY_NOTE,
                .owner = owner->entry->id,
                .key = {{note->key, strlen(note->key) + 1}, {note->text, strlen(note->text) + 1}},
            },
            &note->entry, err);
    if (r == 0) {
        push_share_pay(owner, note->entry->size);
    }
    return r;
}

void push_persist_times(struct push_store *store, const struct push_owner *owner) {
    double *times = push_entry_values(owner->entry);
    const struct push_change changes[] = {
        {&times[0], owner->push_seconds},
        {&times[1], owner->push_failure_seconds},
    };
    push_table_write(store->table, &changes[0], 1);
    push_table_write(store->table, &changes[1], 1);
}

/* ---- a copy without what is dead ---- */

/* The table is copied in steps. First all entries that live are copied to another table, with new
 * numbers, as those of entries that come and go for months would run out. That table takes the
 * place of the old one, then all things get their new entries. At last the memory of the one that
 * is not used any more is given back: the old one or, where something failed, the other. */
struct push_compaction {
    struct push_table *to;
    struct push_table *unused; /* NULL: both are in use */
    struct push_entry **moved; /* as they come */
    size_t n_moved, cap_moved;
    size_t n_swapped;
    bool is_published;
    uint32_t last_id;
    uint32_t family_id;
    struct push_link *owner, *family, *series; /* come next; `series` NULL: the family itself */
};

static int copy_entry(struct push_compaction *compaction, const struct push_entry *old,
                      uint32_t owner, uint32_t detail) {
    if (compaction->n_moved == compaction->cap_moved) {
        size_t cap = 2 * compaction->cap_moved + 64;
        struct push_entry **moved = reallocarray(compaction->moved, cap, sizeof(*moved));
        if (moved == NULL) {
            return -ENOMEM;
        }
        compaction->moved = moved;
        compaction->cap_moved = cap;
    }
    struct push_entry_spec spec = {
        .type = old->type,
        .id = old->id != 0 ? ++compaction->last_id : 0,
        .owner = owner,
        .detail = detail,
        .words = old->words,
        .n_words = old->n_words,
        .key = {{old->words + old->n_words, old->key_len}},
    };
    return push_table_add(compaction->to, &spec, &compaction->moved[compaction->n_moved++], NULL);
}

/* Copies an entry, or puts the copy in its place. */
static int move_entry(struct push_compaction *compaction, struct push_entry **entry, uint32_t owner,
                      uint32_t detail) {
    if (!compaction->is_published) {
        return copy_entry(compaction, *entry, owner, detail);
    }
    *entry = compaction->moved[compaction->n_swapped++];
    return 0;
}

static int move_owner(struct push_compaction *compaction, struct push_owner *owner) {
    int r = move_entry(compaction, &owner->entry, 0, 0);
    owner->new_id = compaction->last_id;
    for (struct push_note *note = owner->notes; r == 0 && note != NULL; note = note->next) {
        r = move_entry(compaction, &note->entry, owner->new_id, 0);
    }
    return r;
}

static int move_family(struct push_compaction *compaction, struct push_family *family) {
    int r = move_entry(compaction, &family->entry, family->entry->owner, family->entry->detail);
    compaction->family_id = compaction->last_id;
    return r;
}

/* The oldest first, as they came: loading them puts the latest in front again. */
static int move_totals(struct push_compaction *compaction, struct push_total *total, uint32_t owner,
                       uint32_t series) {
    int r = total != NULL ? move_totals(compaction, total->next, owner, series) : 0;
    if (total == NULL || r < 0) {
        return r;
    }
    r = move_entry(compaction, &total->entry, owner, series);
    total->last = push_entry_values(total->entry);
    return r;
}

static int move_series(struct push_compaction *compaction, struct push_series *series) {
    uint32_t owner = series->owner->new_id;
    int r = move_entry(compaction, &series->entry, owner, compaction->family_id);
    bind_series(series);
    return r < 0 ? r : move_totals(compaction, series->totals, owner, compaction->last_id);
}

static void begin_walk(const struct push_store *store, struct push_compaction *compaction) {
    compaction->owner = store->owners.next;
    compaction->family = store->families.next;
    compaction->series = NULL;
}

static bool is_walk_over(const struct push_store *store, const struct push_compaction *compaction) {
    return compaction->owner == &store->owners && compaction->family == &store->families;
}

/* Moves the next thing: owners first, as others name them, then each family with its series. */
static int move_next(struct push_store *store, struct push_compaction *compaction) {
    struct push_link *at = compaction->owner;
    if (at != &store->owners) {
        compaction->owner = at->next;
        return move_owner(compaction, CONTAINER_OF(at, struct push_owner, link));
    }
    struct push_family *family = CONTAINER_OF(compaction->family, struct push_family, link);
    at = compaction->series;
    compaction->series = at == NULL ? family->series.next : at->next;
    int r = at == NULL ? move_family(compaction, family)
                       : move_series(compaction, CONTAINER_OF(at, struct push_series, of_family));
    if (compaction->series == &family->series) {
        compaction->family = family->link.next;
        compaction->series = NULL;
    }
    return r;
}

static void end_walks(struct push_store *store, bool failed) {
    struct push_compaction *compaction = store->compaction;
    if (failed) {
        store->compact_after_ms = push_store_now_ms(store) + COMPACT_RETRY_MS;
        compaction->unused = compaction->to;
    } else {
        compaction->unused = store->table;
        store->table = compaction->to;
        store->last_id = compaction->last_id;
    }
}

static void end_compaction(struct push_store *store) {
    struct push_compaction *compaction = TAKE(store->compaction);
    push_table_destroy(compaction->unused);
    free(compaction->moved);
    free(compaction);
}

bool push_persist_compact_some(struct push_store *store, size_t n) {
    struct push_compaction *compaction = store->compaction;
    int r = 0;
    if (compaction->unused != NULL) {
        bool more = push_table_release(compaction->unused, RELEASE_AT_ONCE);
        if (!more) {
            end_compaction(store);
        }
        return more;
    }
    for (; r == 0 && n > 0 && !is_walk_over(store, compaction); n--) {
        r = move_next(store, compaction);
    }
    push_table_commit(compaction->to);
    if (r == 0 && !is_walk_over(store, compaction)) {
        return true;
    }
    if (r == 0 && !compaction->is_published) {
        r = push_table_publish(compaction->to, NULL);
        compaction->is_published = r == 0;
        begin_walk(store, compaction);
        if (r == 0) {
            return true;
        }
    }
    end_walks(store, r < 0);
    return true;
}

bool push_persist_compact(struct push_store *store) {
    if (push_store_now_ms(store) < store->compact_after_ms) {
        return false;
    }
    store->compaction = calloc(1, sizeof(*store->compaction));
    const char *path = push_table_path(store->table);
    if (store->compaction == NULL) {
        return false;
    }
    if (push_table_create(path, store->config.table_bytes, &store->compaction->to, NULL) < 0) {
        end_walks(store, true);
        end_compaction(store);
        return false;
    }
    begin_walk(store, store->compaction);
    return true;
}

/* Or every small push would cost a copy. */
static bool is_much_dead(const struct push_store *store) {
    return push_table_dead(store->table) >= store->config.table_bytes / 64;
}

static bool is_worth_a_copy(const struct push_store *store) {
    size_t dead = push_table_dead(store->table);
    size_t used = push_table_used(store->table);
    size_t eighth = store->config.table_bytes / 8;
    bool worth = dead >= COMPACT_MIN_DEAD && dead >= used / 2;
    bool needed = dead >= eighth && used >= 7 * eighth;
    bool urgent = is_much_dead(store) && push_table_room(store->table) < reserve_of(store);
    return worth || needed || urgent;
}

bool push_store_tidy(struct push_store *store, size_t n) {
    bool begun = store->compaction != NULL;
    if (store->applying != NULL || store->copy != NULL ||
        (!begun && (!is_worth_a_copy(store) || !push_persist_compact(store)))) {
        return false;
    }
    pthread_mutex_lock(&store->lock);
    bool more = push_persist_compact_some(store, n);
    pthread_mutex_unlock(&store->lock);
    return more;
}

bool push_persist_begin_room(struct push_store *store) {
    return is_much_dead(store) && push_persist_compact(store);
}
