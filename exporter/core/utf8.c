#include "exporter/core/utf8.h"

#include <string.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

size_t utf8_sequence(const char *text, size_t left) {
    const unsigned char *b = (const unsigned char *)text;
    if (left >= 1 && b[0] < 0x80) {
        return 1;
    }
    if (left >= 2 && b[0] >= 0xc2 && b[0] <= 0xdf && is_continuation(b[1])) {
        return 2;
    }
    if (left >= 3 && b[0] >= 0xe0 && b[0] <= 0xef && is_continuation(b[1]) &&
        is_continuation(b[2])) {
        bool overlong = b[0] == 0xe0 && b[1] < 0xa0;
        bool surrogate = b[0] == 0xed && b[1] >= 0xa0;
        return overlong || surrogate ? 0 : 3;
    }
    if (left >= 4 && b[0] >= 0xf0 && b[0] <= 0xf4 && is_continuation(b[1]) &&
        is_continuation(b[2]) && is_continuation(b[3])) {
        bool overlong = b[0] == 0xf0 && b[1] < 0x90;
        bool too_high = b[0] == 0xf4 && b[1] >= 0x90;
        return overlong || too_high ? 0 : 4;
    }
    return 0;
}

/* The replacement of the sequence of `n` bytes at `text` (0: not UTF-8); NULL if it stays. */
static const char *replacement(const char *text, size_t n, bool quotes) {
    if (n == 0) {
        return UTF8_REPLACEMENT;
    }
    switch (*text) {
    case '\n':
        return "\\n";
    case '\\':
        return "\\\\";
    case '"':
        return quotes ? "\\\"" : NULL;
    default:
        return NULL;
    }
}

/* Most bytes. */
static bool is_plain(unsigned char c) {
    return c < 0x80 && c != '\n' && c != '\\' && c != '"';
}

void utf8_add_escaped(struct buf *out, const char *text, bool quotes) {
    const char *end = text + strlen(text);
    const char *kept = text; /* from here on nothing had to change: copied in one go */
    while (text < end) {
        if (is_plain((unsigned char)*text)) {
            text++;
            continue;
        }
        size_t n = utf8_sequence(text, (size_t)(end - text));
        const char *instead = replacement(text, n, quotes);
        if (instead != NULL) {
            buf_add(out, kept, (size_t)(text - kept));
            buf_add_str(out, instead);
            kept = text + 1; /* all that is replaced is one byte */
        }
        text += n > 0 ? n : 1;
    }
    buf_add(out, kept, (size_t)(end - kept));
}
