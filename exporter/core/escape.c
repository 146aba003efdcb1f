#include "exporter/core/escape.h"

#include <string.h>

#include "exporter/core/utf8.h"

/* What stands for the sequence of `n` bytes at `text` (0: not UTF-8); NULL where it stays. */
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

/* Most are: these need no second look. */
static bool is_plain(unsigned char c) {
    return c < 0x80 && c != '\n' && c != '\\' && c != '"';
}

void escape_add(struct buf *out, const char *text, bool quotes) {
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
