#include "exporter/channel/push_json_keys.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TTL_S = 1000000000 };
#define MAX_SEQ 9007199254740992.0 /* 2^53 */

/* ---- pieces ---- */

static int out_of_memory(const struct push_json_reading *reading) {
    return arena_fail(&reading->reader->arena, reading->err);
}

static int read_text(struct push_json_reading *reading, const char **ret_text) {
    char *text;
    size_t len;
    int r = json_string(reading->json, &text, &len, reading->err);
    if (r == 0) {
        *ret_text = text;
    }
    return r;
}

/* They are counted for the copy that is going to be kept, and for this one where it is longest. */
static bool push_number(struct push_json_reading *reading, double number) {
    enum { MIN_TEXT = sizeof("1,") - 1 };
    struct push_json *reader = reading->reader;
    bool longest = reader->n_numbers == reader->max_numbers;
    if (!push_json_grow(reading, (void **)&reader->numbers, reader->n_numbers, &reader->cap_numbers,
                        sizeof(number), MIN_TEXT) ||
        (longest && !arena_charge(&reader->arena, sizeof(number)))) {
        return false;
    }
    reader->max_numbers += longest ? 1 : 0;
    reader->numbers[reader->n_numbers++] = number;
    return true;
}

/* Adds the numbers of an array, or a single one, to the reader's. */
static int read_numbers(struct push_json_reading *reading) {
    struct json *json = reading->json;
    double number;
    bool first = true;
    if (json_peek(json) != '[') {
        int r = json_value(json, &number, reading->err);
        return r < 0 ? r : push_number(reading, number) ? 0 : out_of_memory(reading);
    }
    json->at++;
    int r;
    while ((r = json_next_element(json, &first, reading->err)) > 0) {
        r = json_value(json, &number, reading->err);
        if (r < 0) {
            return r;
        }
        if (!push_number(reading, number)) {
            return out_of_memory(reading);
        }
    }
    return r;
}

/* A copy of the reader's numbers that stays. */
static int keep_numbers(struct push_json_reading *reading, const double **ret_numbers,
                        uint32_t *ret_n) {
    struct push_json *reader = reading->reader;
    double *kept = arena_copy(&reader->arena, reader->numbers, reader->n_numbers * sizeof(*kept));
    if (kept == NULL) {
        return out_of_memory(reading);
    }
    *ret_numbers = kept;
    *ret_n = (uint32_t)reader->n_numbers;
    return 0;
}

/* ---- labels ---- */

/* Puts a label where it belongs by name; false where the name is there already. */
static bool insert_label(struct label *labels, size_t n, struct label label) {
    size_t at = n;
    while (at > 0 && strcmp(labels[at - 1].name, label.name) > 0) {
        labels[at] = labels[at - 1];
        at--;
    }
    labels[at] = label;
    return at == 0 || strcmp(labels[at - 1].name, label.name) != 0;
}

static int read_labels(struct push_json_reading *reading, const struct label **ret_labels,
                       size_t *ret_n) {
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
        if (!insert_label(labels, n, label)) {
            return json_fail_at(json->key, err, "label %s stands there twice", name);
        }
        n++;
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
        return out_of_memory(reading);
    }
    *ret_labels = kept;
    *ret_n = n_kept;
    return r;
}

/* ---- keys ---- */

static int read_counts(struct push_json_reading *reading, bool *ret_counts, double *ret_count,
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
            return json_fail_at(json->key, reading->err, "%s stands there twice", key);
        }
        *ret_counts |= counts;
        r = counts ? read_numbers(reading) : json_value(json, number, reading->err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* {"counts":[…],"count":n,"sum":s}: the whole state of a histogram. */
static int read_state(struct push_json_reading *reading) {
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
    return push_number(reading, count) && push_number(reading, sum) ? 0 : out_of_memory(reading);
}

static int read_operation(struct push_json_reading *reading, enum push_json_key key) {
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

static int read_buckets(struct push_json_reading *reading) {
    if (json_peek(reading->json) != '[') {
        return json_fail(reading->json, reading->err, "expected the buckets' bounds as an array");
    }
    reading->reader->n_numbers = 0;
    int r = read_numbers(reading);
    return r < 0 ? r : keep_numbers(reading, &reading->update.bounds, &reading->update.n_bounds);
}

static int read_ttl(struct push_json_reading *reading) {
    double seconds;
    int r = json_number(reading->json, &seconds, reading->err);
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

static int read_seq(struct push_json_reading *reading) {
    double seq;
    int r = json_number(reading->json, &seq, reading->err);
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
static int read_values(struct push_json_reading *reading) {
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
    return r < 0 ? r : spec->values == NULL ? out_of_memory(reading) : 0;
}

static int read_hello(struct push_json_reading *reading) {
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
            return json_fail_at(reading->json->key, reading->err, "%s stands there twice", key);
        }
        /* Later clients may say more of themselves. */
        r = i < ARRAY_LEN(texts) ? read_text(reading, texts[i].text)
            : labels             ? read_labels(reading, &hello->labels, &hello->n_labels)
                                 : json_skip(reading->json, reading->err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

int push_json_read_key(struct push_json_reading *reading, enum push_json_key key) {
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
        return json_number(reading->json, &spec->max, reading->err);
    case KEY_METRIC:
    case KEY_PARAM:
        return read_text(reading, &reading->message->name);
    case KEY_MIN:
        return json_number(reading->json, &spec->min, reading->err);
    case KEY_PLUGIN:
        return read_text(reading, &reading->message->plugin);
    case KEY_SEQ:
        return read_seq(reading);
    case KEY_STEP:
        return json_number(reading->json, &spec->step, reading->err);
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
