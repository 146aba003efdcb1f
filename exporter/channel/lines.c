#include "exporter/channel/lines.h"

enum { KEPT_BYTES = 4 * 1024 };

static bool take_line(struct push_lines *lines, char *text, size_t len) {
    if (lines->skipping) { /* its end: the next is another line */
        lines->skipping = false;
    } else if (len > lines->max_line) {
        lines->too_long(lines);
    } else {
        lines->held = !lines->take(lines, text, len);
    }
    return !lines->held;
}

/* Takes the whole lines; returns how many bytes those were that were taken. */
static size_t take_lines(struct push_lines *lines, char *data, size_t len) {
    char *line = data;
    char *end = data + len;
    char *newline;
    while (line < end && (newline = memchr(line, '\n', (size_t)(end - line))) != NULL &&
           take_line(lines, line, (size_t)(newline - line))) {
        line = newline + 1;
    }
    return (size_t)(line - data);
}

static void take_rest(struct push_lines *lines) {
    struct buf *rest = &lines->rest;
    size_t n = take_lines(lines, rest->data, rest->len);
    memmove(rest->data, rest->data + n, rest->len - n);
    buf_truncate(rest, rest->len - n);
}

/* Decides about what has no newline, once nothing stands before it. */
static void tidy(struct push_lines *lines) {
    struct buf *rest = &lines->rest;
    if (!lines->held && lines->ended && rest->len > 0 && take_line(lines, rest->data, rest->len)) {
        buf_reset(rest);
    }
    if (!lines->held && rest->len > lines->max_line) {
        lines->too_long(lines);
        lines->skipping = true;
        buf_reset(rest);
    }
    if (rest->len == 0 && rest->cap > KEPT_BYTES) {
        buf_finish(rest);
    }
}

/* Where nothing waits, lines are taken where they stand. Else only the end of the one that waits is
 * added to it, lest every byte behind half a line cost a copy of that. */
void push_lines_add(struct push_lines *lines, char *data, size_t len) {
    size_t n = 0;
    if (lines->rest.len > 0) {
        const char *newline = memchr(data, '\n', len);
        n = newline != NULL ? (size_t)(newline - data) + 1 : len;
        buf_add(&lines->rest, data, n);
        if (newline != NULL) {
            take_rest(lines);
        }
    }
    if (!lines->held) {
        n += take_lines(lines, data + n, len - n);
    }
    if (!lines->skipping) {
        buf_add(&lines->rest, data + n, len - n);
    }
    tidy(lines);
}

void push_lines_end(struct push_lines *lines) {
    lines->ended = true;
    tidy(lines);
}

size_t push_lines_resume(struct push_lines *lines) {
    size_t n_before = lines->rest.len;
    lines->held = false;
    take_rest(lines);
    size_t n = n_before - lines->rest.len;
    tidy(lines);
    return n;
}

void push_lines_finish(struct push_lines *lines) {
    buf_finish(&lines->rest);
}
