#include "exporter/channel/push_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/settings/suggest.h"

enum { KEPT_BYTES = 256 * 1024, KEPT_UPDATES = 1024, KEPT_NUMBERS = 4096 };

enum { MAX_TTL_S = 1000000000 };
#define MAX_SEQ 9007199254740992.0 /* 2^53 */

/* Every key that an object of ours may have. */
enum key {
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
    N_KEYS /* also: unknown */
};

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

/* The kinds of objects, by the keys that distinguish them. */
static const struct {
    uint32_t required;
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
struct reading {
    struct push_json *reader;
    struct json *json;
    struct push_message *message;
    struct error *err;
    uint32_t seen;
    struct json_place *places; /* of the keys that were seen */
    struct json_place start;   /* of the object */
    struct json_place value;   /* of the value of the current key */
    struct json_place type_place;
    const char *type;
    struct push_update update;
};

/* ---- the reader ---- */

struct push_json *push_json_create(void) {
    return mem_zalloc(1, sizeof(struct push_json));
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

/* Makes room behind `n` items for all that the rest of the text can hold with `min_text` bytes
 * each, but not beyond the limit of memory, so that the items move once at most. Room that is not
 * used is never touched. */
static void *grow(const struct reading *reading, void *items, size_t n, size_t *cap, size_t size,
                  size_t min_text) {
    const struct arena *arena = &reading->reader->arena;
    if (n < *cap) {
        return items;
    }
    size_t more = (size_t)(reading->json->end - reading->json->at) / min_text + 1;
    more = more > n ? more : n; /* where text comes line by line */
    size_t left = (arena->max - arena->taken) / size + 1;
    more = arena->max > 0 && more > left ? left : more;
    *cap = n + more;
    return mem_resize(items, *cap, size);
}

/* ---- pieces ---- */

/* The limit of memory is reached. */
static int fail_full(const struct reading *reading) {
    return arena_fail(&reading->reader->arena, reading->err);
}

static int read_text(struct reading *reading, const char **ret_text) {
    char *text;
    size_t len;
    int r = json_read_string(reading->json, &text, &len, reading->err);
    if (r == 0) {
        *ret_text = text;
    }
    return r;
}

/* Numbers are charged for the copy that is kept, and for this array if it is the longest so far. */
static bool push_number(struct reading *reading, double number) {
    enum { MIN_TEXT = sizeof("1,") - 1 };
    struct push_json *reader = reading->reader;
    bool longest = reader->n_numbers == reader->max_numbers;
    if (longest && !arena_charge(&reader->arena, sizeof(number))) {
        return false;
    }
    reader->numbers = grow(reading, reader->numbers, reader->n_numbers, &reader->cap_numbers,
                           sizeof(number), MIN_TEXT);
    reader->max_numbers += longest ? 1 : 0;
    reader->numbers[reader->n_numbers++] = number;
    return true;
}

/* Adds the numbers of an array, or a single one, to the reader's. */
static int read_numbers(struct reading *reading) {
    struct json *json = reading->json;
    double number;
    bool first = true;
    if (json_peek(json) != '[') {
        int r = json_read_value(json, &number, reading->err);
        return r < 0 ? r : push_number(reading, number) ? 0 : fail_full(reading);
    }
    json->at++;
    int r;
    while ((r = json_next_element(json, &first, reading->err)) > 0) {
        r = json_read_value(json, &number, reading->err);
        if (r < 0) {
            return r;
        }
        if (!push_number(reading, number)) {
            return fail_full(reading);
        }
    }
    return r;
}

/* A copy of the reader's numbers that stays. */
static int keep_numbers(struct reading *reading, const double **ret_numbers, uint32_t *ret_n) {
    struct push_json *reader = reading->reader;
    double *kept = arena_copy(&reader->arena, reader->numbers, reader->n_numbers * sizeof(*kept));
    if (kept == NULL) {
        return fail_full(reading);
    }
    *ret_numbers = kept;
    *ret_n = (uint32_t)reader->n_numbers;
    return 0;
}

/* ---- labels ---- */

static int read_labels(struct reading *reading, const struct label **ret_labels, size_t *ret_n) {
    struct label labels[PUSH_JSON_MAX_LABELS + 1];
    struct json *json = reading->json;
    struct error *err = reading->err;
    size_t n = 0;
    bool first = true;
    char *name;
    size_t len;
    int r;
    if (!json_take(json, '{')) {
        return json_fail(json, err, "expected labels as an object");
    }
    while ((r = json_next_key(json, &first, &name, &len, err)) > 0) {
        struct label label = {.name = name, .value = ""};
        if (json_peek(json) != '"') {
            return json_fail(json, err, "label %s: expected a string", name);
        }
        r = read_text(reading, &label.value);
        if (r < 0) {
            return r;
        }
        if (!label_insert(labels, &n, label)) {
            return json_fail_at(json->key, err, "duplicate label %s", name);
        }
        if (n > PUSH_JSON_MAX_LABELS) {
            return json_fail_at(json->key, err, "more than %d labels", PUSH_JSON_MAX_LABELS);
        }
    }
    /* An empty value means the same as no label. */
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        labels[n_kept] = labels[i];
        n_kept += labels[i].value[0] != '\0';
    }
    struct label *kept = arena_copy(&reading->reader->arena, labels, n_kept * sizeof(*kept));
    if (kept == NULL) {
        return fail_full(reading);
    }
    *ret_labels = kept;
    *ret_n = n_kept;
    return r;
}

/* ---- keys ---- */

static int read_counts(struct reading *reading, bool *ret_counts, double *ret_count,
                       double *ret_sum) {
    struct json *json = reading->json;
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, reading->err)) > 0) {
        bool counts = strcmp(key, "counts") == 0;
        double *number = strcmp(key, "count") == 0 ? ret_count
                         : strcmp(key, "sum") == 0 ? ret_sum
                                                   : NULL;
        if (!counts && number == NULL) {
            return json_fail_at(json->key, reading->err,
                                "unknown key \"%s\": expected counts, count, sum", key);
        }
        if (counts ? *ret_counts : !isnan(*number)) {
            return json_fail_at(json->key, reading->err, "duplicate key %s", key);
        }
        *ret_counts |= counts;
        r = counts ? read_numbers(reading) : json_read_value(json, number, reading->err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* {"counts":[…],"count":n,"sum":s}: the whole state of a histogram. */
static int read_state(struct reading *reading) {
    bool counts = false;
    double count = NAN;
    double sum = NAN;
    reading->json->at++;
    int r = read_counts(reading, &counts, &count, &sum);
    if (r < 0) {
        return r;
    }
    if (!counts || isnan(count) || isnan(sum)) {
        return json_fail_at(reading->value, reading->err, "expected counts, count and sum");
    }
    return push_number(reading, count) && push_number(reading, sum) ? 0 : fail_full(reading);
}

static int read_operation(struct reading *reading, enum key key) {
    static const enum push_op operations[N_KEYS] = {
        [KEY_INC] = PUSH_INC,
        [KEY_OBSERVE] = PUSH_OBSERVE,
        [KEY_SET] = PUSH_SET,
        [KEY_TOTAL] = PUSH_TOTAL,
    };
    struct push_update *update = &reading->update;
    struct push_json *reader = reading->reader;
    reader->n_numbers = 0;
    char c = json_peek(reading->json);
    int r = c == '{' && (key == KEY_SET || key == KEY_TOTAL) ? read_state(reading)
            : c == '[' && key != KEY_OBSERVE
                ? json_fail(reading->json, reading->err, "expected one number, got an array")
                : read_numbers(reading);
    if (r == 0 && reader->n_numbers == 0) {
        r = json_fail_at(reading->value, reading->err, "expected a number, got an empty array");
    }
    update->op = operations[key];
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

static int read_ttl(struct reading *reading) {
    double seconds;
    int r = json_read_number(reading->json, &seconds, reading->err);
    if (r < 0) {
        return r;
    }
    if (!(seconds >= 0 && seconds <= MAX_TTL_S)) {
        return json_fail_at(reading->value, reading->err,
                            "ttl: expected seconds from 0 (for ever) to 1e9");
    }
    reading->update.ttl_ms = (int64_t)ceil(seconds * 1e3);
    return 0;
}

static int read_seq(struct reading *reading) {
    double seq;
    int r = json_read_number(reading->json, &seq, reading->err);
    if (r < 0) {
        return r;
    }
    if (!(seq >= 0 && seq <= MAX_SEQ && seq == floor(seq))) {
        return json_fail_at(reading->value, reading->err,
                            "seq: expected a whole number up to 2^53");
    }
    reading->message->has_seq = true;
    reading->message->seq = (uint64_t)seq;
    return 0;
}

/* The values of an enum. */
static int read_values(struct reading *reading) {
    enum { MAX_VALUES = 256 };
    const char *values[MAX_VALUES];
    struct knob_spec *spec = &reading->message->declared;
    size_t n = 0;
    bool first = true;
    int r;
    if (!json_take(reading->json, '[')) {
        return json_fail(reading->json, reading->err, "expected the values as an array");
    }
    while ((r = json_next_element(reading->json, &first, reading->err)) > 0) {
        if (n == MAX_VALUES) {
            return json_fail(reading->json, reading->err, "more than %d values", MAX_VALUES);
        }
        r = read_text(reading, &values[n++]);
        if (r < 0) {
            return r;
        }
    }
    spec->values = arena_copy(&reading->reader->arena, values, n * sizeof(values[0]));
    spec->n_values = n;
    return r < 0 ? r : spec->values == NULL ? fail_full(reading) : 0;
}

static int read_hello(struct reading *reading) {
    struct push_hello *hello = &reading->message->hello;
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        {"container", &hello->container}, {"job", &hello->job}, {"namespace", &hello->namespace},
        {"plugin", &hello->plugin},       {"pod", &hello->pod}, {"start", &hello->start},
    };
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(reading->json, '{')) {
        return json_fail(reading->json, reading->err, "expected hello as an object");
    }
    while ((r = json_next_key(reading->json, &first, &key, &len, reading->err)) > 0) {
        size_t i = 0;
        while (i < ARRAY_LEN(texts) && strcmp(texts[i].key, key) != 0) {
            i++;
        }
        bool labels = strcmp(key, "labels") == 0;
        if (i < ARRAY_LEN(texts) ? *texts[i].text != NULL : labels && hello->labels != NULL) {
            return json_fail_at(reading->json->key, reading->err, "duplicate key %s", key);
        }
        /* Later clients may send more keys. */
        r = i < ARRAY_LEN(texts) ? read_text(reading, texts[i].text)
            : labels             ? read_labels(reading, &hello->labels, &hello->n_labels)
                                 : json_skip(reading->json, reading->err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static int read_key(struct reading *reading, enum key key) {
    struct knob_spec *spec = &reading->message->declared;
    struct push_update *update = &reading->update;
    switch (key) {
    case KEY_APPLIED:
        return knob_value_read(reading->json, &reading->message->applied, reading->err);
    case KEY_BUCKETS:
        return read_buckets(reading);
    case KEY_DEFAULT:
        return knob_value_read(reading->json, &spec->initial, reading->err);
    case KEY_GROUP:
        return read_labels(reading, &reading->message->group, &reading->message->n_group);
    case KEY_HELLO:
        reading->message->kind = PUSH_MESSAGE_HELLO; /* even if it cannot be read */
        return read_hello(reading);
    case KEY_HELP:
        return read_text(reading, &update->help);
    case KEY_LABELS: {
        size_t n = 0;
        int r = read_labels(reading, &update->labels, &n);
        update->n_labels = (uint32_t)n;
        return r;
    }
    case KEY_MAX:
        return json_read_number(reading->json, &spec->max, reading->err);
    case KEY_METRIC:
    case KEY_PARAM:
        return read_text(reading, &reading->message->name);
    case KEY_MIN:
        return json_read_number(reading->json, &spec->min, reading->err);
    case KEY_PLUGIN:
        return read_text(reading, &reading->message->plugin);
    case KEY_SEQ:
        return read_seq(reading);
    case KEY_STEP:
        return json_read_number(reading->json, &spec->step, reading->err);
    case KEY_TTL:
        return read_ttl(reading);
    case KEY_TYPE:
        reading->type_place = reading->value;
        return read_text(reading, &reading->type);
    case KEY_UNIT:
        return read_text(reading, &spec->unit);
    case KEY_VALUES:
        return read_values(reading);
    default:
        return read_operation(reading, key);
    }
}

/* ---- objects ---- */

static int add_update(struct reading *reading) {
    enum { MIN_TEXT = sizeof("\"\":{\"value\":1}") - 1 };
    struct push_json *reader = reading->reader;
    if (!arena_charge(&reader->arena, PUSH_UPDATE_COST)) {
        return fail_full(reading);
    }
    reader->updates = grow(reading, reader->updates, reader->n_updates, &reader->cap_updates,
                           sizeof(*reader->updates), MIN_TEXT);
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
    return add_update(reading);
}

static int finish_declaration(struct reading *reading) {
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

static int fail_unknown(const struct reading *reading, struct json_place place, const char *name) {
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
static int finish_object(struct reading *reading) {
    size_t i = 0;
    while (i < ARRAY_LEN(kinds) && (reading->seen & kinds[i].required) != kinds[i].required) {
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
static int read_plain_metric(struct reading *reading, const char *name) {
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
            return json_fail_at(json->key, reading->err, "duplicate key value");
        }
        found = found || is_value;
        r = is_value ? json_read_value(json, value, reading->err) : json_skip(json, reading->err);
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

static int read_plain_metrics(struct reading *reading, bool first, char *name) {
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
        bool ours = key != N_KEYS && (BIT(key) & BITS_OBJECT) != 0 &&
                    !(key == KEY_GROUP && has_figures(*json));
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
        r = read_key(reading, key);
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
