#include "exporter/core/escape.h"

#include <string.h>

#include "exporter/core/utf8.h"

void escape_add(struct buf *out, const char *text, bool quotes) {
    size_t left = strlen(text);
    while (left > 0) {
        size_t n = utf8_sequence(text, left);
        if (n == 0) {
            buf_add_str(out, UTF8_REPLACEMENT);
            n = 1;
        } else if (*text == '\n') {
            buf_add_str(out, "\\n");
        } else {
            if (*text == '\\' || (*text == '"' && quotes)) {
                buf_add_char(out, '\\');
            }
            buf_add(out, text, n);
        }
        text += n;
        left -= n;
    }
}
