#include "exporter/channel/push_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/settings/suggest.h"

/* MAX_VALUES: of an enum. MAX_NUMBERS: more of them weigh more than a batch may. */
enum { MAX_TTL_S = 1000000000, MAX_VALUES = 256, MAX_NUMBERS = 16 * PUSH_MAX_UPDATES };
#define MAX_SEQ 9007199254740992.0 /* 2^53 */

/* An object while it is being read. */
struct reading {
    struct push_json *reader;
    struct json *json;
    struct push_message *message;
    struct error *err;
    uint32_t seen;             /* keys */
    struct json_place *places; /* of those */
    struct json_place start;   /* of the object */
    struct json_place value;   /* of the value of the current key */
    size_t detail;             /* what its reader needs to know */
    struct json_place type_place;
    const char *type;
    const char **enum_values; /* those that were read */
    struct push_update update;
};

/* ---- the reader ---- */

struct push_json *push_json_create(void) {
    return mem_zalloc(1, sizeof(struct push_json));
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
    arena_reset(&reader->arena, 256 << 10);
    reader->n_updates = 0;
}

/* ---- pieces ---- */

/* Copies `size` bytes to where they live until the next reset; NULL: the limit is reached. */
static int keep(struct reading *reading, const void *data, size_t size, const void **ret_copy) {
    *ret_copy = arena_copy(&reading->reader->arena, data, size);
    return *ret_copy != NULL ? 0 : arena_fail(&reading->reader->arena, reading->err);
}

static int read_text(struct reading *reading, const char **ret_text) {
    char *text = NULL;
    int r = json_read_string(reading->json, &text, NULL, reading->err);
    *ret_text = text;
    return r;
}

static int add_number(struct reading *reading, double number) {
    struct push_json *reader = reading->reader;
    if (reader->n_numbers == MAX_NUMBERS) {
        return push_update_fail_many(reading->err);
    }
    ARRAY_GROW(&reader->numbers, &reader->cap_numbers, reader->n_numbers + 1);
    reader->numbers[reader->n_numbers++] = number;
    return 0;
}

static int read_one_number(struct json *json, const char *key, void *context, struct error *err) {
    (void)key;
    double number;
    int r = json_read_value(json, &number, err);
    return r < 0 ? r : add_number(context, number);
}

/* Adds the numbers of an array, or a single one, to the reader's. */
static int read_numbers(struct reading *reading) {
    return json_peek(reading->json) == '['
               ? json_each(reading->json, '[', "numbers", read_one_number, reading, reading->err)
               : read_one_number(reading->json, NULL, reading, reading->err);
}

static int keep_numbers(struct reading *reading, const double **ret_numbers, uint32_t *ret_n) {
    const struct push_json *reader = reading->reader;
    const void *kept;
    int r = keep(reading, reader->numbers, reader->n_numbers * sizeof(*reader->numbers), &kept);
    *ret_numbers = kept;
    *ret_n = (uint32_t)reader->n_numbers;
    return r;
}

/* ---- labels ---- */

struct label_list {
    struct label labels[PUSH_JSON_MAX_LABELS + 1];
    size_t n;
};

static int read_label(struct json *json, const char *name, void *context, struct error *err) {
    struct label_list *list = context;
    char *value;
    size_t len;
    if (json_peek(json) != '"') {
        return json_fail(json, err, "label %s: expected a string", name);
    }
    int r = json_read_string(json, &value, &len, err);
    if (r < 0 || len == 0) { /* an empty value means the same as no label */
        return r;
    }
    if (!label_insert(list->labels, &list->n, (struct label){name, value})) {
        return json_fail_at(json->key, err, "duplicate label %s", name);
    }
    return list->n <= PUSH_JSON_MAX_LABELS
               ? 0
               : json_fail_at(json->key, err, "more than %d labels", PUSH_JSON_MAX_LABELS);
}

static int read_labels(struct reading *reading, const struct label **ret_labels, size_t *ret_n) {
    struct label_list list;
    list.n = 0;
    int r = json_each(reading->json, '{', "labels as an object", read_label, &list, reading->err);
    if (r < 0) {
        return r;
    }
    const void *kept;
    r = keep(reading, list.labels, list.n * sizeof(struct label), &kept);
    *ret_labels = kept;
    *ret_n = list.n;
    return r;
}

/* ---- keys ---- */

/* {"counts":[…],"count":n,"sum":s}: the whole state of a histogram. */
struct state {
    struct reading *reading;
    bool has_counts;
    double count, sum;
};

static int read_state_member(struct json *json, const char *key, void *context, struct error *err) {
    struct state *state = context;
    bool is_counts = strcmp(key, "counts") == 0;
    double *number = strcmp(key, "count") == 0 ? &state->count
                     : strcmp(key, "sum") == 0 ? &state->sum
                                               : NULL;
    if (!is_counts && number == NULL) {
        return json_fail_at(json->key, err, "unknown key \"%s\": expected counts, count, sum", key);
    }
    if (is_counts ? state->has_counts : !isnan(*number)) {
        return json_fail_at(json->key, err, "duplicate key %s", key);
    }
    state->has_counts |= is_counts;
    return is_counts ? read_numbers(state->reading) : json_read_value(json, number, err);
}

static int read_state(struct reading *reading) {
    struct state state = {.reading = reading, .count = NAN, .sum = NAN};
    int r = json_each(reading->json, '{', "an object", read_state_member, &state, reading->err);
    if (r < 0) {
        return r;
    }
    if (!state.has_counts || isnan(state.count) || isnan(state.sum)) {
        return json_fail_at(reading->value, reading->err, "expected counts, count and sum");
    }
    r = add_number(reading, state.count);
    return r == 0 ? add_number(reading, state.sum) : r;
}

static int read_operation(struct reading *reading) {
    enum push_op op = (enum push_op)reading->detail;
    struct push_update *update = &reading->update;
    struct push_json *reader = reading->reader;
    reader->n_numbers = 0;
    char c = json_peek(reading->json);
    int r = c == '{' && (op == PUSH_SET || op == PUSH_TOTAL) ? read_state(reading)
            : c == '[' && op != PUSH_OBSERVE
                ? json_fail(reading->json, reading->err, "expected one number, got an array")
                : read_numbers(reading);
    if (r == 0 && reader->n_numbers == 0) {
        r = json_fail_at(reading->value, reading->err, "expected a number, got an empty array");
    }
    update->op = op;
    return r < 0 ? r : keep_numbers(reading, &update->values, &update->n_values);
}

static int read_buckets(struct reading *reading) {
    if (json_peek(reading->json) != '[') {
        return json_fail(reading->json, reading->err, "expected the buckets' bounds as an array");
    }
    reading->reader->n_numbers = 0;
    int r = read_numbers(reading);
    return r < 0 ? r : keep_numbers(reading, &reading->update.bounds, &reading->update.n_bounds);
}

/* Takes a number from 0 to `max`. */
static int read_limited(struct reading *reading, double max, bool whole, const char *expected,
                        double *ret_number) {
    int r = json_read_number(reading->json, ret_number, reading->err);
    bool good = r == 0 && *ret_number >= 0 && *ret_number <= max &&
                (!whole || *ret_number == floor(*ret_number));
    return r < 0 || good ? r : json_fail_at(reading->value, reading->err, "%s", expected);
}

static int read_ttl(struct reading *reading) {
    double seconds;
    int r = read_limited(reading, MAX_TTL_S, false,
                         "ttl: expected seconds from 0 (for ever) to 1e9", &seconds);
    reading->update.ttl_ms = r == 0 ? (int64_t)ceil(seconds * 1e3) : 0;
    return r;
}

static int read_seq(struct reading *reading) {
    double seq;
    int r = read_limited(reading, MAX_SEQ, true, "seq: expected a whole number up to 2^53", &seq);
    reading->message->has_seq = r == 0;
    reading->message->seq = r == 0 ? (uint64_t)seq : 0;
    return r;
}

/* The values of an enum. */
static int read_value_of_enum(struct json *json, const char *key, void *context,
                              struct error *err) {
    (void)key;
    struct reading *reading = context;
    struct knob_spec *spec = &reading->message->declared;
    if (spec->n_values == MAX_VALUES) {
        return json_fail(json, err, "more than %d values", MAX_VALUES);
    }
    int r = read_text(reading, &reading->enum_values[spec->n_values]);
    spec->n_values += r == 0;
    return r;
}

static int read_values(struct reading *reading) {
    const char *values[MAX_VALUES];
    struct knob_spec *spec = &reading->message->declared;
    reading->enum_values = values;
    int r = json_each(reading->json, '[', "the values as an array", read_value_of_enum, reading,
                      reading->err);
    const void *kept = NULL;
    r = r < 0 ? r : keep(reading, values, spec->n_values * sizeof(values[0]), &kept);
    spec->values = kept;
    return r;
}

static int read_hello_member(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *reading = context;
    struct push_hello *hello = &reading->message->hello;
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        {"container", &hello->container}, {"job", &hello->job}, {"namespace", &hello->namespace},
        {"plugin", &hello->plugin},       {"pod", &hello->pod}, {"start", &hello->start},
    };
    size_t i = 0;
    while (i < ARRAY_LEN(texts) && strcmp(texts[i].key, key) != 0) {
        i++;
    }
    bool labels = strcmp(key, "labels") == 0;
    if (i < ARRAY_LEN(texts) ? *texts[i].text != NULL : labels && hello->labels != NULL) {
        return json_fail_at(json->key, err, "duplicate key %s", key);
    }
    /* Later clients may send more keys. */
    return i < ARRAY_LEN(texts) ? read_text(reading, texts[i].text)
           : labels             ? read_labels(reading, &hello->labels, &hello->n_labels)
                                : json_skip(json, err);
}

static int read_hello(struct reading *reading) {
    reading->message->kind = PUSH_MESSAGE_HELLO; /* even if it cannot be read */
    return json_each(reading->json, '{', "hello as an object", read_hello_member, reading,
                     reading->err);
}

static int read_group(struct reading *reading) {
    return read_labels(reading, &reading->message->group, &reading->message->n_group);
}

static int read_metric_labels(struct reading *reading) {
    size_t n = 0;
    int r = read_labels(reading, &reading->update.labels, &n);
    reading->update.n_labels = (uint32_t)n;
    return r;
}

static int read_type(struct reading *reading) {
    reading->type_place = reading->value;
    return read_text(reading, &reading->type);
}

/* The member of the message that the key means. */
static void *member(const struct reading *reading) {
    return (char *)reading->message + reading->detail;
}

static int read_member_text(struct reading *reading) {
    return read_text(reading, member(reading));
}

static int read_member_number(struct reading *reading) {
    return json_read_number(reading->json, member(reading), reading->err);
}

static int read_member_value(struct reading *reading) {
    return knob_value_read(reading->json, member(reading), reading->err);
}

/* ---- tables ---- */

/* The kinds of objects that a key may be in. */
enum { IN_METRIC = 1, IN_HELLO = 2, IN_APPLIED = 4, IN_DECLARATION = 8, IN_EMPTY = 16 };
enum { IN_ALL = IN_METRIC | IN_HELLO | IN_APPLIED | IN_DECLARATION | IN_EMPTY };

#define AT(member) offsetof(struct push_message, member)

/* Every key of a message: in which kinds, whether it may be an object, its reader with a detail. */
#define ALL_KEYS(KEY)                                                                              \
    KEY(applied, IN_APPLIED, false, read_member_value, AT(applied))                                \
    KEY(buckets, IN_METRIC, false, read_buckets, 0)                                                \
    KEY(default, IN_DECLARATION, false, read_member_value, AT(declared.initial))                   \
    KEY(group, IN_METRIC, true, read_group, 0)                                                     \
    KEY(hello, IN_HELLO, true, read_hello, 0)                                                      \
    KEY(help, IN_METRIC | IN_DECLARATION, false, read_member_text, AT(declared.help))              \
    KEY(inc, IN_METRIC, false, read_operation, PUSH_INC)                                           \
    KEY(labels, IN_METRIC, true, read_metric_labels, 0)                                            \
    KEY(max, IN_DECLARATION, false, read_member_number, AT(declared.max))                          \
    KEY(metric, IN_METRIC, false, read_member_text, AT(name))                                      \
    KEY(min, IN_DECLARATION, false, read_member_number, AT(declared.min))                          \
    KEY(observe, IN_METRIC, false, read_operation, PUSH_OBSERVE)                                   \
    KEY(param, IN_APPLIED | IN_DECLARATION, false, read_member_text, AT(name))                     \
    KEY(plugin, IN_METRIC | IN_APPLIED | IN_DECLARATION, false, read_member_text, AT(plugin))      \
    KEY(seq, IN_ALL, false, read_seq, 0)                                                           \
    KEY(set, IN_METRIC, true, read_operation, PUSH_SET)                                            \
    KEY(step, IN_DECLARATION, false, read_member_number, AT(declared.step))                        \
    KEY(total, IN_METRIC, true, read_operation, PUSH_TOTAL)                                        \
    KEY(ttl, IN_METRIC, false, read_ttl, 0)                                                        \
    KEY(type, IN_METRIC | IN_DECLARATION, false, read_type, 0)                                     \
    KEY(unit, IN_DECLARATION, false, read_member_text, AT(declared.unit))                          \
    KEY(values, IN_DECLARATION, false, read_values, 0)

enum key {
#define KEY(name, ...) KEY_##name,
    ALL_KEYS(KEY)
#undef KEY
        N_KEYS /* also: unknown */
};

static const struct {
    const char *name;
    size_t len;
    unsigned kinds;
    bool is_object;
    int (*read)(struct reading *reading);
    size_t detail;
} keys[N_KEYS] = {
#define KEY(name, ...) {#name, sizeof(#name) - 1, __VA_ARGS__},
    ALL_KEYS(KEY)
#undef KEY
};

#define BIT(key) (UINT32_C(1) << (key))
#define BITS_OPERATION (BIT(KEY_inc) | BIT(KEY_observe) | BIT(KEY_set) | BIT(KEY_total))

/* ---- objects ---- */

static int add_update(struct reading *reading) {
    struct push_json *reader = reading->reader;
    if (reader->n_updates == PUSH_MAX_UPDATES) {
        return push_update_fail_many(reading->err);
    }
    ARRAY_GROW(&reader->updates, &reader->cap_updates, reader->n_updates + 1);
    reader->updates[reader->n_updates++] = reading->update;
    return 0;
}

static enum key find_key(const char *name, size_t len) {
    size_t i = 0;
    while (i < N_KEYS && (keys[i].len != len || memcmp(keys[i].name, name, len) != 0)) {
        i++;
    }
    return (enum key)i;
}

static const struct {
    const char *name;
    enum push_type type;
} types[] = {
    {"counter", PUSH_COUNTER}, {"gauge", PUSH_GAUGE},     {"histogram", PUSH_HISTOGRAM},
    {"rate", PUSH_RATE},       {"untyped", PUSH_UNTYPED},
};

static int finish_metric(struct reading *reading) {
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
    reading->update.help = reading->message->declared.help;
    return add_update(reading);
}

static int finish_declaration(struct reading *reading) {
    struct knob_spec *spec = &reading->message->declared;
    spec->name = reading->message->name;
    if (reading->type == NULL) {
        return json_fail_at(reading->start, reading->err,
                            "%s: has no type: int, float, bool, string, enum or any", spec->name);
    }
    if (!knob_type_find(reading->type, &spec->type)) {
        return json_fail_at(
            reading->type_place, reading->err,
            "%s: type: expected int, float, bool, string, enum or any, got \"%.40s\"", spec->name,
            reading->type);
    }
    return knob_spec_check(spec, reading->err);
}

static int fail_unknown(const struct reading *reading, struct json_place place, const char *name) {
    struct suggest suggest;
    struct buf hint CLEANUP_BUF = {0};
    unsigned possible = IN_ALL; /* what the object may become */
    for (uint32_t left = reading->seen; left != 0; left &= left - 1) {
        possible &= keys[__builtin_ctz(left)].kinds;
    }
    suggest_init(&suggest, name);
    for (size_t i = 0; i < N_KEYS; i++) {
        if ((keys[i].kinds & possible) != 0) {
            suggest_offer(&suggest, keys[i].name, keys[i].len);
        }
    }
    suggest_write(&suggest, "", &hint);
    bool is_metric = (reading->seen & BIT(KEY_metric)) != 0;
    if (hint.len == 0 && is_metric && (reading->seen & BITS_OPERATION) == 0) {
        buf_add_str(&hint, "; a metric takes one of inc, observe, set and total");
    }
    return json_fail_at(place, reading->err, "unknown key \"%.80s\"%s", name, buf_str(&hint));
}

/* The kinds of objects, by the keys that distinguish them. */
static const struct {
    uint32_t required;
    unsigned kind;
    enum push_message_kind message;
    const char *what;
    int (*finish)(struct reading *reading); /* NULL: there is nothing more to do */
} kinds[] = {
    {BIT(KEY_metric), IN_METRIC, PUSH_MESSAGE_METRICS, "a metric", finish_metric},
    {BIT(KEY_hello), IN_HELLO, PUSH_MESSAGE_HELLO, "a hello", NULL},
    {BIT(KEY_param) | BIT(KEY_applied), IN_APPLIED, PUSH_MESSAGE_APPLIED, "an applied param", NULL},
    {BIT(KEY_param), IN_DECLARATION, PUSH_MESSAGE_DECLARE, "a param", finish_declaration},
    {BIT(KEY_seq), IN_EMPTY, PUSH_MESSAGE_EMPTY, "a sequence number", NULL},
};

/* Sees what the object was and whether its keys belong together. */
static int finish_object(struct reading *reading) {
    size_t i = 0;
    while (i < ARRAY_LEN(kinds) && (reading->seen & kinds[i].required) != kinds[i].required) {
        i++;
    }
    if (i == ARRAY_LEN(kinds)) {
        return json_fail_at(reading->start, reading->err,
                            "expected an object with the key metric, param or hello");
    }
    for (uint32_t left = reading->seen; left != 0; left &= left - 1) {
        int key = __builtin_ctz(left);
        if ((keys[key].kinds & kinds[i].kind) == 0) {
            return json_fail_at(reading->places[key], reading->err, "%s does not belong to %s",
                                keys[key].name, kinds[i].what);
        }
    }
    reading->message->kind = kinds[i].message;
    return kinds[i].finish != NULL ? kinds[i].finish(reading) : 0;
}

/* ---- the form of SageAppMetricsServer: {"fps":{"value":29.7,"timestamp":1628899200.5}} ---- */

struct plain_metric {
    bool has_value;
    double value;
};

static int read_plain_member(struct json *json, const char *key, void *context, struct error *err) {
    struct plain_metric *metric = context;
    if (strcmp(key, "value") != 0) {
        return json_skip(json, err);
    }
    if (metric->has_value) {
        return json_fail_at(json->key, err, "duplicate key value");
    }
    metric->has_value = true;
    return json_read_value(json, &metric->value, err);
}

/* Takes the object behind a metric's name. */
static int read_plain_metric(struct reading *reading, const char *name) {
    struct json_place place = reading->json->key;
    struct plain_metric metric = {0};
    struct push_update *update = &reading->update;
    const void *kept;
    int r = 0;
    reading->message->name = name;
    if (json_peek(reading->json) == '{') {
        r = json_each(reading->json, '{', "an object", read_plain_member, &metric, reading->err);
    }
    if (r == 0 && !metric.has_value) {
        return fail_unknown(reading, place, name);
    }
    r = r < 0 ? r : keep(reading, &metric.value, sizeof(metric.value), &kept);
    if (r < 0) {
        return r;
    }
    update->name = name;
    update->type = PUSH_GAUGE;
    update->op = PUSH_SET;
    update->values = kept;
    update->n_values = 1;
    return add_update(reading);
}

static int read_plain_metrics(struct reading *reading, bool first, char *name) {
    int r = read_plain_metric(reading, name);
    reading->message->kind = PUSH_MESSAGE_METRICS;
    while (r == 0 && (r = json_next_key(reading->json, &first, &name, NULL, reading->err)) > 0) {
        r = read_plain_metric(reading, name);
    }
    return r;
}

/* Whether the object belongs to a metric called "group": it has numbers, while labels are texts. */
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

static int read_object(struct reading *reading) {
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
        enum key key = find_key(name, len);
        bool object = json_peek(json) == '{';
        bool ours =
            key != N_KEYS && keys[key].is_object && !(key == KEY_group && has_figures(*json));
        if (reading->seen == 0 && object && !ours) {
            return read_plain_metrics(reading, first, name);
        }
        if (key == N_KEYS) {
            return fail_unknown(reading, json->key, name);
        }
        if ((reading->seen & BIT(key)) != 0) {
            return json_fail_at(json->key, reading->err, "duplicate key %s", name);
        }
        reading->seen |= BIT(key);
        reading->places[key] = json->key;
        reading->value = json_here(json);
        reading->detail = keys[key].detail;
        r = keys[key].read(reading);
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
    struct reading reading = {
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
