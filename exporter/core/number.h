#pragma once

#include <stddef.h>
#include <stdint.h>

/* Numbers as Prometheus writes and reads them, independent of the locale. */

/* Room that any number needs, without a NUL. */
enum { NUMBER_MAX_LEN = 32 };

/* Writes the fewest digits that read back as exactly `value`, and of those the closest ones: "0.1",
 * "-0", "1e+22", "1.5e-07", "+Inf", "-Inf", "NaN". From 0.0001 up to 1e16, and so for every whole
 * number up to 2^53, there is no exponent. Returns the length, at most 24; writes no NUL. */
size_t number_format(double value, char out[static NUMBER_MAX_LEN]);

/* The same digits in the form that OpenMetrics wants in the labels `le` and `quantile`, and that
 * Prometheus gives them itself: "1.0", "100000.0", "1e+06", exponents from 1e6 on. */
size_t number_format_canonical(double value, char out[static NUMBER_MAX_LEN]);

/* Writes an unsigned integer; returns its length. */
size_t number_format_u64(uint64_t value, char out[static NUMBER_MAX_LEN]);

/* Reads the `len` bytes at `text` as one number, all of them: decimal with or without point and
 * exponent, Inf or Infinity with or without sign, NaN, words in any case. Rounds correctly however
 * many digits there are; what is too small becomes zero. Returns 0, -EINVAL, or -ERANGE for a
 * decimal too large for a double. `text` need not end in NUL. */
int number_parse(const char *text, size_t len, double *ret_value);
