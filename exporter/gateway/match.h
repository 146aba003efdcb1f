#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"

/* Which series are meant, as PromQL says it: fps{plugin="cars",cam=~"top|left",job!="x"}. Regular
 * expressions are those of push_pattern.h. */
struct push_match;

/* Reads a selector. At least one of its conditions must not be met by an empty text, as in PromQL:
 * nobody deletes everything by mistake. -EINVAL names the place, -ENOMEM. */
int push_match_create(const char *text, struct push_match **ret_match, struct error *err);
void push_match_destroy(struct push_match *match); /* accepts NULL */

static inline void push_match_cleanup(struct push_match **match) {
    push_match_destroy(*match);
}
#define CLEANUP_PUSH_MATCH CLEANUP(push_match_cleanup)

/* How much work all tests have been: of the expressions, see push_pattern_work, and for every
 * condition of the labels that it is looked for among. */
uint64_t push_match_work(const struct push_match *match);

/* Whether the series of that name is meant, which has the labels of both lists. */
bool push_match_test(struct push_match *match, const char *name, const struct label *labels,
                     size_t n_labels, const struct label *more, size_t n_more);
