#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/channel/knob.h"
#include "exporter/core/arena.h"
#include "exporter/core/json.h"
#include "exporter/push/update.h"

/* The messages of plugins: one JSON object each. plugin/README.md, "The plugin channel", is the
 * reference. Reading allocates nothing once the reader has its size. */

enum push_message_kind {
    PUSH_MESSAGE_EMPTY,   /* nothing but a sequence number */
    PUSH_MESSAGE_METRICS, /* the reader has taken them up */
    PUSH_MESSAGE_HELLO,
    PUSH_MESSAGE_DECLARE, /* a knob */
    PUSH_MESSAGE_APPLIED, /* a knob has been turned */
};

struct push_hello {
    const char *plugin, *job, *start, *container, *pod, *namespace; /* each may be NULL */
    const struct label *labels;                                     /* as in push_update */
    size_t n_labels;
};

/* All texts point into the text that was read, all arrays into the reader. */
struct push_message {
    enum push_message_kind kind;
    const char *name;          /* of the metric or param; set on failure, too, once it is known */
    const char *plugin;        /* that owns the metric, or NULL: for HTTP */
    const struct label *group; /* the same, as in push_update, or NULL */
    size_t n_group;
    bool has_seq;
    uint64_t seq;
    struct push_hello hello;
    struct knob_spec declared;
    struct knob_value applied;
};

/* Reads messages and collects their metrics. */
struct push_json {
    struct arena arena; /* for all that must live until the next reset; its limit is the caller's */
    struct push_update *updates; /* since the last reset; the next read may move them */
    size_t n_updates;
    size_t cap_updates;
    double *numbers; /* of the array being read */
    size_t n_numbers;
    size_t cap_numbers;
};

enum { PUSH_JSON_MAX_LABELS = 64 };

struct push_json *push_json_create(void);
void push_json_destroy(struct push_json *reader); /* accepts NULL */

/* Forgets what has been read so far. */
void push_json_reset(struct push_json *reader);

/* Reads the object at the cursor, number `index` of its sender, and adds its metrics to the
 * reader's updates. -EINVAL names fault and place, -EFBIG: beyond the limit of memory; no update
 * has been added then. `*message` is filled in either case. */
int push_json_read(struct push_json *reader, struct json *json, size_t index,
                   struct push_message *message, struct error *err);
