#pragma once

#include <stdint.h>

/* digits * 10^exponent. */
struct number_decimal {
    uint64_t digits;
    int exponent;
};

/* The decimal with the fewest digits that reads back as `value`, the closest one where several
 * have that few. It may end in zeros, which do not count. `value` is finite and above zero. */
struct number_decimal number_shortest(double value);
