#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "exporter/core/hash.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/push/claim.h"
#include "exporter/push/rate.h"
#include "exporter/push/store.h"
#include "exporter/push/table.h"

/* The data structures of the push store, for its own files. The loop thread owns everything; what
 * readers look at changes under the lock only. */

enum { PUSH_MAX_WORDS = 256 };

/* A list of items that are linked through a member of theirs. */
struct push_link {
    struct push_link *prev, *next;
};

struct push_family {
    struct push_link link; /* among all */
    struct push_entry *entry;
    struct push_entry *help; /* NULL: none, or there was no room for it */
    enum push_type type;
    bool has_short_name; /* of a plugin's counter: updates may omit _total */
    bool has_help;       /* given by a client */
    bool of_group;       /* made by one: no help text instead of a default one */
    struct push_desc *desc;
    uint64_t hash;            /* of its name */
    uint64_t number;          /* the order in which they were made */
    struct push_share *payer; /* of its first series; NULL: nobody */
    struct push_link series;  /* their `in_family` */
    size_t n_series;
    size_t cost;
    uint64_t batch;     /* the last one that named it */
    uint64_t dropped;   /* the last one that was to replace it */
    uint64_t collected; /* the last collection that included it */
};

struct push_desc {
    struct metric_desc desc;
    char text[]; /* name, help */
};

/* The last totals that one start of the peer reported for a series by PUSH_TOTAL. */
struct push_total {
    struct push_total *next;
    struct push_entry *entry;
    uint64_t start;
    double *last; /* in the entry; as many as the series has values */
    double *rank; /* behind them: grows towards the front of the list, so it outlives a restart */
};

/* A start with connections. */
struct push_start {
    uint64_t number;
    size_t n_sessions;
};

/* A rate is two series: a counter, and a gauge in another family that shows the counter's mean. The
 * gauge has no values of its own. Both are removed together. */
struct push_series {
    struct push_link in_family, of_owner;
    struct push_entry *entry;
    uint64_t number;
    struct labels *labels;        /* all of them, with the owner's */
    struct push_buckets *buckets; /* of a histogram or summary */
    size_t cost;                  /* of the entry, and of the text on a page */
    double *ttl;                  /* in the entry: see ttl_ms */
    double *bounds;
    size_t n_bounds;
    uint64_t collected; /* the last collection that included it */

    /* The fields that an update reads are together: with many series, cache misses dominate. */
    uint64_t labels_hash; /* of all its labels */
    struct push_family *family;
    struct push_owner *owner;
    struct push_series *mean_of; /* of a rate's gauge: the counter */
    struct push_series *mean;    /* of a rate's counter: the gauge */
    struct push_rate *rate;      /* of a rate's counter */
    double *values;              /* in the entry: not cumulative; of a histogram: buckets, sum */
    size_t n_values;
    struct push_total *totals; /* most recently used first */
    int64_t ttl_ms;            /* PUSH_TTL_DEFAULT: expires with its owner */
    int64_t updated_ms;
    uint64_t batch;   /* the last one that named it */
    uint64_t dropped; /* the last one that was to replace it */
    uint64_t start;   /* of the peer that pushed it last; 0: unknown */
    size_t n_labels;
    struct label own[]; /* sorted; their texts follow in the same memory */
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
    char *text; /* follows the key */
    char key[];
};

/* The bytes that one peer keeps, under all the names that it claims. */
struct push_share {
    struct push_link link; /* among all */
    size_t n_refs;
    size_t cost;
    char peer[];
};

struct push_owner {
    struct push_link link;    /* among all */
    struct push_share *share; /* NULL: unclaimed */
    struct push_entry *entry;
    uint64_t hash;
    uint64_t number; /* the order in which they were made */
    bool group;
    bool is_claimed;
    bool lingers; /* stays without series until it expires */
    size_t n_refs;
    struct push_link series; /* their `of_owner` */
    size_t n_series;
    size_t cost;       /* of all that it has, except families */
    size_t n_with_ttl; /* of its series: those with a time to live of their own */
    size_t n_naming;   /* of a group's series: those with a label `plugin` of their own */
    int64_t seen_ms;
    double push_seconds, push_failure_seconds;
    struct labels *rendered;
    uint64_t collected;
    struct push_note *notes;
    struct push_claim claim;
    uint64_t claim_number; /* how often the claimant has changed */
    struct push_allowance allowance;
    char *name;
    const char *plugin; /* its label of that name; NULL: a group without */
    size_t n_labels;
    struct label labels[]; /* sorted; their texts follow in the same memory */
};

struct push_reader {
    struct push_link link;
    struct push_store *store;
    uint64_t collection;       /* number of its last; 0: none */
    struct push_walk position; /* families, their series */
};

/* Where push_store_expire continues. */
struct push_expiry {
    struct push_walk walk; /* owners, their series */
    bool has_begun;        /* a pass */
    bool is_evicted;       /* the owner: it is a group with all labels of a plugin */
    uint64_t claims;       /* of the store, when the pass began */
    bool has_claims;       /* there were some since the pass before */
};

/* Memory that snapshots may still refer to. */
struct push_deferred {
    void *memory;
    uint64_t collected; /* number of the last collection that included it */
};

struct push_store {
    struct push_store_config config;
    const char **reserved; /* sorted: names that collectors declare */
    size_t n_reserved;
    struct push_table *table;
    pthread_mutex_t
        lock; /* guards families, series, their values, readers, walks, deferred memory */
    atomic_uint n_waiting; /* for the lock, on the loop thread */

    struct push_link families, owners, shares;
    size_t cost;              /* of all that is kept */
    struct push_stats stats;  /* n_owners and what the table knows are filled in when it is read */
    struct hash_index names;  /* struct push_family */
    struct hash_index series; /* struct push_series */
    struct hash_index by_identity; /* struct push_owner */
    struct hash_index by_plugin;   /* plugins, by the name alone */
    struct hash_index starts;      /* struct push_start */
    uint64_t claims;               /* successful ones by peers that are better known than HTTP */
    struct push_expiry expiry;
    struct push_walk *walks;
    struct push_plan *plan;
    uint64_t seed;
    uint64_t number; /* of the owner, family or series that was made last */
    uint64_t batch;  /* number of the last one */

    uint64_t collections; /* how many there have been */
    struct push_link readers;
    struct push_deferred *deferred;
    size_t n_deferred, cap_deferred;
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

/* Frees memory that collections up to that number included: at once, or when no reader uses it. */
void push_defer_free(struct push_store *store, void *memory, uint64_t collected);

/* Frees what no reader uses any more. */
void push_store_free_deferred(struct push_store *store);

uint64_t push_hash_text(const struct push_store *store, const char *text);

/* Of a set of labels, whatever their order. */
uint64_t push_hash_labels(const struct push_store *store, const struct label *labels, size_t n);

/* ---- check.c ---- */

extern const char *const push_type_words[]; /* "counter", "untyped metric", … */
static inline bool push_type_is_composite(enum push_type type) {
    return type == PUSH_HISTOGRAM || type == PUSH_SUMMARY;
}
void push_reserve_names(struct push_store *store, const struct collector *const *collectors);
/* Whether a collector declares the name, or it begins with waap_. */
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

/* Counts bytes for the owner, its share and the store; `n` is negative if they are freed. */
void push_charge(struct push_store *store, struct push_owner *owner, ptrdiff_t n);
struct push_share *push_share_ref(struct push_share *share); /* accepts NULL */
void push_share_unref(struct push_share *share);             /* accepts NULL */

/* Whether there is room for `n_more` bytes beside `reserve`. -ENOSPC. */
int push_check_room(const struct push_store *store, ptrdiff_t n_more, size_t reserve,
                    const char *name, struct error *err);

/* Writes push times and the claim to the owner's entry. */
void push_owner_save(struct push_store *store, const struct push_owner *owner);
int push_owner_restore(struct push_store *store, bool group, const struct label *labels, size_t n,
                       const uint64_t *words, size_t n_words, struct push_owner **ret_owner);
void push_owner_drop_if_idle(struct push_store *store, struct push_owner *owner);
/* Whether a plugin, or a group whose pushes were all refused, has been silent for too long. */
bool push_owner_has_expired(const struct push_store *store, const struct push_owner *owner,
                            int64_t now_ms);
/* Removes series and push times, and the owner if it is idle then; notes stay. */
void push_owner_forget_pushes(struct push_store *store, struct push_owner *owner);
/* The same with its notes. */
void push_owner_clear(struct push_store *store, struct push_owner *owner);
void push_owner_destroy(struct push_store *store, struct push_owner *owner);

/* ---- series.c: entries of what is made are committed by the caller ---- */

/* Copies labels to `to`, their texts to `text`, where there is room for both. */
void push_copy_labels(struct label *to, char *text, const struct label *labels, size_t n);
size_t push_labels_size(const struct label *labels, size_t n);
bool push_labels_equal(const struct label *a, const struct label *b, size_t n); /* sorted */
struct labels *push_labels_render(const struct push_owner *owner, const struct label *own,
                                  size_t n_own);

struct push_family_spec {
    const char *name, *help; /* help NULL: none */
    enum push_type type;
    bool has_short_name, of_group;
};

int push_family_create(struct push_store *store, const struct push_family_spec *spec,
                       struct push_family **ret_family, struct error *err);
void push_family_commit(struct push_store *store, const struct push_family *family);
/* Gives it a help text, if there is room for one. */
void push_family_take_help(struct push_store *store, struct push_family *family, const char *help);
void push_family_destroy(struct push_store *store, struct push_family *family);
static inline const char *push_family_name(const struct push_family *family) {
    return family->desc->desc.name;
}
struct push_family *push_family_find(const struct push_store *store, const char *name);
/* The family that has the name, or a sample of that name, or accepts it as its short name. */
struct push_family *push_family_of_name(const struct push_store *store, const char *name);
/* The length of a name without the ending _total of counters. */
size_t push_base_len(const char *name);
/* The names that a family occupies: its own, those of its samples, the short one of a plugin's
 * counter; NULL at the end. */
const char *push_family_next_name(const char *name, enum push_type type, bool has_short_name,
                                  size_t i, char out[static PUSH_MAX_NAME + 16]);

/* The series of the family with the same labels, of this owner or of another one; or NULL. */
struct push_series *push_series_find(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_owner *owner,
                                     const struct push_update *update, uint64_t labels_hash);

struct push_series_spec {
    struct push_family *family;
    struct push_owner *owner;
    struct push_series *mean_of; /* of a rate's gauge: the counter */
    const struct label *labels;
    size_t n_labels;
    uint64_t labels_hash;
    const double *bounds;
    size_t n_bounds;
};

/* On failure, a family without series is left to the caller. */
int push_series_create(struct push_store *store, const struct push_series_spec *spec,
                       struct push_series **ret_series, struct error *err);
/* Subtracts it, and the other series of a rate, from counts and sizes (-1), or adds it (1). */
void push_series_charge(struct push_store *store, struct push_series *series, int sign);
/* Removes it, the other series of a rate, and families without series. */
void push_series_destroy(struct push_store *store, struct push_series *series);
/* Leaves the counter of a rate. */
void push_series_destroy_one(struct push_store *store, struct push_series *series);

/* What a rate's gauge shows belongs to its counter: values, totals, times. */
static inline struct push_series *push_series_base(struct push_series *series) {
    return series->mean_of != NULL ? series->mean_of : series;
}

bool push_start_is_connected(const struct push_store *store, uint64_t number);
/* Of a total that comes first. */
double push_total_rank(const struct push_series *series);
/* Puts a new total first. */
int push_total_create(struct push_store *store, struct push_series *series, uint64_t start,
                      struct push_total **ret_total, struct error *err);
/* Removes `*link` from the list that it is part of. */
void push_total_destroy(struct push_store *store, struct push_series *series,
                        struct push_total **link);
/* Removes the oldest of more than 64 that no connected process has sent, but never the first.
 * Not while loading: nothing is connected yet. */
void push_total_forget_oldest(struct push_store *store, struct push_series *series);

/* ---- apply.c ---- */

struct push_plan *push_plan_create(struct push_store *store);
void push_plan_destroy(struct push_plan *plan);

/* ---- value.c ---- */

/* `total`: of PUSH_TOTAL. */
void push_value_apply(struct push_store *store, struct push_series *series,
                      const struct push_total *total, const struct push_update *update,
                      int64_t now_ms);

/* ---- read.c ---- */

/* Moves walks on that would visit the item next. */
void push_walks_skip(struct push_store *store, const struct push_link *item);
