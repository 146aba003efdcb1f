#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* A regular expression as PromQL has it, without {n,m}, flags and back references; of UTF-8 texts,
 * matched as a whole. Memory is a multiple of the expression's length, time at most that of the
 * product of both lengths, whatever it says. The C library's regcomp promises neither: it takes
 * gigabytes for "a" and two hundred asterisks. */
struct push_pattern;

enum { PUSH_PATTERN_MAX_LEN = 1024 };

/* Reads an expression. -EINVAL with what is wrong with it, -ENOMEM. The caller destroys it. */
int push_pattern_create(const char *text, struct push_pattern **ret_pattern, struct error *err);
void push_pattern_destroy(struct push_pattern *pattern); /* accepts NULL */

/* How many steps all tests have taken, of some nanoseconds each. */
uint64_t push_pattern_work(const struct push_pattern *pattern);

/* Whether the expression means the whole of `value`. By one thread at a time. */
bool push_pattern_test(struct push_pattern *pattern, const char *value);
