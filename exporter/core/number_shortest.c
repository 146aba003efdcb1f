#include "exporter/core/number_shortest.h"

#include <stdbool.h>
#include <string.h>

/* After Raffaello Giulietti, "The Schubfach way to render doubles" (2021). The value and the two
 * borders of the numbers that round to it are scaled by one power of ten such that the interval
 * between the borders is between one and ten units wide. Then it holds at least one integer, and at
 * most one multiple of ten: where there is one, its digits are the fewest possible. */

struct power {
    uint64_t high;
    uint64_t low;
};

#include "exporter/core/number_powers.h"

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

/* power * n / 2^64, cut off. That the power is rounded up adds less than one, as n has less than 64
 * bits. */
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
static struct number_decimal choose(uint64_t lower, uint64_t value, uint64_t upper, int exponent) {
    uint64_t unit = value / 4;
    uint64_t ten = unit / 10;
    bool ten_below = lower <= 40 * ten;
    bool ten_above = 40 * ten + 40 <= upper;
    if (ten_below != ten_above) {
        return (struct number_decimal){ten + ten_above, exponent + 1};
    }
    bool below = lower <= 4 * unit;
    bool above = 4 * unit + 4 <= upper;
    if (below != above) {
        return (struct number_decimal){unit + above, exponent};
    }
    uint64_t middle = 4 * unit + 2;
    bool up = value > middle || (value == middle && unit % 2 == 1);
    return (struct number_decimal){unit + up, exponent};
}

/* Kept apart, as it is hardly ever called. */
__attribute__((noinline)) static struct number_decimal shortest_exact(double value) {
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

/* What shortest_exact() finds, from one product, where that leaves no doubt: nearly always. Which
 * of the digits are taken cannot be foreseen, so that is no branch. */
struct number_decimal number_shortest(double value) {
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
    return (struct number_decimal){(is_ten & 10 * (ten + up)) | (~is_ten & unit), k};
}
