#pragma once

#include <stddef.h>
#include <stdint.h>

/* Numbers as Prometheus writes and reads them, independent of the locale. */

/* Room that any number needs, without a NUL. */
enum { NUMBER_MAX_LEN = 32 };

/* Writes the shortest text that reads back as exactly `value`: "0.1", "1e+22", "+Inf", "-Inf",
 * "NaN"; whole numbers up to 2^53 without exponent. Returns its length; writes no NUL. */
size_t number_format(double value, char out[static NUMBER_MAX_LEN]);

/* The same with ".0" added where neither point nor exponent stands: what OpenMetrics wants in the
 * labels `le` and `quantile`. */
size_t number_format_canonical(double value, char out[static NUMBER_MAX_LEN]);

/* Writes an unsigned integer; returns its length. */
size_t number_format_u64(uint64_t value, char out[static NUMBER_MAX_LEN]);

/* Reads the `len` bytes at `text` as one number, all of them: decimal, with exponent, or one of the
 * words Inf and NaN in any case with sign. Returns 0 or -EINVAL. `text` need not end in NUL. */
int number_parse(const char *text, size_t len, double *ret_value);
