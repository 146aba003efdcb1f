#include "exporter/core/number.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    /* No double and no midpoint of two has more than 768 digits: behind that many it only matters
     * whether anything but zeros follows. */
    MAX_DIGITS = 780,
    MAX_EXACT_DIGITS = 15,
    MAX_EXACT_EXPONENT = 22,
    MAX_EXPONENT = 1000000, /* far beyond what a double holds */
};
/* An exponent stops growing here: longer than any text, and far from what 64 bits hold. */
#define SATURATED_EXPONENT (INT64_C(1) << 58)

/* 0.<digits> * 10^exponent, without zeros in front. */
struct parsed {
    char digits[MAX_DIGITS + 1]; /* one more: stands for all that was cut off */
    size_t n_digits;
    int64_t exponent;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void add_digit(struct parsed *number, char digit) {
    if (number->n_digits < MAX_DIGITS) {
        number->digits[number->n_digits++] = digit;
    } else if (digit != '0') {
        number->digits[MAX_DIGITS] = '1';
        number->n_digits = MAX_DIGITS + 1;
    }
}

/* Takes "12", "12.", ".5", "12.5"; returns what follows, or NULL where there is no digit. */
static const char *parse_digits(const char *at, const char *end, struct parsed *number) {
    bool point = false;
    bool any = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*at)) {
            break;
        }
        any = true;
        bool leading = number->n_digits == 0 && *at == '0';
        if (!leading) {
            add_digit(number, *at);
        }
        number->exponent += leading ? -point : !point;
    }
    return any ? at : NULL;
}

/* Takes "e5", "E+5", "e-05" and adds it; returns what follows, or NULL where it is broken. */
static const char *parse_exponent(const char *at, const char *end, struct parsed *number) {
    at++;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    if (at == end) {
        return NULL;
    }
    int64_t exponent = 0;
    for (; at < end && is_digit(*at); at++) {
        if (exponent < SATURATED_EXPONENT) {
            exponent = 10 * exponent + (*at - '0');
        }
    }
    number->exponent += negative ? -exponent : exponent;
    return at;
}

/* The value where one multiplication or division of exact doubles, rounded once, gives it. */
static bool exact_value(const struct parsed *number, double *ret_value) {
    static const double powers[MAX_EXACT_EXPONENT + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    int64_t exponent = number->exponent - (int64_t)number->n_digits;
    if (number->n_digits > MAX_EXACT_DIGITS || exponent < -MAX_EXACT_EXPONENT ||
        exponent > MAX_EXACT_EXPONENT) {
        return false;
    }
    uint64_t whole = 0;
    for (size_t i = 0; i < number->n_digits; i++) {
        whole = 10 * whole + (uint64_t)(number->digits[i] - '0');
    }
    *ret_value =
        exponent < 0 ? (double)whole / powers[-exponent] : (double)whole * powers[exponent];
    return true;
}

/* The program never leaves the C locale, so the C library may do the rest. */
static double library_value(const struct parsed *number) {
    int64_t exponent = number->exponent;
    exponent = exponent > MAX_EXPONENT ? MAX_EXPONENT : exponent;
    exponent = exponent < -MAX_EXPONENT ? -MAX_EXPONENT : exponent;
    char text[3 + sizeof(number->digits) + NUMBER_MAX_LEN + 1];
    size_t n = 0;
    text[n++] = '.';
    memcpy(text + n, number->digits, number->n_digits);
    n += number->n_digits;
    text[n++] = 'e';
    text[n++] = exponent < 0 ? '-' : '+';
    n += number_format_u64((uint64_t)(exponent < 0 ? -exponent : exponent), text + n);
    text[n] = '\0';
    return strtod(text, NULL);
}

static bool equals_word(const char *text, size_t len, const char *word) {
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* As Prometheus reads them: an infinity may have a sign, a NaN may not. */
static bool parse_word(const char *text, size_t len, bool is_signed, double *ret_magnitude) {
    if (equals_word(text, len, "inf") || equals_word(text, len, "infinity")) {
        *ret_magnitude = INFINITY;
        return true;
    }
    if (!is_signed && equals_word(text, len, "nan")) {
        *ret_magnitude = NAN;
        return true;
    }
    return false;
}

static int parse_decimal(const char *at, const char *end, double *ret_magnitude) {
    struct parsed number;
    number.n_digits = 0;
    number.exponent = 0;
    at = parse_digits(at, end, &number);
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at = parse_exponent(at, end, &number);
    }
    if (at != end) {
        return -EINVAL;
    }
    if (number.n_digits == 0) {
        *ret_magnitude = 0;
    } else if (!exact_value(&number, ret_magnitude)) {
        *ret_magnitude = library_value(&number);
    }
    return isinf(*ret_magnitude) ? -ERANGE : 0;
}

int number_parse(const char *text, size_t len, double *ret_value) {
    const char *end = text + len;
    bool is_signed = len > 0 && (*text == '-' || *text == '+');
    bool negative = is_signed && *text == '-';
    text += is_signed;
    double magnitude;
    if (!parse_word(text, (size_t)(end - text), is_signed, &magnitude)) {
        int result = parse_decimal(text, end, &magnitude);
        if (result < 0) {
            return result;
        }
    }
    *ret_value = negative ? -magnitude : magnitude;
    return 0;
}
