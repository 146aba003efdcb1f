#include "profiler/record/read.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/hash.h"
#include "exporter/core/json.h"
#include "exporter/core/memory.h"

/* ---- words ---- */

static const char *const kinds[] = {
    [RECORD_END] = "end",       [RECORD_FINISHED] = "finished", [RECORD_LOST] = "lost",
    [RECORD_PHASE] = "phase",   [RECORD_RUN] = "run",           [RECORD_SAMPLE] = "sample",
    [RECORD_SERIES] = "series", [RECORD_TARGET] = "target",
};

const char *const record_types[] = {
    [RECORD_COUNTER] = "counter",         [RECORD_GAUGE] = "gauge",
    [RECORD_BUCKET] = "histogram_bucket", [RECORD_COUNT] = "histogram_count",
    [RECORD_SUM] = "histogram_sum",
};

const char *const record_phases[] = {
    [PHASE_NONE] = "",   [PHASE_BASELINE] = "baseline", [PHASE_COOLDOWN] = "cooldown",
    [PHASE_RUN] = "run", [PHASE_STOP] = "stop",         [PHASE_WARMUP] = "warmup",
};

/* The index of a word; -EINVAL for an unknown one. */
static int find_word(const char *const *words, size_t n, const char *what, const char *text,
                     struct error *err) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i], text) == 0 && text[0] != '\0') {
            return (int)i;
        }
    }
    return error_set(err, -EINVAL, "unknown %s \"%s\"", what, text);
}

static const char app[] = "app.";

bool record_key_is_app(const char *key) {
    return strncmp(key, app, strlen(app)) == 0;
}

const char *record_short_key(const char *key) {
    return key + (record_key_is_app(key) ? strlen(app) : 0);
}

/* ---- series ---- */

const struct record_series *record_find(const struct record *record, const char *key) {
    size_t cursor = 0;
    const struct record_series *series;
    uint32_t hash = hash_bytes(key, strlen(key));
    while ((series = hash_index_next(&record->by_key, hash, &cursor)) != NULL) {
        if (strcmp(series->key, key) == 0) {
            return series;
        }
    }
    return NULL;
}

/* Whether `key` is a name, or a name and labels in braces. */
static bool is_key(const char *key) {
    size_t name = strcspn(key, "{} \t\r\n\",=");
    size_t len = strlen(key);
    return name > 0 && (name == len || (key[name] == '{' && len > name + 1 && key[len - 1] == '}'));
}

/* The unit in a Prometheus name: "s" of `inference_seconds_sum`. */
static const char *unit_in(const char *name, size_t len) {
    static const char *const parts[] = {"_total", "_sum"};
    static const char *const units[][2] = {
        {"_bytes", "B"},     {"_celsius", "celsius"}, {"_joules", "J"},
        {"_ratio", "ratio"}, {"_seconds", "s"},       {"_watts", "W"},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t n = strlen(parts[i]);
        len -= len > n && strncmp(name + len - n, parts[i], n) == 0 ? n : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        size_t n = strlen(units[i][0]);
        if (len > n && strncmp(name + len - n, units[i][0], n) == 0) {
            return units[i][1];
        }
    }
    return "";
}

static const char *copy(struct record *record, const char *text, size_t len) {
    char *to = arena_take(&record->arena, len + 1);
    memcpy(to, text, len);
    to[len] = '\0';
    return to;
}

static int add_series(struct record *record, const char *key, enum record_type type,
                      struct error *err) {
    if (record->n_series == RECORD_MAX_SERIES) {
        return error_set(err, -EINVAL, "more than %d series", RECORD_MAX_SERIES);
    }
    const char *unit = json_string_value(json_object_get(record->object, "unit"));
    const char *help = json_string_value(json_object_get(record->object, "help"));
    size_t len = strlen(key), name_len = strcspn(key, "{");
    unit = unit != NULL && unit[0] != '\0' ? unit : unit_in(key, name_len);
    struct record_series *series = arena_take(&record->arena, sizeof(*series));
    *series = (struct record_series){
        .index = record->n_series,
        .key = copy(record, key, len),
        .name = copy(record, key, name_len),
        .labels = name_len < len ? copy(record, key + name_len + 1, len - name_len - 2) : "",
        .unit = copy(record, unit, strlen(unit)),
        .help = help != NULL ? copy(record, help, strlen(help)) : "",
        .type = type,
    };
    ARRAY_GROW(&record->series, &record->cap_series, record->n_series + 1);
    record->series[record->n_series++] = series;
    hash_index_add(&record->by_key, hash_bytes(key, len), series);
    return 0;
}

static int parse_series(struct record *record, struct error *err) {
    const char *key = json_string_value(json_object_get(record->object, "key"));
    const char *type_name = json_string_value(json_object_get(record->object, "type"));
    if (key == NULL || type_name == NULL || !is_key(key)) {
        return error_set(err, -EINVAL, "a series needs \"key\" and \"type\"");
    }
    int type = find_word(record_types, ARRAY_LEN(record_types), "type", type_name, err);
    if (type < 0) {
        return type;
    }
    const struct record_series *known = record_find(record, key);
    if (known == NULL) {
        return add_series(record, key, (enum record_type)type, err);
    }
    return known->type == (enum record_type)type
               ? 0
               : error_set(err, -EINVAL, "%s: declared before with another type", key);
}

/* ---- samples: most lines of a record, so they are parsed in place, without building a tree ----
 */

static int parse_value(struct json *json, const char *key, void *context, struct error *err) {
    struct record *record = context;
    const struct record_series *series = record_find(record, key);
    if (series == NULL) {
        return json_fail(json, err, "%s: no series line before", key);
    }
    ARRAY_GROW(&record->values, &record->cap_values, record->current.n_values + 1);
    struct record_value *value = &record->values[record->current.n_values++];
    value->series = series;
    return json_read_value(json, &value->value, err);
}

static int parse_member(struct json *json, const char *key, void *context, struct error *err) {
    struct record_line *line = &((struct record *)context)->current;
    if (strcmp(key, "target") == 0) {
        char *target;
        size_t len;
        int r = json_read_string(json, &target, &len, err);
        line->target = r < 0 ? "" : target;
        return r;
    }
    if (strcmp(key, "run") == 0) {
        double number = 0;
        int r = json_read_number(json, &number, err);
        line->run = (unsigned)fmax(0, fmin(number, RECORD_MAX_RUN));
        return r < 0 || number == line->run ? r : json_fail(json, err, "\"run\" is not a count");
    }
    if (strcmp(key, "t") == 0) {
        return json_read_number(json, &line->t, err);
    }
    if (strcmp(key, "at") == 0) {
        return json_read_number(json, &line->at, err);
    }
    return strcmp(key, "values") == 0
               ? json_each(json, '{', "values in an object", parse_value, context, err)
               : json_skip(json, err);
}

static int parse_sample(struct record *record, size_t len, struct error *err) {
    struct json json = json_begin(record->text, len, 1);
    int r = json_each(&json, '{', "an object", parse_member, record, err);
    record->current.values = record->values;
    return r < 0 || json_at_end(&json)
               ? r
               : json_fail(&json, err, "expected the end of the line after the object");
}

/* ---- other lines ---- */

static int parse_object(struct record *record, size_t len, struct error *err) {
    struct record_line *line = &record->current;
    json_error_t fault;
    json_t *object = record->object = json_loadb(record->text, len, 0, &fault);
    if (object == NULL) {
        return error_set(err, -EINVAL, "column %d: %s", fault.column, fault.text);
    }
    const char *target = json_string_value(json_object_get(object, "target"));
    json_int_t run = json_integer_value(json_object_get(object, "run"));
    line->target = target != NULL ? target : "";
    line->run = run > 0 && run <= RECORD_MAX_RUN ? (unsigned)run : 0;
    line->t = json_number_value(json_object_get(object, "t"));
    line->at = json_number_value(json_object_get(object, "at"));
    line->object = object;
    if (line->kind == RECORD_SERIES) {
        return parse_series(record, err);
    }
    if (line->kind == RECORD_PHASE) {
        const char *name = json_string_value(json_object_get(object, "phase"));
        int phase = find_word(record_phases, ARRAY_LEN(record_phases), "phase",
                              name != NULL ? name : "", err);
        line->phase = phase > 0 ? (enum record_phase)phase : PHASE_NONE;
        return phase < 0 ? phase : 0;
    }
    return 0;
}

/* The kind of a line; its name is found in a copy of the first bytes. */
static int parse_kind(const char *text, size_t len, struct error *err) {
    char front[64];
    size_t n = len < sizeof(front) ? len : sizeof(front);
    memcpy(front, text, n);
    struct json json = json_begin(front, n, 1);
    bool first = true;
    char *key, *name;
    if (!json_take(&json, '{')) {
        return json_fail(&json, err, "expected an object");
    }
    if (json_next_key(&json, &first, &key, &n, err) <= 0 || strcmp(key, "kind") != 0 ||
        json_read_string(&json, &name, &n, err) < 0) {
        return json_fail(&json, err, "expected \"kind\" first");
    }
    return find_word(kinds, ARRAY_LEN(kinds), "kind", name, err);
}

static int parse_line(struct record *record, size_t len, struct error *err) {
    int kind = parse_kind(record->text, len, err);
    if (kind < 0) {
        return kind;
    }
    json_decref(TAKE(record->object));
    record->current = (struct record_line){.kind = (enum record_kind)kind, .target = ""};
    return kind == RECORD_SAMPLE ? parse_sample(record, len, err) : parse_object(record, len, err);
}

/* ---- the file ---- */

int record_open(const char *path, struct record **ret_record, struct error *err) {
    struct record *record CLEANUP_RECORD = mem_zalloc(1, sizeof(*record));
    record->path = mem_strdup(path);
    record->file = fopen(path, "re");
    if (record->file == NULL) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    *ret_record = TAKE(record);
    return 0;
}

/* Each line is parsed by itself, so its errors name "line 1". */
static const char *without_line(const char *fault) {
    static const char line[] = "line 1, ";
    return strncmp(fault, line, strlen(line)) == 0 ? fault + strlen(line) : fault;
}

int record_next(struct record *record, struct record_line *ret_line, struct error *err) {
    struct error fault = {0};
    if (fgets(record->text, sizeof(record->text), record->file) == NULL) {
        return ferror(record->file) ? error_set(err, -EIO, "read %s: %m", record->path) : 0;
    }
    size_t len = strlen(record->text);
    bool whole = len > 0 && record->text[len - 1] == '\n';
    bool full = len + 1 == sizeof(record->text);
    if (!whole && !full && feof(record->file)) {
        record->torn = true;
        return 0;
    }
    record->line++;
    int r = whole  ? parse_line(record, len - 1, &fault)
            : full ? error_set(&fault, -EFBIG, "a line of more than %d bytes", RECORD_MAX_LINE)
                   : error_set(&fault, -EINVAL, "a NUL byte");
    if (r < 0) {
        return error_set(err, r, "%s:%zu: %s", record->path, record->line,
                         without_line(fault.text));
    }
    *ret_line = record->current;
    return 1;
}

void record_close(struct record *record) {
    if (record == NULL) {
        return;
    }
    if (record->file != NULL) {
        fclose(record->file);
    }
    arena_finish(&record->arena);
    hash_index_finish(&record->by_key);
    json_decref(record->object);
    free(record->series);
    free(record->values);
    free(record->path);
    free(record);
}
