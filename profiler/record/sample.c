#include "profiler/record/read.h"

#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/memory.h"

/* Most lines of a record are samples; they are parsed without building a tree. */

static int parse_values(struct record_parser *parser, struct json *json, struct record_line *line,
                        struct error *err) {
    if (!json_take(json, '{')) {
        return json_fail(json, err, "\"values\" is not an object");
    }
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        struct record_series *series = record_series_find(parser, key, len);
        if (series == NULL) {
            return json_fail(json, err, "%s: no series line before", key);
        }
        ARRAY_GROW(&parser->values, &parser->cap_values, line->n_values + 1);
        struct record_value *value = &parser->values[line->n_values++];
        value->series = series;
        r = json_read_value(json, &value->value, err);
        if (r < 0) {
            return r;
        }
    }
    line->values = parser->values;
    return r;
}

static int parse_run_number(struct json *json, unsigned *ret_run, struct error *err) {
    double number;
    int r = json_read_number(json, &number, err);
    if (r < 0) {
        return r;
    }
    if (!(number >= 0 && number <= 1e6)) {
        return json_fail(json, err, "\"run\" is not a count");
    }
    *ret_run = (unsigned)number;
    return 0;
}

static int parse_sample_key(struct record_parser *parser, struct json *json, const char *key,
                            struct record_line *line, struct error *err) {
    if (strcmp(key, "target") == 0) {
        char *target;
        size_t len;
        int r = json_read_string(json, &target, &len, err);
        line->target = r < 0 ? "" : target;
        return r;
    }
    if (strcmp(key, "run") == 0) {
        return parse_run_number(json, &line->run, err);
    }
    if (strcmp(key, "t") == 0) {
        return json_read_number(json, &line->t, err);
    }
    if (strcmp(key, "at") == 0) {
        return json_read_number(json, &line->at, err);
    }
    return strcmp(key, "values") == 0 ? parse_values(parser, json, line, err)
                                      : json_skip(json, err);
}

static int parse_sample(struct record_parser *parser, struct json *json, struct record_line *line,
                        struct error *err) {
    bool first = false; /* "kind" has been taken */
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        r = parse_sample_key(parser, json, key, line, err);
        if (r < 0) {
            return r;
        }
    }
    return r < 0 || json_at_end(json)
               ? r
               : json_fail(json, err, "expected the end of the line after the object");
}

/* Parses `{"kind":"…"`; it must be within the bytes that record_parse restores. */
static int parse_kind(struct json *json, char **ret_kind, struct error *err) {
    enum { FAR = 64 };
    const char *begin = json->at;
    bool first = true;
    char *key;
    size_t len;
    if (!json_take(json, '{')) {
        return json_fail(json, err, "expected an object");
    }
    int r = json_next_key(json, &first, &key, &len, err);
    if (r < 0) {
        return r;
    }
    if (r == 0 || strcmp(key, "kind") != 0) {
        return json_fail(json, err, "expected \"kind\" first");
    }
    r = json_read_string(json, ret_kind, &len, err);
    return r == 0 && json->at - begin > FAR ? json_fail(json, err, "expected \"kind\" first") : r;
}

int record_sample_parse(struct record_parser *parser, char *text, size_t len, char **ret_kind,
                        struct record_line *line, struct error *err) {
    struct json json = json_begin(text, len, 1);
    int r = parse_kind(&json, ret_kind, err);
    if (r < 0 || strcmp(*ret_kind, "sample") != 0) {
        return r;
    }
    return parse_sample(parser, &json, line, err);
}
