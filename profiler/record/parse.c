#include "profiler/record/read.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"

struct word {
    const char *text;
    int value;
};

static const struct word kinds[] = {
    {"end", RECORD_END},       {"finished", RECORD_FINISHED}, {"lost", RECORD_LOST},
    {"phase", RECORD_PHASE},   {"run", RECORD_RUN},           {"sample", RECORD_SAMPLE},
    {"series", RECORD_SERIES}, {"target", RECORD_TARGET},
};

static const struct word types[] = {
    {"counter", RECORD_COUNTER},         {"gauge", RECORD_GAUGE},
    {"histogram_bucket", RECORD_BUCKET}, {"histogram_count", RECORD_COUNT},
    {"histogram_sum", RECORD_SUM},
};

static const struct word phases[] = {
    {"baseline", PHASE_BASELINE}, {"cooldown", PHASE_COOLDOWN}, {"run", PHASE_RUN},
    {"stop", PHASE_STOP},         {"warmup", PHASE_WARMUP},
};

/* The value of a word; -EINVAL for an unknown one. */
static int find_word(const struct word *words, size_t n, const char *what, const char *text,
                     struct error *err) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(words[i].text, text) == 0) {
            return words[i].value;
        }
    }
    return error_set(err, -EINVAL, "unknown %s \"%s\"", what, text);
}

static const char *name_of(const struct word *words, size_t n, int value) {
    for (size_t i = 0; i < n; i++) {
        if (words[i].value == value) {
            return words[i].text;
        }
    }
    return "";
}

const char *record_phase_name(enum record_phase phase) {
    return name_of(phases, ARRAY_LEN(phases), (int)phase);
}

const char *record_type_name(enum record_type type) {
    return name_of(types, ARRAY_LEN(types), (int)type);
}

/* ---- series ---- */

struct record_series *record_series_find(const struct record_parser *parser, const char *key,
                                         size_t len) {
    size_t cursor = 0;
    struct record_series *series;
    uint32_t hash = hash_bytes(key, len);
    while ((series = hash_index_next(&parser->by_key, hash, &cursor)) != NULL) {
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

/* Allocates the struct and its four texts as one block. */
static struct record_series *make_series(const char *key, const char *unit, const char *help) {
    size_t n_key = strlen(key) + 1, n_unit = strlen(unit) + 1, n_help = strlen(help) + 1;
    struct record_series *series = mem_zalloc(1, sizeof(*series) + 2 * n_key + n_unit + n_help);
    char *text = (char *)(series + 1);
    series->key = memcpy(text, key, n_key);
    char *name = memcpy(text + n_key, key, n_key);
    series->name = name;
    series->labels = "";
    char *brace = strchr(name, '{');
    if (brace != NULL) {
        *brace = '\0';
        name[n_key - 2] = '\0';
        series->labels = brace + 1;
    }
    series->unit = memcpy(text + 2 * n_key, unit, n_unit);
    series->help = memcpy(text + 2 * n_key + n_unit, help, n_help);
    return series;
}

static int add_series(struct record_parser *parser, const char *key, enum record_type type,
                      struct error *err) {
    if (parser->n_series == RECORD_MAX_SERIES) {
        return error_set(err, -EINVAL, "more than %d series", RECORD_MAX_SERIES);
    }
    const char *unit = json_string_value(json_object_get(parser->object, "unit"));
    if (unit == NULL || unit[0] == '\0') {
        unit = unit_in(key, strcspn(key, "{"));
    }
    const char *help = json_string_value(json_object_get(parser->object, "help"));
    struct record_series *series = make_series(key, unit, help != NULL ? help : "");
    series->type = type;
    series->index = parser->n_series;
    ARRAY_GROW(&parser->series, &parser->cap_series, parser->n_series + 1);
    parser->series[parser->n_series++] = series;
    hash_index_add(&parser->by_key, hash_bytes(key, strlen(key)), series);
    return 0;
}

static int parse_series(struct record_parser *parser, struct error *err) {
    const char *key = json_string_value(json_object_get(parser->object, "key"));
    const char *type_name = json_string_value(json_object_get(parser->object, "type"));
    if (key == NULL || type_name == NULL || !is_key(key)) {
        return error_set(err, -EINVAL, "a series needs \"key\" and \"type\"");
    }
    int type = find_word(types, ARRAY_LEN(types), "type", type_name, err);
    if (type < 0) {
        return type;
    }
    const struct record_series *known = record_series_find(parser, key, strlen(key));
    if (known == NULL) {
        return add_series(parser, key, (enum record_type)type, err);
    }
    return known->type == (enum record_type)type
               ? 0
               : error_set(err, -EINVAL, "%s: declared before with another type", key);
}

/* ---- other lines ---- */

static int parse_object(struct record_parser *parser, struct record_line *line, struct error *err) {
    const json_t *object = parser->object;
    const char *target = json_string_value(json_object_get(object, "target"));
    line->target = target != NULL ? target : "";
    json_int_t run = json_integer_value(json_object_get(object, "run"));
    line->run = run > 0 && run <= 1000000 ? (unsigned)run : 0;
    line->t = json_number_value(json_object_get(object, "t"));
    line->at = json_number_value(json_object_get(object, "at"));
    line->object = parser->object;
    if (line->kind == RECORD_SERIES) {
        return parse_series(parser, err);
    }
    if (line->kind == RECORD_PHASE) {
        const char *name = json_string_value(json_object_get(object, "phase"));
        int phase = find_word(phases, ARRAY_LEN(phases), "phase", name != NULL ? name : "", err);
        line->phase = phase > 0 ? (enum record_phase)phase : PHASE_NONE;
        return phase < 0 ? phase : 0;
    }
    return 0;
}

int record_parse(struct record_parser *parser, char *text, size_t len, struct record_line *ret_line,
                 struct error *err) {
    json_decref(parser->object);
    parser->object = NULL;
    /* Samples are decoded in place; for other lines the beginning is restored, as jansson parses it
     * again. */
    char front[64];
    size_t n_front = len < sizeof(front) ? len : sizeof(front);
    memcpy(front, text, n_front);
    struct record_line line = {.target = ""};
    char *name;
    int r = record_sample_parse(parser, text, len, &name, &line, err);
    if (r < 0) {
        return r;
    }
    int kind = find_word(kinds, ARRAY_LEN(kinds), "kind", name, err);
    if (kind < 0) {
        return kind;
    }
    line.kind = (enum record_kind)kind;
    if (line.kind != RECORD_SAMPLE) {
        memcpy(text, front, n_front);
        json_error_t fault;
        parser->object = json_loadb(text, len, 0, &fault);
        if (parser->object == NULL) {
            error_set(err, -EINVAL, "column %d: %s", fault.column, fault.text);
            return -EINVAL;
        }
        r = parse_object(parser, &line, err);
    }
    if (r < 0) {
        return r;
    }
    *ret_line = line;
    return 0;
}

void record_parser_finish(struct record_parser *parser) {
    for (size_t i = 0; i < parser->n_series; i++) {
        free(parser->series[i]);
    }
    free(parser->series);
    free(parser->values);
    hash_index_finish(&parser->by_key);
    json_decref(parser->object);
    *parser = (struct record_parser){0};
}
