#include "exporter/core/scan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/number.h"

enum { SCAN_EXCERPT = 120 };

static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\0';
}

static const char *skip_blanks(const char *at) {
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    return at;
}

bool scan_word(const char **cursor, struct scan_word *ret_word) {
    const char *begin = skip_blanks(*cursor);
    const char *end = begin;
    while (!ends_word(*end)) {
        end++;
    }
    if (end == begin) {
        return false;
    }
    *ret_word = (struct scan_word){.text = begin, .len = (size_t)(end - begin)};
    *cursor = end;
    return true;
}

bool scan_u64(const char **cursor, uint64_t *ret_value) {
    const char *begin = skip_blanks(*cursor);
    const char *at = begin;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (at == begin || !ends_word(*at)) {
        return false;
    }
    *ret_value = value;
    *cursor = at;
    return true;
}

bool scan_double(const char **cursor, double *ret_value) {
    const char *at = *cursor;
    struct scan_word word;
    double value;
    if (!scan_word(&at, &word) || number_parse(word.text, word.len, &value) < 0 ||
        !isfinite(value)) {
        return false;
    }
    *ret_value = value;
    *cursor = at;
    return true;
}

int scan_numbers(const char **cursor, uint64_t *values, size_t max) {
    size_t n = 0;
    while (n < max) {
        const char *at = skip_blanks(*cursor);
        if (*at == '\n' || *at == '\0') {
            break;
        }
        if (!scan_u64(cursor, &values[n])) {
            return -EINVAL;
        }
        n++;
    }
    return (int)n;
}

bool scan_word_equal(struct scan_word word, const char *text) {
    return strlen(text) == word.len && memcmp(word.text, text, word.len) == 0;
}

static int fail(struct error *err, int code, const char *path, size_t number, const char *line) {
    if (code != -EINVAL) {
        return error_set(err, code, "%s:%zu: %s", path, number, strerror(-code));
    }
    size_t len = strcspn(line, "\n");
    int shown = len > SCAN_EXCERPT ? SCAN_EXCERPT : (int)len;
    return error_set(err, code, "%s:%zu: not understood: \"%.*s\"", path, number, shown, line);
}

const char *scan_next_line(const char *text) {
    text = strchrnul(text, '\n');
    return *text == '\n' ? text + 1 : text;
}

int scan_lines(const char *text, const char *path, scan_line *handle, void *context,
               struct error *err) {
    int result = 0;
    size_t number = 1;
    for (const char *line = text; *line != '\0'; line = scan_next_line(line), number++) {
        int r = *skip_blanks(line) == '\n' ? 0 : handle(context, number, line);
        if (r < 0 && result == 0) {
            result = fail(err, r, path, number, line);
        }
    }
    return result;
}
