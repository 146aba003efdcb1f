#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "exporter/push/update.h"

/* Series that plugins and other clients pushed: their families, owners, values, times to live.
 * The loop thread owns it; workers of the `push` collector read it under a lock. */
struct push_store;

/* A plugin or group that pushes. It is found by its identity after reconnects, over HTTP and after
 * restarts of the daemon. */
struct push_owner;

struct push_limits {
    size_t max_owner_series; /* of one plugin or group */
    size_t max_peer_bytes;   /* kept of one peer: in memory, in the table and on a page */
    size_t max_line_rate;    /* lines or metrics in a second, of one owner; 0: no limit */
};

struct push_store_config {
    struct push_limits limits;
    int64_t ttl_ms; /* of series after the last activity of their plugin; 0: for ever */
    const struct collector *const *collectors; /* their metrics are reserved; may be NULL */
    const char *table_path;                    /* the file of the table; NULL: in memory */
    size_t table_bytes;                        /* limit of all that is kept */
    int64_t (*now_ms)(void);                   /* monotonic; NULL: the system's clock */
};

int push_store_create(const struct push_store_config *config, struct push_store **ret_store,
                      struct error *err);
void push_store_destroy(struct push_store *store); /* accepts NULL */

struct push_load_report {
    size_t n_series;
    size_t n_dropped;       /* invalid entries */
    size_t n_damaged_pages; /* entries of these are missing */
};

/* Fills a new store from the pages of an earlier table or state file, aligned to 8. */
void push_store_load(struct push_store *store, const void *pages, size_t len,
                     struct push_load_report *ret_report);

/* Renames the table to its path, after the earlier file there has been loaded. */
int push_store_publish(struct push_store *store, struct error *err);

/* Appends the next `n` bytes of the table's pages to a copy of them; false: it is complete. Pushes
 * between two calls may be in it in part. */
bool push_store_copy_some(const struct push_store *store, struct buf *out, size_t n);

/* Changes limits and time to live after a reload; series beyond new limits stay. */
void push_store_configure(struct push_store *store, const struct push_store_config *config);

/* The present ones. */
const struct push_limits *push_store_limits(const struct push_store *store);

/* ---- owners ---- */

/* All but `plugin`, or `labels` of a group, may be NULL. Every series of the owner carries these
 * labels. */
struct push_identity {
    const char *plugin, *job, *container, *pod, *namespace;
    const struct label *labels; /* more, in any order; of a group: all, with its job */
    size_t n_labels;
    bool group; /* of a Pushgateway: it does not expire by itself, has push_time_seconds, and its
                   counters keep their names and may be set */
};

/* Whether the label shows where a plugin runs, so that its metrics must not have it. */
bool push_label_is_identity(const char *name);

/* Finds or makes the owner of that identity, and adds a reference: an owner does not expire while a
 * connection or request has one. -EINVAL, -ENOSPC. */
int push_store_owner(struct push_store *store, const struct push_identity *identity,
                     struct push_owner **ret_owner, struct error *err);
void push_owner_unref(struct push_store *store, struct push_owner *owner); /* accepts NULL */

/* Keeps a plugin without series until its time to live is over. */
void push_owner_linger(struct push_owner *owner);

/* Finds an owner without a reference to it; NULL: there is none. */
struct push_owner *push_store_find_owner(const struct push_store *store,
                                         const struct push_identity *identity);

/* A token bucket for limits of a rate. A zeroed one is full. */
struct push_allowance {
    double left;
    int64_t counted_ns; /* when `left` was computed */
};

/* How long to wait until at least one of `max` in a second is allowed; 0: now. */
int64_t push_allowance_wait_ns(struct push_allowance *allowance, size_t max, int64_t now_ns);

/* Takes `n`, more than are left if necessary: the debt is that of ten seconds at most. */
void push_allowance_spend(struct push_allowance *allowance, size_t max, size_t n);

/* The owner's, for all its connections and requests. */
struct push_allowance *push_owner_allowance(struct push_owner *owner);

/* Sets push_failure_time_seconds of a group. */
void push_owner_note_failure(struct push_store *store, struct push_owner *owner, double seconds);

/* Removes the series, and the owner as soon as it has no references. */
void push_store_remove_owner(struct push_store *store, struct push_owner *owner);

/* ---- updates ---- */

enum push_mode {
    PUSH_MERGE,
    PUSH_REPLACE_FAMILIES, /* removes other series of the families named: POST of the Pushgateway */
    PUSH_REPLACE_ALL,      /* removes all other series of the owner: PUT */
};

struct push_batch {
    enum push_mode mode;
    uint64_t start; /* push_start_number of the peer's start, for PUSH_TOTAL; 0: none */
    const struct push_update *updates;
    size_t n_updates;
};

/* The number of a start of a peer's process, from the text in its hello. Never 0. */
uint64_t push_start_number(const char *start);

/* Notes that a connection of that start has begun, or has ended. Each series keeps the totals of
 * the last 64 starts, and of all that are connected. */
void push_store_start_enter(struct push_store *store, uint64_t number);
void push_store_start_leave(struct push_store *store, uint64_t number);

/* Applies all updates or none; at most PUSH_MAX_UPDATES (-EFBIG). On failure `*ret_failed` (may be
 * NULL) is the index of the first invalid update, and the error names its metric, what was
 * expected, and the other owner if types conflict. After return the updates survive kill -9.
 * Updates and failures are counted in waap_push_*. -EINVAL: not valid; -EEXIST: another type, or a
 * series of another owner; -EPERM: a reserved name; -E2BIG: beyond a limit; -ENOSPC: no room. */
int push_store_apply(struct push_store *store, struct push_owner *owner,
                     const struct push_batch *batch, size_t *ret_failed, struct error *err);

/* Whether it would be applied: changes nothing. It takes as long, so half as many updates may be in
 * the batch. */
int push_store_try(struct push_store *store, struct push_owner *owner,
                   const struct push_batch *batch, size_t *ret_failed, struct error *err);

/* Counts a push that the caller has refused. Codes are as above, and -EBADMSG and -EPROTONOSUPPORT:
 * not readable, -EAGAIN and -EBUSY: too fast, -EACCES: not allowed, -EFBIG: beyond a limit. */
void push_store_count_refused(struct push_store *store, int code);

/* The label `reason` of such a code. */
const char *push_reason(int code);

/* Removes expired series and owners, groups with their last series, and series of groups that have
 * the labels of a claimed plugin, see claim.h. A pass over all is due about once a second; a call
 * checks at most `n` owners and series. True: the pass is not complete. */
bool push_store_expire(struct push_store *store, size_t n);

/* ---- notes: small texts that persist like series, for the values of knobs ---- */

/* NULL: none. Valid until the next put. */
const char *push_store_note(const struct push_store *store, const struct push_owner *owner,
                            const char *key);

/* Calls `visit` for each note of the owner. Changing anything meanwhile is not allowed. */
void push_store_visit_notes(const struct push_store *store, const struct push_owner *owner,
                            void (*visit)(const char *key, const char *text, void *context),
                            void *context);

/* `text` NULL removes the note. An owner with notes is kept. -E2BIG, -ENOSPC. */
int push_store_put_note(struct push_store *store, struct push_owner *owner, const char *key,
                        const char *text, struct error *err);

/* ---- views ---- */

struct push_owner_view {
    uint64_t number;            /* in the order in which they were made */
    const char *name;           /* "plugin objcounter", "group job=nightly" */
    const struct label *labels; /* sorted by name */
    size_t n_labels;
    bool group;
    size_t n_series;
    size_t n_refs;               /* connections */
    double seen_seconds;         /* last activity, since 1970 */
    bool expired;                /* a plugin after its time to live, which may have notes left */
    double push_seconds;         /* of a group: its last push; 0: never */
    double push_failure_seconds; /* of a group: the last that was refused; 0: never */
};

struct push_owner_view push_owner_view(const struct push_store *store,
                                       const struct push_owner *owner);

/* The first owner (`after` NULL) or the next; NULL at the end. Pushing meanwhile is not allowed. */
struct push_owner *push_store_next_owner(const struct push_store *store,
                                         const struct push_owner *after);

/* The first owner with a higher number, for walks with pauses; NULL at the end. */
struct push_owner *push_store_owner_after(const struct push_store *store, uint64_t number);

struct push_series_view {
    struct push_owner *owner;
    uint64_t family;  /* its number */
    const char *name; /* as exported */
    const char *help;
    enum push_type type;        /* a rate is a counter and a gauge */
    const struct label *labels; /* without the owner's */
    size_t n_labels;
    const char *text;     /* all labels, rendered */
    const double *values; /* as in struct push_update for PUSH_SET; NaN: a mean not known yet */
    size_t n_values;
    const double *bounds;
    size_t n_bounds;
};

typedef bool push_series_function(const struct push_series_view *series, void *context);

/* Calls `visit` for each series of the owner (NULL: of all) until it returns false, one family
 * after the other. Changing anything meanwhile is not allowed. */
void push_store_visit(struct push_store *store, const struct push_owner *owner,
                      push_series_function *visit, void *context);

/* The number of the owner, family or series that was made last. */
uint64_t push_store_newest(const struct push_store *store);

/* The last series that was visited, and its family. Series with a number above `newest` are
 * skipped, so that the walk ends while others are made. */
struct push_place {
    uint64_t newest;
    uint64_t family, series;
};

/* The same for the series of the owner that follow `place`, which moves on. False: the last one has
 * been visited. */
bool push_store_visit_some(struct push_store *store, const struct push_owner *owner,
                           struct push_place *place, push_series_function *visit, void *context);

/* A position in a list of lists. If an item is removed, positions at it move on. */
struct push_walk {
    struct push_link *outer, *inner; /* inner NULL: the list of `outer` has not been begun */
    struct push_walk *next;
};

/* A position in the owners and their series. */
struct push_cursor {
    struct push_walk walk;
    size_t n_removed; /* of the present owner's series, by this cursor */
};

/* Begins with the first owner. End it before the store is destroyed. */
void push_cursor_begin(struct push_store *store, struct push_cursor *cursor);
void push_cursor_end(struct push_store *store, struct push_cursor *cursor);

/* Removes the series for which `match` returns true (NULL: all) and returns how many; both series
 * of a rate are removed together. A group is removed with its last series. One without series
 * counts as one, and is removed if its push times match. */
size_t push_store_remove_if(struct push_store *store, push_series_function *match, void *context);

/* The same by a cursor, for about `n` series; adds to `*n_removed`. True: there are more. */
bool push_store_remove_some(struct push_store *store, struct push_cursor *cursor, size_t n,
                            push_series_function *match, void *context, size_t *n_removed);

enum { PUSH_REASONS = 9 };

struct push_stats {
    size_t n_series, n_owners;
    size_t table_bytes; /* of entries */
    bool in_file;       /* pushes survive a restart */
    uint64_t changes;   /* of anything that a state file holds */
    uint64_t updates, expired;
    struct push_refused {
        const char *reason;
        uint64_t n;
    } refused[PUSH_REASONS];
};

struct push_stats push_store_stats(const struct push_store *store);

/* Takes snapshots on a thread of its own. There may be several while a reload replaces the
 * collector, as older ones may still be rendering. */
struct push_reader;

struct push_reader *push_reader_create(struct push_store *store);
void push_reader_destroy(struct push_reader *reader); /* accepts NULL */

/* Adds all series to a snapshot; what it refers to stays until the reader's next call or end. */
void push_reader_collect(struct push_reader *reader, struct snapshot *out);
