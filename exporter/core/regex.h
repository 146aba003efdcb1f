#pragma once

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Regular expressions for UTF-8 in Perl's syntax, without back references; limited in size and
 * work. */
struct regex;

enum { REGEX_MAX_LEN = 4096 };

/* Compiles `pattern`; -EINVAL with what is wrong at which offset. The caller destroys it. */
int regex_create(const char *pattern, struct regex **ret_regex, struct error *err);
void regex_destroy(struct regex *regex); /* accepts NULL */

static inline void regex_cleanup(struct regex **regex) {
    regex_destroy(*regex);
}
#define CLEANUP_REGEX CLEANUP(regex_cleanup)

/* Whether all of `text` matches, as in PromQL: 1, 0, or -E2BIG if the match exceeds the limit. */
int regex_match(const struct regex *regex, const char *text);

/* Whether any part of `text` matches, as in the filters of node_exporter; the same results. */
int regex_search(const struct regex *regex, const char *text);
