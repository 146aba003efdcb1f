#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/channel/knob.h"
#include "exporter/core/arena.h"
#include "exporter/core/json.h"
#include "exporter/push/update.h"

/* The language of plugins: one JSON object says one thing. plugin/README.md, "The plugin channel",
 * is its reference. Reading allocates nothing once the reader has its size. */

enum push_message_kind {
    PUSH_MESSAGE_EMPTY,   /* nothing but a sequence number */
    PUSH_MESSAGE_METRICS, /* the reader has taken them up */
    PUSH_MESSAGE_HELLO,
    PUSH_MESSAGE_DECLARE, /* a knob */
    PUSH_MESSAGE_APPLIED, /* a knob has been turned */
};

struct push_hello {
    const char *plugin, *job, *start, *container, *pod, *namespace; /* NULL: not said */
    const struct label *labels;                                     /* as in push_update */
    size_t n_labels;
};

/* All texts point into what was read, all arrays into the reader. */
struct push_message {
    enum push_message_kind kind;
    const char *name;          /* of the metric or param; set on failure, too, once it is known */
    const char *plugin;        /* whose metric it is, where it says: for HTTP */
    const struct label *group; /* the same, as in push_update; NULL: not said */
    size_t n_group;
    bool has_seq;
    uint64_t seq;
    struct push_hello hello;
    struct knob_spec declared;
    struct knob_value applied;
};

struct push_json;

enum { PUSH_JSON_MAX_LABELS = 64 };

struct push_json *push_json_create(void);
void push_json_destroy(struct push_json *reader); /* accepts NULL */

/* Limits the memory that what is read between two resets takes until it is applied. */
void push_json_limit(struct push_json *reader, size_t max_bytes);

/* Forgets what has been read so far. */
void push_json_reset(struct push_json *reader);

/* Reads the object at the cursor, number `index` of what its sender said; adds what it says of
 * metrics to the reader's updates. -EINVAL with words that say what is wrong and where, -EFBIG
 * beyond the limit of memory; no update has been added then. `*message` is filled in either case.
 */
int push_json_read(struct push_json *reader, struct json *json, size_t index,
                   struct push_message *message, struct error *err);

/* What else has to last until the next reset is taken from there, within the limit. */
struct arena *push_json_arena(struct push_json *reader);

/* Says whose the updates from number `first` up to `end` are. */
void push_json_assign(struct push_json *reader, size_t first, size_t end, struct push_owner *owner);

/* All updates since the last reset, good until the next read or reset. */
const struct push_update *push_json_updates(const struct push_json *reader, size_t *ret_n);
