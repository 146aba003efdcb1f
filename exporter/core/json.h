#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/core/json_write.h"

/* Reads JSON (RFC 8259, strictly) from writable memory: strings are decoded in place and end in
 * NUL, so nothing is copied or allocated. The text behind the cursor is untouched. */
struct json {
    char *at;
    char *end;
    const char *line_start;
    size_t line; /* of `at`, from 1 */
    struct json_place {
        size_t line, column; /* from 1; columns count bytes */
    } key;                   /* the place of the last key */
};

enum { JSON_MAX_DEPTH = 32 };

/* A cursor at the beginning of `text`, which is line `line` of the peer's text. */
struct json json_begin(char *text, size_t len, size_t line);

/* Passes over white space; returns the next character, or NUL at the end (and for a NUL). */
static inline char json_peek(struct json *json) {
    char *at = json->at;
    for (; at < json->end && (unsigned char)*at <= ' '; at++) {
        if (*at == '\n') {
            json->line++;
            json->line_start = at + 1;
        } else if (*at != ' ' && *at != '\t' && *at != '\r') {
            break;
        }
    }
    json->at = at;
    return at < json->end ? *at : '\0';
}

/* Whether only white space is left. */
static inline bool json_at_end(struct json *json) {
    json_peek(json);
    return json->at == json->end;
}

/* Takes the next character if it is this one. */
static inline bool json_take(struct json *json, char c) {
    if (json_peek(json) != c || json->at == json->end) {
        return false;
    }
    json->at++;
    return true;
}

/* The place of the cursor; json_here skips white space first. */
static inline struct json_place json_at(const struct json *json) {
    return (struct json_place){json->line, (size_t)(json->at - json->line_start) + 1};
}

static inline struct json_place json_here(struct json *json) {
    json_peek(json);
    return json_at(json);
}

/* Words a fault at the cursor, "line 3, column 14: …". Returns -EINVAL. */
#define json_fail(json, err, ...) json_fail_at(json_at(json), err, __VA_ARGS__)

/* The same for another place: of a key, or of a value that has been taken. */
int json_fail_at(struct json_place place, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The calls below take one value, or fail with -EINVAL and the place. */

/* A string: valid UTF-8 without NUL. `ret_len` may be NULL, also below. */
int json_read_string(struct json *json, char **ret_text, size_t *ret_len, struct error *err);

/* A number that a double can hold; JSON has no NaN and no infinities. */
int json_read_number(struct json *json, double *ret_number, struct error *err);

/* The same, but the strings "NaN", "+Inf" and "-Inf" are the numbers that JSON lacks. */
int json_read_value(struct json *json, double *ret_number, struct error *err);

/* true or false. */
int json_read_bool(struct json *json, bool *ret_bool, struct error *err);

int json_read_null(struct json *json, struct error *err);

/* Any value; only its form is checked; nested JSON_MAX_DEPTH deep at most. */
int json_skip(struct json *json, struct error *err);

/* Steps through an object behind its '{', with `*first` true: takes the next key and its colon. 1,
 * 0 at the end (the '}' has been taken), or -EINVAL. */
int json_next_key(struct json *json, bool *first, char **ret_key, size_t *ret_len,
                  struct error *err);

/* The same for an array after its '[': moves before the next element. */
int json_next_element(struct json *json, bool *first, struct error *err);

/* Takes an object ('{') or an array ('['): `read` takes each value, in an array with the key NULL.
 * `expected` ("a list") names it in errors. */
typedef int json_each_function(struct json *json, const char *key, void *context,
                               struct error *err);
static inline int json_each(struct json *json, char bracket, const char *expected,
                            json_each_function *read, void *context, struct error *err) {
    bool first = true;
    char *key = NULL;
    int r;
    if (!json_take(json, bracket)) {
        return json_fail(json, err, "expected %s", expected);
    }
    while ((r = bracket == '{' ? json_next_key(json, &first, &key, NULL, err)
                               : json_next_element(json, &first, err)) > 0) {
        r = read(json, key, context, err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}
