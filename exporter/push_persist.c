#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container.h"
#include "exporter/push_store_private.h"

/* How the things of the store become entries of its table. An entry that is added counts from the
 * next push_table_commit on. */

/* Room that must be wasted before the table is worth copying, and how long to wait where there was
 * none for a second one. */
enum { COMPACT_MIN_DEAD = 256 << 10, COMPACT_RETRY_MS = 10 * 1000 };

static int add(struct push_store *store, struct push_entry_spec spec, struct push_entry **ret_entry,
               struct error *err) {
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
                   .owner = (family->plain_names ? PUSH_FAMILY_PLAIN : 0) |
                            (family->own ? PUSH_FAMILY_OWN : 0),
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

/* ---- all of them ---- */

/* The oldest first, as they came: loading them puts the latest in front again. */
static int each_total(struct push_total *total,
                      int (*visit)(struct push_entry **entry, void *context), void *context) {
    int r = total != NULL ? each_total(total->next, visit, context) : 0;
    return total != NULL && r == 0 ? visit(&total->entry, context) : r;
}

/* Calls `visit` with the place where each thing keeps its entry: first those that others name. */
static int each_entry(struct push_store *store,
                      int (*visit)(struct push_entry **entry, void *context), void *context) {
    int r = 0;
    for (struct push_link *i = store->owners.next; r == 0 && i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        r = visit(&owner->entry, context);
        for (struct push_note *note = owner->notes; r == 0 && note != NULL; note = note->next) {
            r = visit(&note->entry, context);
        }
    }
    for (struct push_link *i = store->families.next; r == 0 && i != &store->families; i = i->next) {
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        r = visit(&family->entry, context);
        for (struct push_link *k = family->series.next; r == 0 && k != &family->series;
             k = k->next) {
            struct push_series *series = CONTAINER_OF(k, struct push_series, of_family);
            r = visit(&series->entry, context);
            r = r == 0 ? each_total(series->totals, visit, context) : r;
        }
    }
    return r;
}

struct move {
    struct push_table *to;
    struct push_entry **moved; /* in the order of each_entry */
    size_t n_moved, cap_moved;
    struct error *err;
};

static int copy_entry(struct push_entry **entry, void *context) {
    struct move *move = context;
    const struct push_entry *old = *entry;
    if (move->n_moved == move->cap_moved) {
        size_t cap = 2 * move->cap_moved + 64;
        struct push_entry **moved = reallocarray(move->moved, cap, sizeof(*moved));
        if (moved == NULL) {
            return error_set(move->err, -ENOMEM, "out of memory");
        }
        move->moved = moved;
        move->cap_moved = cap;
    }
    struct push_entry_spec spec = {
        .type = old->type,
        .id = old->id,
        .owner = old->owner,
        .detail = old->detail,
        .words = old->words,
        .n_words = old->n_words,
        .key = {{old->words + old->n_words, old->key_len}},
    };
    return push_table_add(move->to, &spec, &move->moved[move->n_moved++], move->err);
}

/* Puts the copy in the place of its original, or back again. */
static int swap_entry(struct push_entry **entry, void *context) {
    struct move *move = context;
    struct push_entry **moved = &move->moved[move->n_moved++];
    struct push_entry *other = *moved;
    *moved = *entry;
    *entry = other;
    return 0;
}

static void swap_entries(struct push_store *store, struct move *move) {
    move->n_moved = 0;
    each_entry(store, swap_entry, move);
}

/* What comes and goes for months would run out of numbers. Returns the last one. */
static uint32_t renumber(struct push_store *store) {
    uint32_t id = 0;
    for (struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        owner->entry->id = ++id;
        for (struct push_note *note = owner->notes; note != NULL; note = note->next) {
            note->entry->owner = owner->entry->id;
        }
    }
    for (struct push_link *i = store->families.next; i != &store->families; i = i->next) {
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        family->entry->id = ++id;
        for (struct push_link *k = family->series.next; k != &family->series; k = k->next) {
            struct push_series *series = CONTAINER_OF(k, struct push_series, of_family);
            series->entry->id = ++id;
            series->entry->owner = series->owner->entry->id;
            series->entry->detail = family->entry->id;
            for (struct push_total *total = series->totals; total != NULL; total = total->next) {
                total->entry->owner = series->entry->owner;
                total->entry->detail = series->entry->id;
            }
        }
    }
    return id;
}

static void bind_all(struct push_store *store) {
    for (struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        for (struct push_link *k = owner->series.next; k != &owner->series; k = k->next) {
            struct push_series *series = CONTAINER_OF(k, struct push_series, of_owner);
            bind_series(series);
            for (struct push_total *t = series->totals; t != NULL; t = t->next) {
                t->last = push_entry_values(t->entry);
            }
        }
    }
}

static int publish(struct push_store *store, struct move *move) {
    swap_entries(store, move);
    uint32_t last_id = renumber(store);
    push_table_commit(move->to);
    int r = push_table_publish(move->to, move->err);
    if (r < 0) {
        swap_entries(store, move);
        return r;
    }
    store->last_id = last_id;
    bind_all(store);
    return 0;
}

/* Copies what lives to another table. Until that is published the old one stays as it is. */
static int compact(struct push_store *store, struct error *err) {
    struct move move = {.err = err};
    const char *path = push_table_path(store->table);
    int r = push_table_create(path, store->config.table_bytes, &move.to, err);
    if (r == 0) {
        r = each_entry(store, copy_entry, &move);
    }
    if (r == 0) {
        r = publish(store, &move);
    }
    free(move.moved);
    if (r < 0) {
        push_table_destroy(move.to);
        return r;
    }
    push_table_destroy(store->table);
    store->table = move.to;
    return 0;
}

static bool try_compact(struct push_store *store) {
    int64_t now_ms = push_store_now_ms(store);
    if (now_ms < store->compact_after_ms) {
        return false;
    }
    bool done = compact(store, NULL) == 0;
    store->compact_after_ms = done ? 0 : now_ms + COMPACT_RETRY_MS;
    return done;
}

void push_persist_tidy(struct push_store *store) {
    size_t dead = push_table_dead(store->table);
    size_t used = push_table_used(store->table);
    size_t eighth = store->config.table_bytes / 8;
    bool worth = dead >= COMPACT_MIN_DEAD && dead >= used / 2;
    bool needed = dead >= eighth && used >= 7 * eighth;
    if (worth || needed) {
        try_compact(store);
    }
}

bool push_persist_make_room(struct push_store *store) {
    size_t least = store->config.table_bytes / 64; /* or every small push would cost a copy */
    return push_table_dead(store->table) >= least && try_compact(store);
}
