#include "exporter/channel/push_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/push_json_keys.h"
#include "exporter/settings/suggest.h"

enum { KEPT_BYTES = 256 * 1024, KEPT_UPDATES = 1024, KEPT_NUMBERS = 4096 };

static const struct {
    const char *name;
    size_t len;
} keys[N_KEYS] = {
#define KEY(key, name) [key] = {name, sizeof(name) - 1}
    KEY(KEY_APPLIED, "applied"), KEY(KEY_BUCKETS, "buckets"), KEY(KEY_DEFAULT, "default"),
    KEY(KEY_GROUP, "group"),     KEY(KEY_HELLO, "hello"),     KEY(KEY_HELP, "help"),
    KEY(KEY_INC, "inc"),         KEY(KEY_LABELS, "labels"),   KEY(KEY_MAX, "max"),
    KEY(KEY_METRIC, "metric"),   KEY(KEY_MIN, "min"),         KEY(KEY_OBSERVE, "observe"),
    KEY(KEY_PARAM, "param"),     KEY(KEY_PLUGIN, "plugin"),   KEY(KEY_SEQ, "seq"),
    KEY(KEY_SET, "set"),         KEY(KEY_STEP, "step"),       KEY(KEY_TOTAL, "total"),
    KEY(KEY_TTL, "ttl"),         KEY(KEY_TYPE, "type"),       KEY(KEY_UNIT, "unit"),
    KEY(KEY_VALUES, "values"),
#undef KEY
};

#define BIT(key) (UINT32_C(1) << (key))
#define BITS_OPERATION (BIT(KEY_INC) | BIT(KEY_OBSERVE) | BIT(KEY_SET) | BIT(KEY_TOTAL))
#define BITS_METRIC                                                                                \
    (BITS_OPERATION | BIT(KEY_METRIC) | BIT(KEY_TYPE) | BIT(KEY_HELP) | BIT(KEY_LABELS) |          \
     BIT(KEY_TTL) | BIT(KEY_BUCKETS) | BIT(KEY_GROUP) | BIT(KEY_PLUGIN) | BIT(KEY_SEQ))
#define BITS_DECLARE                                                                               \
    (BIT(KEY_PARAM) | BIT(KEY_TYPE) | BIT(KEY_DEFAULT) | BIT(KEY_MIN) | BIT(KEY_MAX) |             \
     BIT(KEY_STEP) | BIT(KEY_UNIT) | BIT(KEY_HELP) | BIT(KEY_VALUES) | BIT(KEY_SEQ))
#define BITS_APPLIED (BIT(KEY_PARAM) | BIT(KEY_APPLIED) | BIT(KEY_SEQ))
#define BITS_HELLO (BIT(KEY_HELLO) | BIT(KEY_SEQ))
#define BITS_OBJECT                                                                                \
    (BIT(KEY_GROUP) | BIT(KEY_HELLO) | BIT(KEY_LABELS) | BIT(KEY_SET) | BIT(KEY_TOTAL))

/* What an object may be, by the keys that tell. */
static const struct {
    uint32_t telling;
    uint32_t allowed;
    enum push_message_kind kind;
    const char *what;
} kinds[] = {
    {BIT(KEY_METRIC), BITS_METRIC, PUSH_MESSAGE_METRICS, "a metric"},
    {BIT(KEY_HELLO), BITS_HELLO, PUSH_MESSAGE_HELLO, "a hello"},
    {BIT(KEY_PARAM) | BIT(KEY_APPLIED), BITS_APPLIED, PUSH_MESSAGE_APPLIED, "an applied param"},
    {BIT(KEY_PARAM), BITS_DECLARE, PUSH_MESSAGE_DECLARE, "a param"},
    {BIT(KEY_SEQ), BIT(KEY_SEQ), PUSH_MESSAGE_EMPTY, "a sequence number"},
};

static const struct {
    const char *name;
    enum push_type type;
} types[] = {
    {"counter", PUSH_COUNTER}, {"gauge", PUSH_GAUGE},     {"histogram", PUSH_HISTOGRAM},
    {"rate", PUSH_RATE},       {"untyped", PUSH_UNTYPED},
};

/* ---- the reader ---- */

struct push_json *push_json_create(void) {
    return calloc(1, sizeof(struct push_json));
}

void push_json_limit(struct push_json *reader, size_t max_bytes) {
    reader->arena.max = max_bytes;
}

void push_json_destroy(struct push_json *reader) {
    if (reader == NULL) {
        return;
    }
    arena_finish(&reader->arena);
    free(reader->updates);
    free(reader->numbers);
    free(reader);
}

void push_json_reset(struct push_json *reader) {
    arena_reset(&reader->arena, KEPT_BYTES);
    reader->n_updates = 0;
    reader->max_numbers = 0;
    if (reader->cap_updates > KEPT_UPDATES) {
        free(TAKE(reader->updates));
        reader->cap_updates = 0;
    }
    if (reader->cap_numbers > KEPT_NUMBERS) {
        free(TAKE(reader->numbers));
        reader->cap_numbers = 0;
    }
}

struct arena *push_json_arena(struct push_json *reader) {
    return &reader->arena;
}

void push_json_assign(struct push_json *reader, size_t first, size_t end,
                      struct push_owner *owner) {
    for (size_t i = first; i < end; i++) {
        reader->updates[i].owner = owner;
    }
}

const struct push_update *push_json_updates(const struct push_json *reader, size_t *ret_n) {
    *ret_n = reader->n_updates;
    return reader->updates;
}

bool push_json_grow(const struct push_json_reading *reading, void **items, size_t n, size_t *cap,
                    size_t size, size_t min_text) {
    const struct arena *arena = &reading->reader->arena;
    if (n < *cap) {
        return true;
    }
    size_t more = (size_t)(reading->json->end - reading->json->at) / min_text + 1;
    more = more > n ? more : n; /* where text comes line by line */
    size_t left = (arena->max - arena->taken) / size + 1;
    more = arena->max > 0 && more > left ? left : more;
    void *grown = reallocarray(*items, n + more, size);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *cap = n + more;
    return true;
}

static int add_update(struct push_json_reading *reading) {
    enum { MIN_TEXT = sizeof("\"\":{\"value\":1}") - 1 };
    struct push_json *reader = reading->reader;
    if (!push_json_grow(reading, (void **)&reader->updates, reader->n_updates, &reader->cap_updates,
                        sizeof(*reader->updates), MIN_TEXT) ||
        !arena_charge(&reader->arena, PUSH_UPDATE_COST)) {
        return arena_fail(&reader->arena, reading->err);
    }
    reader->updates[reader->n_updates++] = reading->update;
    return 0;
}

/* ---- objects ---- */

static enum push_json_key find_key(const char *name, size_t len) {
    size_t i = 0;
    while (i < N_KEYS && (keys[i].len != len || memcmp(keys[i].name, name, len) != 0)) {
        i++;
    }
    return (enum push_json_key)i;
}

static int finish_metric(struct push_json_reading *reading) {
    uint32_t operation = reading->seen & BITS_OPERATION;
    if (operation == 0 || (operation & (operation - 1)) != 0) {
        return json_fail_at(reading->start, reading->err,
                            "%s: expected one of inc, observe, set and total, got %s",
                            reading->message->name, operation == 0 ? "none" : "several");
    }
    if (reading->message->plugin != NULL && reading->message->group != NULL) {
        return json_fail_at(reading->start, reading->err,
                            "%s: is a plugin's or a group's, not of both", reading->message->name);
    }
    if (reading->type != NULL) {
        size_t i = 0;
        while (i < ARRAY_LEN(types) && strcmp(types[i].name, reading->type) != 0) {
            i++;
        }
        if (i == ARRAY_LEN(types)) {
            return json_fail_at(reading->type_place, reading->err,
                                "%s: type: expected counter, gauge, histogram, rate or untyped, "
                                "got \"%.40s\"",
                                reading->message->name, reading->type);
        }
        reading->update.type = types[i].type;
    }
    reading->update.name = reading->message->name;
    return add_update(reading);
}

static int finish_declaration(struct push_json_reading *reading) {
    struct knob_spec *spec = &reading->message->declared;
    spec->name = reading->message->name;
    spec->help = reading->update.help;
    if (reading->type == NULL) {
        return json_fail_at(reading->start, reading->err,
                            "%s: has no type: int, float, bool, string or enum", spec->name);
    }
    if (!knob_type_find(reading->type, &spec->type)) {
        return json_fail_at(reading->type_place, reading->err,
                            "%s: type: expected int, float, bool, string or enum, got \"%.40s\"",
                            spec->name, reading->type);
    }
    return knob_spec_check(spec, reading->err);
}

/* What the object is by what was seen of it, or what it may still become. */
static uint32_t allowed_keys(uint32_t seen) {
    uint32_t allowed = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        allowed |= (seen & ~kinds[i].allowed) == 0 ? kinds[i].allowed : 0;
    }
    return allowed;
}

static int fail_unknown(const struct push_json_reading *reading, struct json_place place,
                        const char *name) {
    struct suggest suggest;
    struct buf hint CLEANUP_BUF = {0};
    suggest_init(&suggest, name);
    for (uint32_t left = allowed_keys(reading->seen); left != 0; left &= left - 1) {
        int key = __builtin_ctz(left);
        suggest_offer(&suggest, keys[key].name, keys[key].len);
    }
    suggest_write(&suggest, "", &hint);
    bool is_metric = (reading->seen & BIT(KEY_METRIC)) != 0;
    if (hint.len == 0 && is_metric && (reading->seen & BITS_OPERATION) == 0) {
        buf_add_str(&hint, "; a metric takes one of inc, observe, set and total");
    }
    return json_fail_at(place, reading->err, "unknown key \"%.80s\"%s", name, buf_str(&hint));
}

/* Sees what the object was and whether its keys belong together. */
static int finish_object(struct push_json_reading *reading) {
    size_t i = 0;
    while (i < ARRAY_LEN(kinds) && (reading->seen & kinds[i].telling) != kinds[i].telling) {
        i++;
    }
    if (i == ARRAY_LEN(kinds)) {
        return json_fail_at(reading->start, reading->err,
                            "expected an object with the key metric, param or hello");
    }
    uint32_t strange = reading->seen & ~kinds[i].allowed;
    if (strange != 0) {
        int key = __builtin_ctz(strange);
        return json_fail_at(reading->places[key], reading->err, "%s does not belong to %s",
                            keys[key].name, kinds[i].what);
    }
    reading->message->kind = kinds[i].kind;
    return kinds[i].kind == PUSH_MESSAGE_METRICS   ? finish_metric(reading)
           : kinds[i].kind == PUSH_MESSAGE_DECLARE ? finish_declaration(reading)
                                                   : 0;
}

/* ---- the form of SageAppMetricsServer: {"fps":{"value":29.7,"timestamp":1628899200.5}} ---- */

/* Takes the object behind a metric's name. */
static int read_plain_metric(struct push_json_reading *reading, const char *name) {
    struct json *json = reading->json;
    struct json_place place = json->key;
    double *value = arena_take(&reading->reader->arena, sizeof(*value));
    bool first = true;
    bool found = false;
    char *key;
    size_t len;
    int r;
    reading->message->name = name;
    if (value == NULL) {
        return arena_fail(&reading->reader->arena, reading->err);
    }
    if (!json_take(json, '{')) {
        return fail_unknown(reading, place, name);
    }
    while ((r = json_next_key(json, &first, &key, &len, reading->err)) > 0) {
        bool is_value = strcmp(key, "value") == 0;
        if (is_value && found) {
            return json_fail_at(json->key, reading->err, "value stands there twice");
        }
        found = found || is_value;
        r = is_value ? json_value(json, value, reading->err) : json_skip(json, reading->err);
        if (r < 0) {
            return r;
        }
    }
    if (r < 0 || !found) {
        return r < 0 ? r : fail_unknown(reading, place, name);
    }
    reading->update.name = name;
    reading->update.type = PUSH_GAUGE;
    reading->update.op = PUSH_SET;
    reading->update.values = value;
    reading->update.n_values = 1;
    return add_update(reading);
}

static int read_plain_metrics(struct push_json_reading *reading, bool first, char *name) {
    size_t len;
    int r = read_plain_metric(reading, name);
    reading->message->kind = PUSH_MESSAGE_METRICS;
    while (r == 0 && (r = json_next_key(reading->json, &first, &name, &len, reading->err)) > 0) {
        r = read_plain_metric(reading, name);
    }
    return r;
}

/* Whether the object at the cursor is that of a metric which happens to be called "group": its
 * figures are numbers, while labels are texts. */
static bool has_figures(struct json json) {
    static const char *const figures[] = {"value\"", "timestamp\""};
    bool found = false;
    if (!json_take(&json, '{') || !json_take(&json, '"')) {
        return false;
    }
    for (size_t i = 0; !found && i < ARRAY_LEN(figures); i++) {
        size_t len = strlen(figures[i]);
        found = (size_t)(json.end - json.at) > len && memcmp(json.at, figures[i], len) == 0;
        json.at += found ? len : 0;
    }
    return found && json_take(&json, ':') && json_peek(&json) != '"';
}

/* ---- any object ---- */

static int read_object(struct push_json_reading *reading) {
    struct json *json = reading->json;
    bool first = true;
    char *name;
    size_t len;
    int r;
    reading->start = json_here(json);
    if (!json_take(json, '{')) {
        return json_fail(json, reading->err, "expected an object: {\"metric\": …}");
    }
    while ((r = json_next_key(json, &first, &name, &len, reading->err)) > 0) {
        enum push_json_key key = find_key(name, len);
        bool object = json_peek(json) == '{';
        bool ours = key != N_KEYS && (BIT(key) & BITS_OBJECT) != 0 &&
                    !(key == KEY_GROUP && has_figures(*json));
        if (reading->seen == 0 && object && !ours) {
            return read_plain_metrics(reading, first, name);
        }
        if (key == N_KEYS) {
            return fail_unknown(reading, json->key, name);
        }
        if ((reading->seen & BIT(key)) != 0) {
            return json_fail_at(json->key, reading->err, "%s stands there twice", name);
        }
        reading->seen |= BIT(key);
        reading->places[key] = json->key;
        reading->value = json_here(json);
        r = push_json_read_key(reading, key);
        if (r < 0) {
            return r;
        }
    }
    return r < 0 ? r : finish_object(reading);
}

int push_json_read(struct push_json *reader, struct json *json, size_t index,
                   struct push_message *message, struct error *err) {
    size_t n_before = reader->n_updates;
    struct json_place places[N_KEYS];
    *message = (struct push_message){.declared = {.min = -INFINITY, .max = INFINITY}};
    struct push_json_reading reading = {
        .reader = reader,
        .json = json,
        .message = message,
        .err = err,
        .places = places,
        .update = {.ttl_ms = PUSH_TTL_DEFAULT, .index = (uint32_t)index},
    };
    int r = read_object(&reading);
    if (r < 0) {
        reader->n_updates = n_before;
    }
    return r;
}
