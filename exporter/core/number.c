#include "exporter/core/number.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

/* 10^k as the 128 highest bits of its digits. */
struct power {
    uint64_t high;
    uint64_t low;
};

#include "exporter/core/number_powers.h"

/* ---- the shortest decimal ---- */

/* After Raffaello Giulietti, "The Schubfach way to render doubles" (2021). The value and the two
 * borders of the numbers that round to it are scaled by one power of ten such that the interval
 * between the borders is between one and ten units wide. Then it holds at least one integer, and at
 * most one multiple of ten: if there is one, its digits are the fewest possible. */

/* digits * 10^exponent. */
struct shortest {
    uint64_t digits;
    int exponent;
};

enum { FRACTION_BITS = 52, EXPONENT_BIAS = 1023 + FRACTION_BITS };
#define FRACTION_MASK ((UINT64_C(1) << FRACTION_BITS) - 1)

/* The logarithms are products with a rounded constant, exact for every exponent of a double. Right
 * shifts of negative numbers round down with gcc and clang. */

static int floor_log10_pow2(int e) {
    return (e * 1262611) >> 22; /* log10(2) * 2^22 */
}

static int floor_log10_three_quarters_pow2(int e) {
    return (e * 1262611 - 524031) >> 22; /* log10(4/3) * 2^22 */
}

static int floor_log2_pow10(int e) {
    return (e * 1741647) >> 19; /* log2(10) * 2^19 */
}

/* power * n / 2^64, cut off. The rounding of the power adds less than one, as n is below 2^64. */
static unsigned __int128 multiply(struct power power, uint64_t n) {
    unsigned __int128 low = (unsigned __int128)power.low * n;
    return (unsigned __int128)power.high * n + (uint64_t)(low >> 64);
}

/* The whole part of power * n / 2^128, odd where something was cut off: comparisons with even
 * numbers then come out as for the exact product. Where that is whole, the bits below stay 0. */
static uint64_t multiply_round_to_odd(struct power power, uint64_t n) {
    unsigned __int128 product = multiply(power, n);
    return (uint64_t)(product >> 64) | ((uint64_t)product != 0);
}

/* `value` and the borders are in quarters of a unit. */
static struct shortest choose(uint64_t lower, uint64_t value, uint64_t upper, int exponent) {
    uint64_t unit = value / 4;
    uint64_t ten = unit / 10;
    bool ten_below = lower <= 40 * ten;
    bool ten_above = 40 * ten + 40 <= upper;
    if (ten_below != ten_above) {
        return (struct shortest){ten + ten_above, exponent + 1};
    }
    bool below = lower <= 4 * unit;
    bool above = 4 * unit + 4 <= upper;
    if (below != above) {
        return (struct shortest){unit + above, exponent};
    }
    uint64_t middle = 4 * unit + 2;
    bool up = value > middle || (value == middle && unit % 2 == 1);
    return (struct shortest){unit + up, exponent};
}

/* Kept apart, as it is hardly ever called. */
__attribute__((noinline)) static struct shortest shortest_exact(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint64_t fraction = bits & FRACTION_MASK;
    int biased = (int)(bits >> FRACTION_BITS);
    bool subnormal = biased == 0;
    uint64_t c = subnormal ? fraction : fraction | UINT64_C(1) << FRACTION_BITS;
    int q = (subnormal ? 1 : biased) - EXPONENT_BIAS;

    /* Below a power of two the next double is half as far away as above it. */
    bool uneven = fraction == 0 && biased > 1;
    int k = uneven ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    int shift = q + floor_log2_pow10(-k) + 1;
    struct power power = powers[-k - POWERS_FIRST];

    /* A number right on a border rounds to the even neighbour. */
    bool odd = c % 2 == 1;
    uint64_t lower = multiply_round_to_odd(power, (4 * c - (uneven ? 1 : 2)) << shift) + odd;
    uint64_t upper = multiply_round_to_odd(power, (4 * c + 2) << shift) - odd;
    return choose(lower, multiply_round_to_odd(power, 4 * c << shift), upper, k);
}

/* Whether two lengths are so close that their last bits decide, which are not exact. */
static bool is_close(uint64_t a, uint64_t b) {
    return a - b + 8 <= 16;
}

/* The decimal with the fewest digits that reads back as `value`, which is finite and above zero;
 * the closest one if several have that few. It may end in zeros, which do not count. The same as
 * shortest_exact() finds, from one product if that leaves no doubt: nearly always. Which of the
 * digits are taken cannot be foreseen, so that is no branch. */
static struct shortest find_shortest(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint64_t fraction = bits & FRACTION_MASK;
    int biased = (int)(bits >> FRACTION_BITS);
    int q = biased - EXPONENT_BIAS;
    int k = floor_log10_pow2(q);
    int shift = q + floor_log2_pow10(-k) + 1;
    struct power power = powers[-k - POWERS_FIRST];
    uint64_t n = 4 * (fraction | UINT64_C(1) << FRACTION_BITS) << shift;
    unsigned __int128 product = multiply(power, n);
    uint64_t quarters = (uint64_t)(product >> 64);
    uint64_t ten = quarters / 40;

    /* Lengths, in quarters of a unit with 58 bits behind the point. */
    uint64_t above_ten = (quarters - 40 * ten) << 58 | (uint64_t)product >> 6;
    uint64_t below_next = (UINT64_C(40) << 58) - above_ten;
    uint64_t above_unit = above_ten & ((UINT64_C(4) << 58) - 1);
    uint64_t half_unit = UINT64_C(2) << 58;
    uint64_t reach = power.high >> (5 - shift); /* half the way to the next double */
    if (fraction == 0 || biased == 0 || is_close(above_ten, reach) || is_close(below_next, reach) ||
        is_close(above_unit, half_unit)) {
        return shortest_exact(value);
    }
    bool up = below_next < reach;
    uint64_t is_ten = -(uint64_t)((above_ten < reach) | up);
    uint64_t unit = quarters / 4 + (above_unit > half_unit);
    return (struct shortest){(is_ten & 10 * (ten + up)) | (~is_ten & unit), k};
}

/* ---- writing ---- */

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

/* Writes `value` if it has at most three decimals; else returns 0. A decimal of up to 15 digits
 * that reads back as its double is the shortest. The quotient of two exact numbers is rounded as a
 * reader rounds the text: if it gives the value back, so does the text. */
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
    struct shortest shortest = find_shortest(value);
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

/* ---- parsing ---- */

/* Doubles hold numbers of that many digits and powers of ten exactly. */
enum { MAX_EXACT_DIGITS = 15, MAX_EXACT_EXPONENT = 22 };

/* An exponent stops growing here: longer than any text, and far from what 64 bits hold. */
#define SATURATED_EXPONENT (INT64_C(1) << 58)

/* digits * 10^exponent, unless there are more digits than MAX_EXACT_DIGITS. */
struct parsed {
    uint64_t digits;
    size_t n_digits; /* without zeros in front */
    int64_t exponent;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Takes "12", "12.", ".5", "12.5"; returns what follows, or NULL if there is no digit. */
static const char *parse_digits(const char *at, const char *end, struct parsed *number) {
    bool point = false;
    bool any = false;
    for (; at < end && (is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        number->n_digits += number->n_digits > 0 || *at != '0';
        if (number->n_digits <= MAX_EXACT_DIGITS) {
            number->digits = 10 * number->digits + (uint64_t)(*at - '0');
        }
        number->exponent -= point;
    }
    return any ? at : NULL;
}

/* Takes "e5", "E+5", "e-05" and adds it; returns what follows, or NULL if it is broken. */
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

/* The value if one multiplication or division of exact doubles, rounded once, gives it. */
static bool exact_value(const struct parsed *number, double *ret_value) {
    static const double exact_powers[MAX_EXACT_EXPONENT + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    int64_t exponent = number->exponent;
    if (number->n_digits > MAX_EXACT_DIGITS || exponent < -MAX_EXACT_EXPONENT ||
        exponent > MAX_EXACT_EXPONENT) {
        return false;
    }
    *ret_value = exponent < 0 ? (double)number->digits / exact_powers[-exponent]
                              : (double)number->digits * exact_powers[exponent];
    return true;
}

/* The program never leaves the C locale, so the C library may read all other numbers. */
static double library_value(const char *text, size_t len) {
    char small[64]; /* nearly all numbers fit */
    char *large CLEANUP_FREE = len < sizeof(small) ? NULL : mem_alloc(len + 1);
    char *copy = large != NULL ? large : small;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return strtod(copy, NULL);
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

static int parse_decimal(const char *text, const char *end, double *ret_magnitude) {
    struct parsed number = {0};
    const char *at = parse_digits(text, end, &number);
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at = parse_exponent(at, end, &number);
    }
    if (at != end) {
        return -EINVAL;
    }
    if (number.n_digits == 0) {
        *ret_magnitude = 0;
    } else if (!exact_value(&number, ret_magnitude)) {
        *ret_magnitude = library_value(text, (size_t)(end - text));
    }
    return isinf(*ret_magnitude) ? -ERANGE : 0;
}

int number_parse(const char *text, size_t len, double *ret_value) {
    const char *end = text + len;
    bool is_signed = len > 0 && (*text == '-' || *text == '+');
    bool negative = is_signed && *text == '-';
    text += is_signed;
    double magnitude;
    bool begins_word = text<end && * text> '9';
    if (!begins_word || !parse_word(text, (size_t)(end - text), is_signed, &magnitude)) {
        int result = parse_decimal(text, end, &magnitude);
        if (result < 0) {
            return result;
        }
    }
    *ret_value = negative ? -magnitude : magnitude;
    return 0;
}
