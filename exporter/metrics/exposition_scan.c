#include "exporter/metrics/exposition_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { QUOTED_MAX = 40 };

#define DIGIT (SCAN_LABEL | SCAN_METRIC)
#define LETTER (DIGIT | SCAN_LABEL_FIRST | SCAN_METRIC_FIRST)

const unsigned char scan_class[256] = {
    ['\0'] = SCAN_VALUE_STOP,
    ['\t'] = SCAN_BLANK | SCAN_TOKEN_STOP,
    ['\n'] = SCAN_VALUE_STOP | SCAN_TOKEN_STOP,
    [' '] = SCAN_BLANK | SCAN_TOKEN_STOP,
    ['"'] = SCAN_VALUE_STOP,
    ['0' ... '9'] = DIGIT,
    [':'] = SCAN_METRIC | SCAN_METRIC_FIRST,
    ['A' ... 'Z'] = LETTER,
    ['\\'] = SCAN_VALUE_STOP,
    ['_'] = LETTER,
    ['a' ... 'z'] = LETTER,
    [0x80 ... 0xff] = SCAN_VALUE_STOP,
};

int scan_fail(const struct exposition_scan *scan, int code, const char *at, const char *format,
              ...) {
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return error_set(scan->err, code, "line %zu: column %zu: %s", scan->line,
                     (size_t)(at - scan->line_start) + 1, reason);
}

struct scan_quoted scan_quote(const char *text, size_t len) {
    struct scan_quoted quoted = {0};
    char *to = quoted.text;
    for (size_t i = 0; i < len && i < QUOTED_MAX; i++) {
        bool printable = text[i] >= ' ' && text[i] <= '~';
        to += sprintf(to, printable ? "%c" : "\\x%02x", (unsigned char)text[i]);
    }
    strcpy(to, len > QUOTED_MAX ? "..." : "");
    return quoted;
}

struct scan_quoted scan_quote_token(const char *text) {
    if (*text == '\n') {
        return (struct scan_quoted){.text = "end of line"};
    }
    struct scan_quoted quoted = scan_quote(text, scan_token_len(text));
    struct scan_quoted token;
    snprintf(token.text, sizeof(token.text), "\"%.170s\"", quoted.text);
    return token;
}

int scan_check_escape(const struct exposition_scan *scan, const char *at) {
    if (at[1] == '\\' || at[1] == '"' || at[1] == 'n') {
        return 0;
    }
    return scan_fail(scan, -EINVAL, at, "unknown escape sequence \\%s",
                     at[1] == '\n' ? "" : scan_quote(at + 1, 1).text);
}

size_t scan_unescape(char *text, const char *stop) {
    char *to = text;
    for (const char *from = text; from < stop; from++) {
        if (*from == '\\') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    return (size_t)(to - text);
}
