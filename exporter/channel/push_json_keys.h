#pragma once

#include "exporter/channel/push_json.h"
#include "exporter/core/arena.h"

/* Shared by push_json.c (objects) and push_json_keys.c (what stands behind their keys). */

/* Every key that an object of ours may have. */
enum push_json_key {
    KEY_APPLIED,
    KEY_BUCKETS,
    KEY_DEFAULT,
    KEY_GROUP,
    KEY_HELLO,
    KEY_HELP,
    KEY_INC,
    KEY_LABELS,
    KEY_MAX,
    KEY_METRIC,
    KEY_MIN,
    KEY_OBSERVE,
    KEY_PARAM,
    KEY_PLUGIN,
    KEY_SEQ,
    KEY_SET,
    KEY_STEP,
    KEY_TOTAL,
    KEY_TTL,
    KEY_TYPE,
    KEY_UNIT,
    KEY_VALUES,
    N_KEYS, /* also: unknown */
};

struct push_json {
    struct arena arena;
    struct push_update *updates;
    size_t n_updates;
    size_t cap_updates;
    double *numbers; /* of the array being read */
    size_t n_numbers;
    size_t cap_numbers;
    size_t max_numbers; /* of one array since the last reset */
};

/* An object while it is being read. */
struct push_json_reading {
    struct push_json *reader;
    struct json *json;
    struct push_message *message;
    struct error *err;
    uint32_t seen;
    struct json_place *places; /* of the keys that were seen */
    struct json_place start;   /* of the object */
    struct json_place value;   /* of what stands behind the key at hand */
    struct json_place type_place;
    const char *type;
    struct push_update update;
};

/* Makes room behind `n` items for all that the rest of the text can say with `min_text` bytes each,
 * but not beyond the limit of memory, so that what is there moves once at most. What is not used of
 * it is never touched. */
bool push_json_grow(const struct push_json_reading *reading, void **items, size_t n, size_t *cap,
                    size_t size, size_t min_text);

/* Reads what stands behind a key into the reading. */
int push_json_read_key(struct push_json_reading *reading, enum push_json_key key);
