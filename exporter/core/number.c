#include "exporter/core/number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "exporter/core/number_shortest.h"

enum {
    MIN_PLAIN_EXPONENT = -4, /* 0.0001, as C and Go do */
    MAX_PLAIN_EXPONENT = 15, /* 2^53 has 16 digits */
    MAX_CANONICAL_EXPONENT = 5,
};

static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

static const uint64_t powers_of_ten[] = {
    UINT64_C(0), /* so that 0 counts as one digit */
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

static size_t count_digits(uint64_t value) {
    int n_bits = 64 - __builtin_clzll(value | 1);
    size_t n = (size_t)(n_bits * 1233) >> 12; /* log10(2) * 2^12: right or one too small */
    return n + (value >= powers_of_ten[n]);
}

static void write_pair(char *out, uint32_t value) {
    memcpy(out, pairs + 2 * value, 2);
}

/* The pairs do not wait for each other. */
static void write_8_digits(char *out, uint32_t value) {
    uint32_t high = value / 10000;
    uint32_t low = value % 10000;
    write_pair(out, high / 100);
    write_pair(out + 2, high % 100);
    write_pair(out + 4, low / 100);
    write_pair(out + 6, low % 100);
}

/* Writes `value`, which has at most `n` digits, with zeros in front. */
static void write_digits(char *out, uint64_t value, size_t n) {
    for (; n >= 8; n -= 8) {
        write_8_digits(out + n - 8, (uint32_t)(value % 100000000));
        value /= 100000000;
    }
    uint32_t rest = (uint32_t)value;
    for (; n >= 2; n -= 2) {
        write_pair(out + n - 2, rest % 100);
        rest /= 100;
    }
    if (n == 1) {
        out[0] = (char)('0' + rest);
    }
}

static size_t write_u64(char *out, uint64_t value) {
    size_t n = count_digits(value);
    write_digits(out, value, n);
    return n;
}

/* Writes `value` if it is a whole number up to 2^53; else returns 0. */
static size_t write_whole(char *out, double value) {
    if (value > 0x1p53) {
        return 0;
    }
    uint64_t whole = (uint64_t)value;
    return (double)whole == value ? write_u64(out, whole) : 0;
}

/* Inlined, so that the divisions are by constants. */
static inline size_t write_scaled_by(char *out, double value, uint64_t scale, size_t n_decimals) {
    uint64_t scaled = (uint64_t)(value * (double)scale + 0.5);
    if ((double)scaled / (double)scale != value) {
        return 0;
    }
    size_t n = write_u64(out, scaled / scale);
    out[n++] = '.';
    write_digits(out + n, scaled % scale, n_decimals);
    n += n_decimals;
    while (out[n - 1] == '0') {
        n--;
    }
    return n;
}

/* Writes `value` if it has at most six decimals; else returns 0. A decimal of up to 15 digits is
 * the only one that short that reads back as its double, so it is the shortest. The quotient of two
 * exact numbers is rounded as a reader rounds the text: where it gives the value back, so does the
 * text. */
static size_t write_scaled(char *out, double value) {
    if (value < 1e-4 || value >= 1e9) {
        return 0;
    }
    size_t n = write_scaled_by(out, value, 1000, 3);
    return n > 0 ? n : write_scaled_by(out, value, 1000000, 6);
}

/* "0.00012", "12.5", "1200": the digits with the point behind the first `point` of them. */
static size_t write_plain(char *out, const char *digits, size_t n_digits, int point) {
    if (point <= 0) {
        size_t start = 2 + (size_t)-point;
        memcpy(out, "0.0000", 6);
        memcpy(out + start, digits, n_digits);
        return start + n_digits;
    }
    size_t n_whole = (size_t)point;
    if (n_digits <= n_whole) {
        memcpy(out, digits, n_digits);
        memset(out + n_digits, '0', n_whole - n_digits);
        return n_whole;
    }
    memcpy(out, digits, n_whole);
    out[n_whole] = '.';
    memcpy(out + n_whole + 1, digits + n_whole, n_digits - n_whole);
    return n_digits + 1;
}

/* "1e+22", "1.5e-07": at least two digits of exponent. */
static size_t write_exponential(char *out, const char *digits, size_t n_digits, int exponent) {
    size_t n = write_plain(out, digits, n_digits, 1);
    out[n++] = 'e';
    out[n++] = exponent < 0 ? '-' : '+';
    uint64_t magnitude = (uint64_t)(exponent < 0 ? -exponent : exponent);
    size_t n_magnitude = magnitude >= 100 ? 3 : 2;
    write_digits(out + n, magnitude, n_magnitude);
    return n + n_magnitude;
}

/* `value` is finite and above zero. */
static size_t write_shortest(char *out, double value, int max_plain_exponent) {
    struct number_decimal decimal = number_shortest(value);
    char digits[NUMBER_MAX_LEN];
    size_t n = write_u64(digits, decimal.digits);
    int point = decimal.exponent + (int)n;
    while (digits[n - 1] == '0') {
        n--;
    }
    if (point - 1 < MIN_PLAIN_EXPONENT || point - 1 > max_plain_exponent) {
        return write_exponential(out, digits, n, point - 1);
    }
    return write_plain(out, digits, n, point);
}

static size_t write_special(char *out, double value) {
    const char *word = isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    size_t n = strlen(word);
    memcpy(out, word, n);
    return n;
}

size_t number_format(double value, char out[static NUMBER_MAX_LEN]) {
    if (!isfinite(value)) {
        return write_special(out, value);
    }
    size_t sign = signbit(value) != 0;
    double magnitude = fabs(value);
    out[0] = '-';
    size_t n = write_whole(out + sign, magnitude);
    if (n == 0) {
        n = write_scaled(out + sign, magnitude);
    }
    if (n == 0) {
        n = write_shortest(out + sign, magnitude, MAX_PLAIN_EXPONENT);
    }
    return sign + n;
}

size_t number_format_canonical(double value, char out[static NUMBER_MAX_LEN]) {
    if (!isfinite(value)) {
        return write_special(out, value);
    }
    size_t n = signbit(value) != 0;
    out[0] = '-';
    n += value == 0 ? write_whole(out + n, 0)
                    : write_shortest(out + n, fabs(value), MAX_CANONICAL_EXPONENT);
    if (memchr(out, '.', n) == NULL && memchr(out, 'e', n) == NULL) {
        memcpy(out + n, ".0", 2);
        n += 2;
    }
    return n;
}

size_t number_format_u64(uint64_t value, char out[static NUMBER_MAX_LEN]) {
    return write_u64(out, value);
}
