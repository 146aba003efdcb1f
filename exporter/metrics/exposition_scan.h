#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"

/* Moving through a page in the text format: what exposition_parse.c is made of. Every scan stops at
 * a newline, and the text ends in one: no scan needs to look for the end. */
struct exposition_scan {
    char *at;
    const char *end; /* behind the last newline */
    const char *line_start;
    size_t line;
    struct error *err;
};

enum {
    SCAN_BLANK = 1,
    SCAN_TOKEN_STOP = 2,    /* a blank or a newline */
    SCAN_VALUE_STOP = 4,    /* what needs a second look inside a label's value */
    SCAN_LABEL_FIRST = 8,   /* may begin the name of a label */
    SCAN_LABEL = 16,        /* may stand in it */
    SCAN_METRIC_FIRST = 32, /* the same for metrics */
    SCAN_METRIC = 64,
};

extern const unsigned char scan_class[256];

static inline bool scan_is(char c, int class) {
    return (scan_class[(unsigned char)c] & class) != 0;
}

static inline void scan_skip_blanks(struct exposition_scan *scan) {
    while (scan_is(*scan->at, SCAN_BLANK)) {
        scan->at++;
    }
}

/* Moves past a name whose first byte is of class `first` and whose others are of class `later`.
 * Returns its length, 0 where none stands there. */
static inline size_t scan_name(struct exposition_scan *scan, int first, int later) {
    const char *start = scan->at;
    if (scan_is(*start, first)) {
        do {
            scan->at++;
        } while (scan_is(*scan->at, later));
    }
    return (size_t)(scan->at - start);
}

/* Length of what stands before the next blank or newline. */
static inline size_t scan_token_len(const char *text) {
    size_t n = 0;
    while (!scan_is(text[n], SCAN_TOKEN_STOP)) {
        n++;
    }
    return n;
}

/* Words a failure at a place of the current line; returns `code`. */
int scan_fail(const struct exposition_scan *scan, int code, const char *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A piece of the text for an error message: cut short, and nothing in it that upsets a terminal. */
struct scan_quoted {
    char text[176];
};
struct scan_quoted scan_quote(const char *text, size_t len);

/* The same for the token at `text`, or "end of line". */
struct scan_quoted scan_quote_token(const char *text);

/* Checks the escape sequence at `at`, which is a backslash: one more, n or a quote must follow. */
int scan_check_escape(const struct exposition_scan *scan, const char *at);

/* Undoes the (checked) escapes of the text before `stop` in place; returns its length. */
size_t scan_unescape(char *text, const char *stop);
