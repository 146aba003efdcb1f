#include "exporter/core/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/number.h"
#include "exporter/core/utf8.h"

enum { SHOWN = 24 }; /* bytes of a fault's place that a message quotes */

struct json json_begin(char *text, size_t len, size_t line) {
    return (struct json){.at = text, .end = text + len, .line_start = text, .line = line};
}

int json_fail_at(struct json_place place, struct error *err, const char *format, ...) {
    char what[sizeof(err->text) / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return error_set(err, -EINVAL, "line %zu, column %zu: %s", place.line, place.column, what);
}

/* The end of the word, number or string at the cursor. */
static const char *token_end(const struct json *json) {
    const char *c = json->at + 1;
    if (*json->at == '"') {
        while (c < json->end && *c != '"') {
            c += *c == '\\' && c + 1 < json->end ? 2 : 1;
        }
        return c < json->end ? c + 1 : json->end;
    }
    while (c < json->end && strchr(",:]} \t", *c) == NULL) {
        c++;
    }
    return c;
}

/* Names the text at the cursor that is not what was expected. */
static int fail_expected(const struct json *json, struct error *err, const char *expected) {
    if (json->at == json->end) {
        return json_fail(json, err, "expected %s, got the end", expected);
    }
    char shown[SHOWN + 1];
    size_t n = 0;
    const char *end = token_end(json);
    for (const char *c = json->at; c < end && n < SHOWN && *c >= ' ' && *c <= '~'; c++) {
        shown[n++] = *c;
    }
    shown[n] = '\0';
    if (n == 0) {
        return json_fail(json, err, "expected %s, got byte 0x%02x", expected,
                         (unsigned char)*json->at);
    }
    return json_fail(json, err, "expected %s, got %s", expected, shown);
}

/* ---- strings ---- */

/* Neither a quote nor a backslash, no control character, ASCII. */
static inline bool is_plain(char c) {
    return (signed char)c >= ' ' && c != '"' && c != '\\';
}

static int hex4(const char *text) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

static char *put_utf8(char *to, uint32_t code) {
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    size_t n = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (size_t i = n; i > 0; i--) {
        to[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    *to = (char)(leads[n] | code);
    return to + n + 1;
}

/* "uXXXX", behind the backslash, perhaps with the other half of a pair; moves the cursor. */
static int unicode_escape(struct json *json, char **to, struct error *err) {
    int code = json->end - json->at >= 5 ? hex4(json->at + 1) : -1;
    if (code < 0) {
        return json_fail(json, err, "expected four hexadecimal digits behind \\u");
    }
    if (code == 0) {
        return json_fail(json, err, "NUL in a string");
    }
    uint32_t whole = (uint32_t)code;
    const char *next = json->at + 5;
    size_t len = 5;
    if (code >= 0xd800 && code <= 0xdfff) {
        bool pair = code < 0xdc00 && json->end - next >= 6 && next[0] == '\\' && next[1] == 'u';
        int low = pair ? hex4(next + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff) {
            return json_fail(json, err, "half of a surrogate pair");
        }
        whole = 0x10000 + ((whole - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
        len = 11;
    }
    json->at += len;
    *to = put_utf8(*to, whole);
    return 0;
}

static int escape(struct json *json, char **to, struct error *err) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    json->at++;
    if (json->at == json->end) {
        return 0; /* no end: decode reports it */
    }
    if (*json->at == 'u') {
        return unicode_escape(json, to, err);
    }
    const char *letter = *json->at != '\0' ? strchr(letters, *json->at) : NULL;
    if (letter == NULL) {
        return json_fail(json, err, "unknown escape in a string");
    }
    *(*to)++ = meant[letter - letters];
    json->at++;
    return 0;
}

/* Decodes the rest of a string in place: every escape is longer than its text. */
static int decode(struct json *json, struct json_place start, char *to, char **ret_end,
                  struct error *err) {
    while (json->at < json->end && *json->at != '"') {
        if (*json->at == '\\') {
            int r = escape(json, &to, err);
            if (r < 0) {
                return r;
            }
            continue;
        }
        if ((unsigned char)*json->at < ' ') {
            return json_fail(json, err, "control character 0x%02x in a string", *json->at);
        }
        size_t n = utf8_sequence(json->at, (size_t)(json->end - json->at));
        if (n == 0) {
            return json_fail(json, err, "invalid UTF-8 in a string");
        }
        memmove(to, json->at, n);
        to += n;
        json->at += n;
    }
    if (json->at == json->end) {
        return json_fail_at(start, err, "the string has no end");
    }
    *ret_end = to;
    return 0;
}

int json_read_string(struct json *json, char **ret_text, size_t *ret_len, struct error *err) {
    if (json_peek(json) != '"') {
        bool is_single = json->at < json->end && *json->at == '\'';
        return fail_expected(json, err, is_single ? "a string in double quotes" : "a string");
    }
    struct json_place place = json_here(json);
    char *start = ++json->at;
    char *at = start;
    while (at < json->end && is_plain(*at)) {
        at++;
    }
    json->at = at;
    char *text_end = at;
    if (at == json->end || *at != '"') {
        int r = decode(json, place, at, &text_end, err);
        if (r < 0) {
            return r;
        }
    }
    *text_end = '\0';
    json->at++;
    *ret_text = start;
    if (ret_len != NULL) {
        *ret_len = (size_t)(text_end - start);
    }
    return 0;
}

/* ---- numbers and words ---- */

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* The end of the number at the cursor; NULL if there is none. */
static const char *number_end(const struct json *json) {
    const char *end = json->end;
    const char *whole = json->at + (json->at < end && *json->at == '-');
    const char *at = skip_digits(whole, end);
    if (at == whole || (*whole == '0' && at > whole + 1)) {
        return NULL;
    }
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = skip_digits(fraction, end);
        if (at == fraction) {
            return NULL;
        }
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exponent = at + 1;
        exponent += exponent < end && (*exponent == '+' || *exponent == '-');
        at = skip_digits(exponent, end);
        if (at == exponent) {
            return NULL;
        }
    }
    return at;
}

static bool at_word(const struct json *json, const char *word) {
    size_t len = strlen(word);
    return (size_t)(json->end - json->at) >= len && memcmp(json->at, word, len) == 0;
}

static bool take_word(struct json *json, const char *word) {
    bool taken = at_word(json, word);
    json->at += taken ? strlen(word) : 0;
    return taken;
}

int json_read_number(struct json *json, double *ret_number, struct error *err) {
    json_peek(json);
    const char *end = number_end(json);
    if (end == NULL) {
        bool word = at_word(json, "NaN") || at_word(json, "Infinity") || at_word(json, "-Infinity");
        return word ? json_fail(json, err,
                                "JSON has no NaN or Infinity: write \"NaN\", \"+Inf\", \"-Inf\"")
                    : fail_expected(json, err, "a number");
    }
    size_t len = (size_t)(end - json->at);
    if (number_parse(json->at, len, ret_number) < 0) {
        return len <= SHOWN
                   ? json_fail(json, err, "%.*s is too large for a 64-bit float", (int)len,
                               json->at)
                   : json_fail(json, err,
                               "number of %zu characters is too large for a 64-bit float", len);
    }
    json->at += len;
    return 0;
}

int json_read_value(struct json *json, double *ret_number, struct error *err) {
    static const char *const words[] = {"\"+Inf\"", "\"-Inf\"", "\"NaN\""};
    if (json_peek(json) != '"') {
        return json_read_number(json, ret_number, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (take_word(json, words[i])) {
            return number_parse(words[i] + 1, strlen(words[i]) - 2, ret_number);
        }
    }
    return fail_expected(json, err, "a number, \"NaN\", \"+Inf\" or \"-Inf\"");
}

int json_read_bool(struct json *json, bool *ret_bool, struct error *err) {
    json_peek(json);
    *ret_bool = take_word(json, "true");
    return *ret_bool || take_word(json, "false") ? 0 : fail_expected(json, err, "true or false");
}

int json_read_null(struct json *json, struct error *err) {
    json_peek(json);
    return take_word(json, "null") ? 0 : fail_expected(json, err, "a value");
}

/* ---- objects and arrays ---- */

int json_next_key(struct json *json, bool *first, char **ret_key, size_t *ret_len,
                  struct error *err) {
    if (json_take(json, '}')) {
        return 0;
    }
    if (!*first && !json_take(json, ',')) {
        return fail_expected(json, err, "a comma or }");
    }
    *first = false;
    if (json_peek(json) != '"') {
        return fail_expected(json, err, "a key in double quotes");
    }
    json->key = json_here(json);
    int r = json_read_string(json, ret_key, ret_len, err);
    if (r == 0 && !json_take(json, ':')) {
        return fail_expected(json, err, "a colon");
    }
    return r < 0 ? r : 1;
}

int json_next_element(struct json *json, bool *first, struct error *err) {
    if (json_take(json, ']')) {
        return 0;
    }
    if (!*first && !json_take(json, ',')) {
        return fail_expected(json, err, "a comma or ]");
    }
    if (!*first && json_peek(json) == ']') {
        return fail_expected(json, err, "a value behind the comma");
    }
    *first = false;
    return 1;
}

/* Takes a value that holds no others. */
static int skip_simple(struct json *json, struct error *err) {
    char *text;
    double number;
    const char *end;
    bool truth;
    switch (json_peek(json)) {
    case '"':
        return json_read_string(json, &text, NULL, err);
    case 't':
    case 'f':
        return json_read_bool(json, &truth, err);
    case 'n':
        return json_read_null(json, err);
    default: /* its form is enough: it may be too large for a double */
        end = number_end(json);
        json->at += end != NULL ? end - json->at : 0;
        return end != NULL ? 0 : json_read_number(json, &number, err);
    }
}

static int skip(struct json *json, int depth, struct error *err) {
    char bracket = json_peek(json);
    if (bracket != '{' && bracket != '[') {
        return skip_simple(json, err);
    }
    if (depth == JSON_MAX_DEPTH) {
        return json_fail(json, err, "nested more than %d deep", JSON_MAX_DEPTH);
    }
    json->at++;
    bool first = true;
    char *key;
    int r;
    while ((r = bracket == '{' ? json_next_key(json, &first, &key, NULL, err)
                               : json_next_element(json, &first, err)) > 0) {
        r = skip(json, depth + 1, err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

int json_skip(struct json *json, struct error *err) {
    return skip(json, 0, err);
}

/* ---- writing ---- */

/* Of a valid sequence; those of four bytes, which hold no controls, count as one. */
static unsigned code_point(const char *text, size_t n) {
    const unsigned char *b = (const unsigned char *)text;
    switch (n) {
    case 1:
        return b[0];
    case 2:
        return (b[0] & 0x1fU) << 6 | (b[1] & 0x3fU);
    case 3:
        return (b[0] & 0x0fU) << 12 | (b[1] & 0x3fU) << 6 | (b[2] & 0x3fU);
    default:
        return 0xffff;
    }
}

/* C0 and C1, ends of lines, and what changes the direction of a text. */
static bool is_control(unsigned c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void json_add_string(struct buf *out, const char *text) {
    buf_add_char(out, '"');
    for (size_t left = strlen(text); left > 0;) {
        size_t n = utf8_sequence(text, left);
        if (n == 0) {
            buf_add_str(out, UTF8_REPLACEMENT);
        } else if (*text == '"' || *text == '\\') {
            buf_printf(out, "\\%c", *text);
        } else if (is_control(code_point(text, n))) {
            buf_printf(out, "\\u%04x", code_point(text, n));
        } else {
            buf_add(out, text, n);
        }
        n = n > 0 ? n : 1;
        text += n;
        left -= n;
    }
    buf_add_char(out, '"');
}

/* A value or member that came before needs a comma; an opening bracket or a key does not. */
static void begin(struct buf *out, const char *key) {
    unsigned char last = out->len > 0 ? (unsigned char)out->data[out->len - 1] : '\0';
    if (isalnum(last) || last == '"' || last == '}' || last == ']') {
        buf_add_char(out, ',');
    }
    if (key != NULL) {
        json_add_string(out, key);
        buf_add_char(out, ':');
    }
}

void json_open(struct buf *out, const char *key, char bracket) {
    begin(out, key);
    buf_add_char(out, bracket);
}

void json_close(struct buf *out, char bracket) {
    buf_add_char(out, bracket);
}

void json_put_bool(struct buf *out, const char *key, bool value) {
    begin(out, key);
    buf_add_str(out, value ? "true" : "false");
}

void json_put_string(struct buf *out, const char *key, const char *text) {
    begin(out, key);
    json_add_string(out, text);
}

void json_put_number(struct buf *out, const char *key, double number) {
    char text[NUMBER_MAX_LEN + 1];
    text[number_format(number, text)] = '\0';
    json_put(out, key, isfinite(number) ? "%s" : "\"%s\"", text);
}

void json_put(struct buf *out, const char *key, const char *format, ...) {
    va_list args;
    begin(out, key);
    va_start(args, format);
    buf_vprintf(out, format, args);
    va_end(args);
}
