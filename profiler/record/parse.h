#pragma once

#include "exporter/core/hash_index.h"
#include "profiler/record/read.h"

/* Turns lines of a record into structs; knows the series declared so far. */
struct record_parser {
    struct record_series **series;
    size_t n_series, cap_series;
    struct hash_index by_key;
    struct record_value *values;
    size_t cap_values;
    struct json_t *object;
};

/* Takes one line without its newline; the text is written to. 0, or -EINVAL or -ENOMEM. */
int record_parse(struct record_parser *parser, char *text, size_t len, struct record_line *ret_line,
                 struct error *err);

/* Takes `{"kind":"NAME"` off the front of a line and, where that is a sample, all the rest. The
 * text is written to. Yields the kind's name, which lies in the text. */
int record_sample_parse(struct record_parser *parser, char *text, size_t len, char **ret_kind,
                        struct record_line *line, struct error *err);

/* The series of that key, or NULL. */
struct record_series *record_series_find(const struct record_parser *parser, const char *key,
                                         size_t len);

/* Frees what the parser holds and leaves it empty. */
void record_parser_finish(struct record_parser *parser);
