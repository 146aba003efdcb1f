#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "exporter/core/hash.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/push/claim.h"
#include "exporter/push/rate.h"
#include "exporter/push/store.h"
#include "exporter/push/table.h"

/* The data structures of the push store, for its own files. Everything is the loop thread's; what
 * readers look at changes under the lock only. */

enum { PUSH_MAX_WORDS = 256 };

/* A list of items that are linked through a member of theirs. */
struct push_link {
    struct push_link *prev, *next;
};

/* A series in the list of a family. */
struct push_member {
    struct push_link link;
    struct push_series *series;
};

struct push_family {
    struct push_link link; /* among all */
    struct push_entry *entry;
    struct push_entry *help; /* NULL: none, or there was no room for it */
    enum push_type type;     /* a rate is a counter in one family, and a mean in a gauge */
    bool has_short_name;     /* of a plugin's counter: the name without _total means it, too */
    bool has_help;           /* somebody gave one */
    bool of_group;           /* made by one: there is no help text rather than ours */
    struct push_desc *desc;
    uint64_t hash;             /* of its name */
    uint64_t number;           /* the order in which they were made */
    struct push_share *payer;  /* NULL: nobody */
    struct push_link members;  /* struct push_member */
    size_t n_members, n_means; /* of those: means of rates */
    struct push_series *first; /* while a batch makes the family */
    size_t cost;
    uint64_t batch;     /* the last one that named it */
    uint64_t dropped;   /* the last one that was to replace it */
    uint64_t collected; /* the last collection that took it */
};

struct push_desc {
    struct metric_desc desc;
    char text[]; /* name, help */
};

/* The last figures that one start of the peer gave for a series by PUSH_TOTAL. */
struct push_total {
    struct push_total *next;
    struct push_entry *entry;
    uint64_t start;
    double *last;    /* in the entry; as many as the series has values */
    double *used_ms; /* behind them: when it was used, to about a second */
};

/* A start with connections. */
struct push_start {
    uint64_t number;
    size_t n_sessions;
};

struct push_series {
    struct push_member in_family, in_gauge; /* the latter of a rate */
    struct push_link of_owner;
    struct push_entry *entry;
    uint64_t number;
    struct labels *labels;        /* all of them, the owner's too */
    struct push_buckets *buckets; /* of a histogram or summary */
    size_t cost;                  /* of the entry, and of the text on a page */
    double *ttl;                  /* in the entry: see ttl_ms */
    double *bounds;
    size_t n_bounds;
    uint64_t collected; /* the last collection that took it */

    /* What an update reads is together: with many series it is memory that takes the time. */
    uint64_t labels_hash; /* of all its labels */
    struct push_family *family;
    struct push_family *gauge; /* of a rate: the family that has its mean */
    struct push_owner *owner;
    struct push_rate *rate; /* of a rate */
    double *values;         /* in the entry: not cumulative; of a histogram: buckets, sum */
    size_t n_values;
    struct push_total *totals;    /* the one used last first */
    struct push_total *new_total; /* of the batch that is being checked */
    int64_t ttl_ms;               /* PUSH_TTL_DEFAULT: goes with its owner */
    int64_t updated_ms;
    uint64_t batch;   /* the last one that named it */
    uint64_t dropped; /* the last one that was to replace it */
    uint64_t start;   /* of the peer that pushed it last; 0: not known */
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

/* What one peer keeps, under all the names that it claims. */
struct push_share {
    struct push_link link; /* among all */
    size_t n_refs;
    size_t cost;
    ptrdiff_t planned; /* more, by the batch that is being checked */
    char peer[];
};

struct push_owner {
    struct push_link link;    /* among all */
    struct push_share *share; /* NULL: nobody has claimed it */
    struct push_entry *entry;
    uint64_t hash;
    uint64_t number; /* the order in which they were made */
    bool group;
    bool is_claimed;
    bool lingers; /* stays without series until it expires */
    size_t n_refs;
    struct push_link series;
    size_t n_series;
    ptrdiff_t planned; /* more, by the batch that is being checked */
    size_t cost;       /* of all that it has, but families */
    size_t n_with_ttl; /* of its series: those with a time to live of their own */
    size_t n_naming;   /* of a group's series: those that name a plugin themselves */
    int64_t seen_ms;
    double push_seconds, push_failure_seconds;
    struct labels *rendered;
    uint64_t collected;
    struct push_note *notes;
    struct push_claim claim;
    uint64_t claim_number; /* how often it has become another's */
    struct push_allowance allowance;
    char *name;
    const char *plugin; /* its label of that name; NULL: a group without */
    size_t n_labels;
    struct label labels[]; /* sorted; their texts behind them, in the same memory */
};

struct push_reader {
    struct push_link link;
    struct push_store *store;
    uint64_t collection;               /* number of its last; 0: none */
    struct push_link *family, *member; /* come next */
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
    const char **reserved; /* sorted: names that collectors declare, and nobody may push */
    size_t n_reserved;
    struct push_table *table;
    pthread_mutex_t lock;  /* guards families, series, their values, readers and graves */
    atomic_uint n_waiting; /* for the lock, on the loop thread */

    struct push_link families, owners, shares;
    size_t cost; /* of all that is kept */
    size_t n_series;
    struct hash_index names;       /* struct push_family */
    struct hash_index series;      /* struct push_series; a rate is there twice */
    struct hash_index by_identity; /* struct push_owner */
    struct hash_index by_plugin;   /* those of plugins, by the name alone */
    struct hash_index starts;      /* struct push_start */
    uint64_t claims;               /* of plugins that are known, however often */
    struct push_expiry expiry;
    struct push_cursor *cursors;
    struct push_plan *plan;
    uint64_t seed;
    uint64_t number; /* of the owner, family or series that was made last */
    uint64_t batch;  /* number of the last one */

    uint64_t collections; /* how many there have been */
    struct push_link readers;
    struct push_grave *graves; /* memory that snapshots may refer to */
    size_t n_graves, cap_graves;

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

/* ---- store.c ---- */

int64_t push_store_now_ms(const struct push_store *store);
void push_store_lock(struct push_store *store);
void push_store_unlock(struct push_store *store);

/* Frees memory that collections up to that number took: at once, or when no reader uses them. */
void push_bury(struct push_store *store, void *memory, uint64_t collected);

/* Frees what no reader uses any more. */
void push_store_open_graves(struct push_store *store);

uint64_t push_hash_text(const struct push_store *store, const char *text);

/* Of a set of labels, whatever their order. */
uint64_t push_hash_labels(const struct push_store *store, const struct label *labels, size_t n);

/* ---- check.c ---- */

extern const char *const push_type_words[]; /* "counter", "untyped metric", … */
void push_reserve_names(struct push_store *store, const struct collector *const *collectors);
/* Whether the name is a collector's, or begins with waap_. */
bool push_is_reserved(const struct push_store *store, const char *name);
int push_check_name(const struct push_update *update, struct error *err);
int push_check_help(const struct push_update *update, struct error *err);
int push_check_labels(const struct push_owner *owner, enum push_type type,
                      const struct push_update *update, struct error *err);
int push_check_bounds(const struct push_update *update, const double *bounds, size_t n,
                      struct error *err);
int push_check_identity(const struct push_identity *identity, const struct label *labels,
                        size_t n_labels, struct error *err);
int push_check_values(const struct push_batch *batch, const struct push_update *update,
                      const struct push_series *series, enum push_type type, struct error *err);

/* ---- owner.c ---- */

/* Counts bytes for the owner, its share and all; `n` is negative where they are gone. */
void push_charge(struct push_store *store, struct push_owner *owner, ptrdiff_t n);
struct push_share *push_share_ref(struct push_share *share); /* accepts NULL */
void push_share_unref(struct push_share *share);             /* accepts NULL */

/* Whether there is room for as many bytes: `reserve` of the table is left to others. -ENOSPC. */
int push_check_room(const struct push_store *store, ptrdiff_t n_more, size_t reserve,
                    const char *name, struct error *err);

/* Writes push times and the claim to the owner's entry. */
void push_owner_save(struct push_store *store, const struct push_owner *owner);
int push_owner_restore(struct push_store *store, bool group, const struct label *labels, size_t n,
                       const uint64_t *words, size_t n_words, struct push_owner **ret_owner);
void push_owner_drop_if_idle(struct push_store *store, struct push_owner *owner);
/* Whether a plugin has not been heard of for too long, or a group that only was refused. */
bool push_owner_has_expired(const struct push_store *store, const struct push_owner *owner,
                            int64_t now_ms);
/* Series and times vanish, and the owner if it is idle then; notes stay. */
void push_owner_forget_pushes(struct push_store *store, struct push_owner *owner);
/* The same with its notes. */
void push_owner_clear(struct push_store *store, struct push_owner *owner);
void push_owner_destroy(struct push_store *store, struct push_owner *owner);

/* ---- series.c: what is made is in no list before push_…_link ---- */

/* Copies labels to `to`, their texts to `text`, where there is room for both. */
void push_copy_labels(struct label *to, char *text, const struct label *labels, size_t n);
size_t push_labels_size(const struct label *labels, size_t n);
struct labels *push_labels_render(const struct push_owner *owner, const struct label *own,
                                  size_t n_own);

/* `help` NULL: none. */
struct push_family *push_family_create(const struct push_store *store, const char *name,
                                       enum push_type type, const char *help, bool of_group);
/* Bytes that its entries take. */
size_t push_family_cost(const struct push_family *family);
/* Adds its entries to the table, which do not count yet. */
int push_family_place(struct push_store *store, struct push_family *family, struct error *err);
void push_family_link(struct push_store *store, struct push_family *family);
/* Gives it a help text, if there is room for one. */
void push_family_take_help(struct push_store *store, struct push_family *family, const char *help);
void push_family_destroy(struct push_store *store, struct push_family *family);
/* One that is not linked. */
void push_family_free(struct push_store *store, struct push_family *family);
static inline const char *push_family_name(const struct push_family *family) {
    return family->desc->desc.name;
}
struct push_family *push_family_find(const struct push_store *store, const char *name);
/* The family that has the name, or a sample of that name, or means it by a shorter one. */
struct push_family *push_family_of_name(const struct push_store *store, const char *name);
/* The names that a family has: its own, those of its samples, the short one of a plugin's counter;
 * NULL at the end. */
const char *push_family_next_name(const char *name, enum push_type type, bool has_short_name,
                                  size_t i, char out[static PUSH_MAX_NAME + 16]);
/* Whether nobody has a name that such a family would have. */
bool push_name_is_free(const struct push_store *store, const char *name, enum push_type type,
                       bool has_short_name);

struct push_series *push_series_find(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_owner *owner,
                                     const struct push_update *update, uint64_t labels_hash);
/* Another series of the family that looks the same, whichever owner has it; or NULL. */
struct push_series *push_series_twin(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_series *series);
/* `gauge`: of a rate, else NULL. */
struct push_series *push_series_create(struct push_family *family, struct push_family *gauge,
                                       struct push_owner *owner, const struct push_update *update,
                                       const double *bounds, size_t n_bounds, uint64_t labels_hash);
size_t push_series_entry_size(const struct push_series *series);
int push_series_place(struct push_store *store, struct push_series *series, struct error *err);
/* From then on push_series_find finds it. */
void push_series_index(struct push_store *store, struct push_series *series);
void push_series_unindex(struct push_store *store, struct push_series *series);
void push_series_link(struct push_store *store, struct push_series *series);
void push_series_destroy(struct push_store *store, struct push_series *series);
void push_series_free(struct push_store *store, struct push_series *series);

bool push_start_is_connected(const struct push_store *store, uint64_t number);
size_t push_total_cost(const struct push_series *series);
int push_total_place(struct push_store *store, struct push_series *series, struct push_total *total,
                     struct error *err);
/* Puts it before the others; the oldest goes if they are too many, and is not connected. */
void push_total_link(struct push_store *store, struct push_series *series,
                     struct push_total *total);

/* Forgets the oldest of more than 64 that no connected process has sent; the first is used by the
 * batch. Not while loading: nothing is connected yet. */
void push_total_forget_oldest(struct push_store *store, struct push_series *series);

/* ---- apply.c ---- */

struct push_plan *push_plan_create(struct push_store *store);
void push_plan_destroy(struct push_plan *plan);

/* ---- value.c ---- */

void push_value_preset(struct push_series *series, const struct push_update *update);
/* `total`: of PUSH_TOTAL. */
void push_value_apply(struct push_store *store, struct push_series *series,
                      const struct push_total *total, const struct push_update *update,
                      int64_t now_ms);

/* ---- read.c ---- */

/* What is removed is not what comes next. */
void push_cursors_leave_owner(struct push_store *store, const struct push_owner *owner);
void push_cursors_leave_series(struct push_store *store, const struct push_series *series);
void push_readers_leave_family(struct push_store *store, const struct push_family *family);
void push_readers_leave_member(struct push_store *store, const struct push_member *member);
