#pragma once

#include <stdbool.h>
#include <stddef.h>

enum waap_json_type {
    WAAP_JSON_NULL,
    WAAP_JSON_BOOL,
    WAAP_JSON_NUMBER,
    WAAP_JSON_TEXT,
    WAAP_JSON_OTHER, /* an object or array, skipped */
};

struct waap_json_value {
    enum waap_json_type type;
    double number; /* of a number; 0 or 1 of a bool */
    const char *text;
};

/* What the exporter says in one line; `text` is NULL and values are NULL where it says nothing. */
struct waap_json_line {
    const char *error;
    const char *metric;
    const char *param;
    bool has_value;
    struct waap_json_value value;
    double ack; /* -1: none */
};

/* Reads one JSON object; its strings are decoded in place, so the result lives in `line`. Fields
 * that are not known are passed over. Returns false where it is no such object. The thread's locale
 * must be "C". */
bool waap_json_read(char *line, struct waap_json_line *ret_line);
