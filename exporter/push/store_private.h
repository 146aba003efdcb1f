#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "exporter/core/hash.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/push/rate.h"
#include "exporter/push/reserved.h"
#include "exporter/push/store.h"
#include "exporter/push/table.h"

/* What the files of the push store share. Everything is the loop thread's; what the collector's
 * thread reads changes under the lock only. */

enum { PUSH_MAX_WORDS = 256 };

/* A list of items that are linked through a member of theirs. */
struct push_link {
    struct push_link *prev, *next;
};

/* One name that a family takes up. */
struct push_name {
    struct push_family *family;
    char *text;
    uint64_t hash;
    bool callable; /* peers may use it; else it is only that of some of its samples */
};

struct push_family {
    struct push_link link; /* among all */
    struct push_entry *entry;
    enum push_type type;
    bool plain_names; /* as groups want it: counters are called what their peers call them */
    struct push_name names[4];
    size_t n_names;
    struct push_family *twin; /* a gauge's: the rate of the same name; and the other way round */
    struct push_desc *desc;
    bool has_help; /* somebody gave one */
    uint64_t hash;
    uint64_t number; /* the order in which they were made */
    struct push_link series;
    size_t n_series;
    uint64_t batch;     /* the last one that named it */
    bool hidden;        /* its names are free for the batch under way, which replaces it */
    uint64_t collected; /* number of the last collection that took it */
};

struct push_desc {
    struct metric_desc main;
    struct metric_desc total; /* of a rate: its counter */
    char help[];
};

/* The last figures that one start of the peer gave for a series by PUSH_TOTAL. */
struct push_total {
    struct push_total *next;
    struct push_entry *entry;
    uint64_t start;
    bool counted; /* among those of its series */
    double *last; /* in the entry; as many as the series has values */
};

/* A start that is connected, or was until a while ago. */
struct push_start {
    struct push_link left; /* among those that have left, the first ones first */
    uint64_t number;
    size_t n_sessions;
    int64_t left_ms;
};

/* An owner with series in a family. */
struct push_member {
    uint64_t hash;
    const struct push_family *family;
    const struct push_owner *owner;
    size_t n_series;
};

struct push_series {
    struct push_link of_family, of_owner;
    struct push_entry *entry;
    uint64_t hash;
    uint64_t number;
    struct labels *labels;        /* all of them, the owner's too */
    struct push_buckets *buckets; /* of a histogram or summary */
    struct push_member *member;   /* of a gauge or rate */
    size_t text_size;             /* bytes that its names and labels take on a page */
    double *ttl;                  /* in the entry: see ttl_ms */
    double *bounds;
    size_t n_bounds;
    uint64_t collected; /* number of the last collection that took it */

    /* What an update reads stands together: with many series it is memory that takes the time. */
    struct push_family *family;
    struct push_owner *owner;
    struct push_rate *rate; /* of a rate */
    double *values;         /* in the entry: not cumulative; of a histogram: buckets, sum */
    size_t n_values;
    struct push_total *totals; /* the one used last first */
    size_t n_totals;
    int64_t ttl_ms; /* PUSH_TTL_DEFAULT: goes with its owner */
    int64_t updated_ms;
    uint64_t batch; /* the last one that named it */
    uint64_t start; /* of the peer that pushed it last; 0: not known */
    bool hidden;    /* not in the index: the batch under way puts another in its place */
    size_t n_labels;
    struct label own[]; /* sorted; their texts behind them, in the same memory */
};

/* The label sets of a series that has several: with `le` or `quantile`. */
struct push_buckets {
    struct buf text;
    size_t n;
    const struct labels *labels[];
};

struct push_note {
    struct push_note *next;
    struct push_entry *entry;
    char *text; /* behind the key */
    char key[];
};

/* What one peer has of the store, under all the names that it claims. */
struct push_share {
    struct push_link link; /* among all */
    size_t n_owners;
    size_t n_series;
    size_t text_size;  /* of its series together */
    size_t table_size; /* bytes of the table that it pays for */
    char peer[];
};

struct push_owner {
    struct push_link link;    /* among all */
    struct push_share *share; /* NULL: nobody has claimed it */
    struct push_entry *entry;
    uint64_t hash;
    uint64_t number; /* the order in which they were made */
    bool group;
    size_t n_refs;
    bool lingers; /* stays without series until it expires */
    struct push_link series;
    size_t n_series;
    size_t n_totals;   /* of all its series */
    size_t text_size;  /* of its series together */
    size_t table_size; /* bytes of the table that it pays for */
    size_t n_with_ttl; /* of its series: those with a time to live of their own */
    size_t n_naming;   /* of a group's series: those that name a plugin themselves */
    int64_t seen_ms;
    double push_seconds, push_failure_seconds;
    struct labels *rendered;
    uint64_t collected;
    struct push_note *notes;
    uint64_t claim; /* how often it has become another's */
    struct push_allowance allowance;
    uint32_t new_id; /* of its entry in the table that is being made */
    char *name;
    const char *plugin; /* its label of that name; NULL: a group without */
    size_t n_labels;
    struct label labels[]; /* sorted; their texts behind them, in the same memory */
};

/* What an update comes down to. */
struct push_step {
    struct push_series *series;
    struct push_total *total; /* for PUSH_TOTAL */
};

struct push_reader {
    struct push_link link;
    struct push_store *store;
    uint64_t collection; /* number of its last; 0: none */
};

struct push_grave {
    void *memory;
    uint64_t collected; /* number of the last collection that took it */
};

/* Where push_store_expire goes on. */
struct push_expiry {
    struct push_cursor at;
    bool has_begun;  /* a pass */
    bool is_evicted; /* the owner: it is a group with all labels of a plugin */
    uint64_t claims; /* of the store, when the pass began */
    bool has_claims; /* there were some since the pass before */
};

struct push_store {
    struct push_store_config config;
    struct push_reserved reserved;
    struct push_table *table;
    uint32_t last_id;         /* of an entry; they are numbered anew when the table is copied */
    int64_t compact_after_ms; /* not before the table may be copied */
    pthread_mutex_t lock;     /* guards families, series, their values and `collections` */
    atomic_bool is_collected; /* with the lock held for long */

    struct push_link families, owners, shares;
    size_t text_size;              /* of all series together */
    struct hash_index names;       /* struct push_name */
    struct hash_index series;      /* struct push_series */
    struct hash_index members;     /* struct push_member */
    struct hash_index by_identity; /* struct push_owner */
    struct hash_index by_plugin;   /* those of plugins, by the name alone */
    size_t n_groups;               /* of those */
    uint64_t claims;               /* of plugins that are known, however often */
    struct push_expiry expiry;
    struct push_cursor *cursors;
    struct hash_index starts; /* struct push_start */
    struct push_link starts_left;
    size_t n_starts_left;
    int64_t created_ms;
    uint64_t seed;

    uint64_t number;    /* of the owner, family or series that was made last */
    uint64_t batch;     /* number of the one under way */
    uint32_t id_before; /* `last_id` when that began */
    struct push_step *steps;
    size_t n_steps, cap_steps;
    struct push_series **fresh; /* made by the batch under way */
    size_t n_fresh, cap_fresh;
    struct push_series **replaced;
    size_t n_replaced, cap_replaced;
    struct push_family **hidden;
    size_t n_hidden, cap_hidden;
    struct push_applying *applying;     /* a batch between two of its turns; NULL: none */
    struct push_compaction *compaction; /* the same of a copy of the table */
    struct buf *copy;                   /* the same of one for somebody else */

    uint64_t collections; /* how many there have been */
    struct push_link readers;
    /* Memory that snapshots may refer to. */
    struct push_graves {
        struct push_grave *items;
        size_t n_items, cap_items;
    } graves;

    uint64_t removals; /* of owners, series, notes */
    uint64_t updates, expired, refused[PUSH_REASONS];
};

static inline void push_link_init(struct push_link *list) {
    *list = (struct push_link){list, list};
}

static inline void push_link_append(struct push_link *list, struct push_link *item) {
    *item = (struct push_link){list->prev, list};
    list->prev->next = item;
    list->prev = item;
}

static inline void push_link_remove(struct push_link *item) {
    item->prev->next = item->next;
    item->next->prev = item->prev;
}

int64_t push_store_now_ms(const struct push_store *store);
uint64_t push_hash_text(const struct push_store *store, const char *text);

/* Of a set of labels, whatever their order. */
uint64_t push_hash_labels(const struct push_store *store, const struct label *labels, size_t n);

/* Frees memory that collections up to that number took: at once, or when no reader uses them. */
void push_bury(struct push_store *store, void *memory, uint64_t collected);

/* Copies labels to `to`, their texts to `text`, where there is room for both. */
void push_copy_labels(struct label *to, char *text, const struct label *labels, size_t n);
size_t push_labels_size(const struct label *labels, size_t n);

/* push_check.c: what a peer may say. */
int push_check_help(const struct push_store *store, const struct push_update *update,
                    struct error *err);
int push_check_family(const struct push_store *store, const struct push_update *update,
                      struct error *err);
int push_check_labels(const struct push_store *store, const struct push_owner *owner,
                      enum push_type type, const struct push_update *update, struct error *err);
int push_check_identity(const struct push_store *store, const struct push_identity *identity,
                        const struct label *labels, size_t n_labels, struct error *err);
int push_check_values(const struct push_batch *batch, const struct push_update *update,
                      const struct push_series *series, struct error *err);

/* push_family.c */
/* The family of that name, or NULL. */
struct push_family *push_family_find(struct push_store *store, const char *name);
int push_family_for(struct push_store *store, const struct push_owner *owner,
                    const struct push_update *update, bool replace, struct push_family **ret_family,
                    struct error *err);
void push_family_take_help(struct push_store *store, struct push_family *family, const char *help);
void push_family_unhide(struct push_store *store, struct push_family *family);
void push_family_destroy(struct push_store *store, struct push_family *family);

/* push_member.c: who has series in a family, without a walk over either's. */
bool push_member_is(const struct push_store *store, const struct push_family *family,
                    const struct push_owner *owner);
/* One more series; NULL when memory is out. */
struct push_member *push_member_join(struct push_store *store, const struct push_family *family,
                                     const struct push_owner *owner);
/* One less, be it ever so long after its family; accepts NULL. */
void push_member_leave(struct push_store *store, struct push_member *member);

/* push_series.c */
struct push_series *push_series_find(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_owner *owner,
                                     const struct push_update *update, uint64_t *ret_hash);
int push_series_create(struct push_store *store, struct push_family *family,
                       struct push_owner *owner, const struct push_update *update, uint64_t hash,
                       struct push_series **ret_series, struct error *err);
void push_series_destroy(struct push_store *store, struct push_series *series);
int push_series_total(struct push_store *store, struct push_series *series, uint64_t start,
                      struct push_total **ret_total, struct error *err);
void push_series_forget_start(struct push_store *store, struct push_series *series, uint64_t start);

/* Counts a total that is there to stay; where a series has those of many starts another may go. */
void push_series_count_total(struct push_store *store, struct push_series *series,
                             struct push_total *total, int64_t now_ms);

/* Whether the series was left by a process that has gone, and a new one pushes. That may mean
 * something else by it: its author has changed it. */
bool push_series_is_left(const struct push_store *store, const struct push_series *series);

/* The owner of the family's first series pays for another entry than before. */
void push_series_pay_family(struct push_family *family, const struct push_entry *before);

/* push_start.c */
bool push_start_is_connected(const struct push_store *store, uint64_t number);
/* Whether it is connected, or may yet come back. */
bool push_start_may_return(const struct push_store *store, uint64_t number, int64_t now_ms);
void push_starts_finish(struct push_store *store);

/* push_value.c */
void push_value_preset(const struct push_step *step, const struct push_update *update);
void push_value_apply(struct push_store *store, const struct push_step *step,
                      const struct push_update *update, int64_t now_ms);

/* push_view.c */
/* What is removed is not what comes next. */
void push_cursors_leave_owner(struct push_store *store, const struct push_owner *owner);
void push_cursors_leave_series(struct push_store *store, const struct push_series *series);
size_t push_cumulate(const struct push_series *series, double out[static PUSH_MAX_WORDS]);

/* push_prepare.c */
/* Makes room for `n` items in all; 0 or -ENOMEM. */
int push_grow(void **items, size_t *cap, size_t n, size_t size);
/* Finds or makes what an update is about, and checks its values. */
int push_prepare(struct push_store *store, struct push_owner *owner, const struct push_batch *batch,
                 const struct push_update *update, struct push_step *ret_step, struct error *err);
/* Takes back what the batch under way has made or put aside, about `n` things of it; true: there is
 * more. */
bool push_take_back(struct push_store *store, size_t n);

/* push_apply.c */
/* Whether another owner's series makes way for one of `owner` that looks the same: it is hidden,
 * and goes with the end of the batch under way. */
bool push_series_displace(struct push_store *store, struct push_series *series,
                          const struct push_owner *owner);

/* Takes a batch that is applied in turns to its end, before anybody looks. */
void push_store_settle(struct push_store *store);

/* The lock for changes on the loop thread, once that is done: from its first turn to its last a
 * batch holds the lock itself. */
void push_store_lock(struct push_store *store);
void push_store_unlock(struct push_store *store);

/* push_share.c */
/* The share of that peer, or NULL. */
const struct push_share *push_share_find(const struct push_store *store, const char *peer);
/* Makes the owner part of the peer's share, and of no other any more. -ENOMEM. */
int push_share_join(struct push_store *store, struct push_owner *owner, const char *peer);
void push_share_leave(struct push_owner *owner);
/* Counts a series for its owner, the owner's share and all, or no longer. */
void push_share_add(struct push_store *store, const struct push_series *series);
void push_share_remove(struct push_store *store, const struct push_series *series);
/* Counts an entry of the table for the owner and its share, or no longer. That of a family is paid
 * for by the owner of its first series. */
void push_share_pay(struct push_owner *owner, size_t entry_size);
void push_share_repay(struct push_owner *owner, size_t entry_size);
/* How many of its owners are connected or have series. */
size_t push_share_count(const struct push_store *store, const struct push_share *share);
/* Whether there is room where `n_more` series come and `n_less` go, so that there are `n_series`.
 * -E2BIG. */
int push_check_room(const struct push_store *store, const struct push_owner *owner, size_t n_series,
                    size_t n_more, size_t n_less, const char *name, struct error *err);
/* Whether all series, and those of the share (may be NULL), may take as much on a page. -E2BIG. */
int push_check_text_sizes(const struct push_store *store, const struct push_share *share,
                          size_t text_size, size_t peer_text_size, const char *name,
                          struct error *err);
/* Whether the owner's share may have that much more of the table, of which some goes again. -E2BIG.
 */
int push_check_table(const struct push_store *store, const struct push_owner *owner, size_t n_more,
                     size_t n_less, const char *name, struct error *err);
/* Whether a batch that replaces is under way: until it is over both are there. */
bool push_is_replacing(const struct push_store *store);
/* The same once there is one more series. */
int push_check_text(const struct push_store *store, const struct push_series *series,
                    const char *name, struct error *err);

/* push_store.c */
void push_store_open_graves(struct push_store *store);

/* push_persist.c. What is added counts from push_table_commit on. `id` 0: one is given. */
int push_persist_owner(struct push_store *store, struct push_owner *owner, struct error *err);
int push_persist_family(struct push_store *store, struct push_family *family, uint32_t id,
                        struct error *err);
int push_persist_series(struct push_store *store, struct push_series *series, struct error *err);
int push_persist_total(struct push_store *store, struct push_series *series,
                       struct push_total *total, struct error *err);
int push_persist_note(struct push_store *store, struct push_owner *owner, struct push_note *note,
                      struct error *err);
void push_persist_times(struct push_store *store, const struct push_owner *owner);
/* Removes an entry that the owner has paid for. */
void push_persist_remove(struct push_store *store, struct push_owner *owner,
                         struct push_entry *entry);

/* Begins a copy of the table without what is dead; false: there is no room for it. */
bool push_persist_compact(struct push_store *store);
/* Goes on with it by about `n` entries, with the lock held; true: there is more to do. It was
 * without success where some of the table is dead still. */
bool push_persist_compact_some(struct push_store *store, size_t n);
/* The same where something is dead, for who found no room. */
bool push_persist_begin_room(struct push_store *store);

/* push_labels.c */
struct labels *push_labels_render(const struct push_owner *owner, const struct label *own,
                                  size_t n_own);
struct push_buckets *push_buckets_create(const struct push_series *series);
/* How many bytes its names and labels take on a page, and so in memory. */
size_t push_text_size(const struct push_series *series);

/* push_owner.c */
int push_owner_restore(struct push_store *store, bool group, const struct label *labels, size_t n,
                       struct push_owner **ret_owner);
void push_owner_drop_if_idle(struct push_store *store, struct push_owner *owner);

/* Whether a plugin has not been heard of for too long, or a group that only was refused. */
bool push_owner_has_expired(const struct push_store *store, const struct push_owner *owner,
                            int64_t now_ms);
/* Series and times vanish, and the owner if it is idle then; notes stay. */
void push_owner_forget_pushes(struct push_store *store, struct push_owner *owner);
/* The same with its notes. */
void push_owner_clear(struct push_store *store, struct push_owner *owner);
void push_owner_destroy(struct push_store *store, struct push_owner *owner);
