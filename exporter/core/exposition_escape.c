#include "exporter/core/exposition_escape.h"

#include <string.h>

/* Copies name characters with underscores doubled; returns where the name ends. */
static const char *copy_name(const char *from, const char *end, struct buf *out) {
    while (from < end && strchr("{}=\", \n", *from) == NULL) {
        if (*from == '_') {
            buf_add_char(out, '_');
        }
        buf_add_char(out, *from++);
    }
    return from;
}

/* Copies a quoted label value as it is; `from` stands at the opening quote. */
static const char *copy_value(const char *from, const char *end, struct buf *out) {
    const char *to = from + 1;
    while (to < end && *to != '"') {
        to += *to == '\\' && to + 1 < end ? 2 : 1;
    }
    to = to < end ? to + 1 : end;
    buf_add(out, from, (size_t)(to - from));
    return to;
}

static void escape_sample(const char *line, const char *end, struct buf *out) {
    line = copy_name(line, end, out);
    if (line < end && *line == '{') {
        while (line < end && *line != '}') {
            buf_add_char(out, *line++); /* the brace, then commas */
            line = copy_name(line, end, out);
            if (line < end && *line == '=') {
                buf_add_char(out, *line++);
                line = copy_value(line, end, out);
            }
        }
    }
    buf_add(out, line, (size_t)(end - line));
}

/* "# TYPE name …": the name is the third word; "# EOF" has none. */
static void escape_comment(const char *line, const char *end, struct buf *out) {
    const char *name = memchr(line + 2, ' ', (size_t)(end - line - 2));
    if (name == NULL) {
        buf_add(out, line, (size_t)(end - line));
        return;
    }
    buf_add(out, line, (size_t)(name + 1 - line));
    name = copy_name(name + 1, end, out);
    buf_add(out, name, (size_t)(end - name));
}

void exposition_escape_dots(const char *page, size_t len, struct buf *out) {
    const char *page_end = page + len;
    while (page < page_end) {
        const char *newline = memchr(page, '\n', (size_t)(page_end - page));
        const char *end = newline != NULL ? newline + 1 : page_end;
        if (page[0] == '#' && end - page > 2) {
            escape_comment(page, end, out);
        } else {
            escape_sample(page, end, out);
        }
        page = end;
    }
}
