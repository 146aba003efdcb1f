#include "exporter/core/number.h"

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "exporter/core/number_shortest.h"

enum {
    MIN_PLAIN_EXPONENT = -4, /* 0.0001, as C and Go do */
    MAX_PLAIN_EXPONENT = 15, /* 2^53 has 16 digits */
    MAX_CANONICAL_EXPONENT = 5,
};

#define SEVENTEEN_DIGITS UINT64_C(10000000000000000) /* the least such number */

/* Eight digits as the bytes of a word, the first one in the lowest byte. They are written as a
 * whole even where fewer are wanted: what lies behind these is overwritten. */

#define EIGHT_ZEROS UINT64_C(0x3030303030303030) /* "00000000" */

/* The digits of `value`, zeros in front. Halves, quarters and eighths of it are divided side by
 * side: by products with a rounded inverse, exact for numbers as small as these. */
static uint64_t eight_digits(uint32_t value) {
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
    uint64_t tens = (pairs * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (pairs - 10 * tens) << 8;
}

static void store(char *out, uint64_t digits) {
    uint64_t text = htole64(digits + EIGHT_ZEROS);
    memcpy(out, &text, sizeof(text));
}

static size_t leading_zeros(uint64_t digits) {
    return (size_t)__builtin_ctzll(digits | UINT64_C(1) << 63) / 8;
}

static size_t trailing_zeros(uint64_t digits) {
    return leading_zeros(__builtin_bswap64(digits));
}

/* `value` is below 100000000. */
static inline size_t write_small(char *out, uint32_t value) {
    uint64_t digits = eight_digits(value);
    size_t n_zeros = (size_t)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8; /* 0 has one digit */
    store(out, digits >> 8 * n_zeros);
    return 8 - n_zeros;
}

static size_t write_u64(char *out, uint64_t value) {
    if (value < 100000000) {
        return write_small(out, (uint32_t)value);
    }
    size_t n = write_u64(out, value / 100000000);
    store(out + n, eight_digits((uint32_t)(value % 100000000)));
    return n + 8;
}

/* Writes `value` if it is a whole number up to 2^53; else returns 0. Here and below numbers are
 * converted as signed ones, for which there are instructions. */
static size_t write_whole(char *out, double value) {
    if (value > 0x1p53) {
        return 0;
    }
    int64_t whole = (int64_t)value;
    if ((double)whole != value) {
        return 0;
    }
    return whole < 100000000 ? write_small(out, (uint32_t)whole) : write_u64(out, (uint64_t)whole);
}

/* Writes `value` if it has at most three decimals; else returns 0. A decimal of up to 15 digits is
 * the only one that short that reads back as its double, so it is the shortest. The quotient of two
 * exact numbers is rounded as a reader rounds the text: where it gives the value back, so does the
 * text. */
static size_t write_thousandths(char *out, double value) {
    int64_t scaled = value < 1e12 ? (int64_t)(value * 1000 + 0.5) : 0;
    if ((double)scaled / 1000 != value) {
        return 0;
    }
    size_t n = write_u64(out, (uint64_t)scaled / 1000);
    uint64_t decimals = eight_digits((uint32_t)((uint64_t)scaled % 1000 * 100000));
    out[n] = '.';
    store(out + n + 1, decimals);
    return n + 9 - trailing_zeros(decimals);
}

/* A number with 17 digits: any double has enough with these. */
struct decimal {
    uint64_t first, second; /* eight digits each */
    uint64_t last;
    size_t n;     /* of digits, without zeros at the end */
    int exponent; /* of the first digit */
};

static struct decimal take_digits(double value) {
    struct number_decimal shortest = number_shortest(value);
    uint64_t whole = shortest.digits;
    int exponent = shortest.exponent + 16;
    /* Nearly all have 16 or 17 digits. Which it is cannot be foreseen, hence no branch. */
    bool is_short = whole < SEVENTEEN_DIGITS;
    whole *= 1 + 9 * (uint64_t)is_short;
    exponent -= is_short;
    while (whole < SEVENTEEN_DIGITS) {
        whole *= 10;
        exponent--;
    }
    uint32_t first = (uint32_t)(whole / 1000000000);
    uint32_t others = (uint32_t)(whole - first * UINT64_C(1000000000));
    struct decimal decimal = {
        .first = eight_digits(first),
        .second = eight_digits(others / 10),
        .last = others % 10,
        .exponent = exponent,
    };
    uint64_t behind_9 = decimal.second >> 8 | decimal.last << 56;
    decimal.n = behind_9 != 0         ? 17 - trailing_zeros(behind_9)
                : decimal.second != 0 ? 9
                                      : 8 - trailing_zeros(decimal.first);
    return decimal;
}

static void write_digits(char *out, const struct decimal *decimal) {
    store(out, decimal->first);
    store(out + 8, decimal->second);
    out[16] = (char)('0' + decimal->last);
}

/* "0.00012": up to three zeros behind the point. */
static size_t write_below_one(char *out, const struct decimal *decimal) {
    store(out, 0);
    out[1] = '.';
    size_t start = (size_t)(1 - decimal->exponent);
    write_digits(out + start, decimal);
    return start + decimal->n;
}

/* Leaves the first `n` digits, 1 to 8, where they are and moves the others on by one. */
static uint64_t open_gap(uint64_t digits, size_t n) {
    uint64_t stay = UINT64_MAX >> (64 - 8 * n);
    return (digits & stay) | (digits << 8 & ~stay);
}

/* "12.5", "1200": the point behind the first `n_whole` digits. All are written one place to the
 * right, where those behind the point stay. */
static size_t write_mixed(char *out, const struct decimal *decimal, size_t n_whole) {
    write_digits(out + 1, decimal);
    if (n_whole <= 8) {
        store(out, open_gap(decimal->first, n_whole));
    } else {
        store(out, decimal->first);
        store(out + 8, open_gap(decimal->second, n_whole - 8));
    }
    if (decimal->n <= n_whole) {
        return n_whole;
    }
    out[n_whole] = '.';
    return decimal->n + 1;
}

/* "1e+22", "1.5e-07": at least two digits of exponent. */
static size_t write_exponential(char *out, const struct decimal *decimal) {
    size_t n = write_mixed(out, decimal, 1);
    bool negative = decimal->exponent < 0;
    uint64_t magnitude = (uint64_t)(negative ? -decimal->exponent : decimal->exponent);
    out[n++] = 'e';
    out[n++] = negative ? '-' : '+';
    out[n] = '0';
    n += magnitude < 10;
    return n + write_u64(out + n, magnitude);
}

/* `value` is finite and above zero. */
static size_t write_shortest(char *out, double value, int max_plain_exponent) {
    struct decimal decimal = take_digits(value);
    if (decimal.exponent < MIN_PLAIN_EXPONENT || decimal.exponent > max_plain_exponent) {
        return write_exponential(out, &decimal);
    }
    if (decimal.exponent < 0) {
        return write_below_one(out, &decimal);
    }
    return write_mixed(out, &decimal, (size_t)decimal.exponent + 1);
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
        n = write_thousandths(out + sign, magnitude);
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
