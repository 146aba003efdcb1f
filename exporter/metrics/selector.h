#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/parse.h"

/* A selector of series as in PromQL: fps{plugin="cars",cam=~"top|left",job!="x"}. Regular
 * expressions are those of core/regex.h. */
struct selector;

/* Parses a selector. As in PromQL, at least one matcher must reject the empty string, so that
 * nothing selects all series by mistake. -EINVAL names the column. */
int selector_create(const char *text, struct selector **ret_selector, struct error *err);
void selector_destroy(struct selector *selector); /* accepts NULL */

static inline void selector_cleanup(struct selector **selector) {
    selector_destroy(*selector);
}
#define CLEANUP_SELECTOR CLEANUP(selector_cleanup)

/* How many of its matchers are regular expressions: what matching may cost. */
size_t selector_n_regexes(const struct selector *selector);

/* Whether it selects the series of that name and the labels of both lists: 1, 0, or -E2BIG: a
 * regular expression exceeds its limit. */
int selector_match(const struct selector *selector, const char *name, const struct label *labels,
                   size_t n_labels, const struct label *more, size_t n_more);

/* Counts the samples of a page that it selects; `*ret_value` is the value of the last. */
size_t selector_find(const struct selector *selector, const struct exposition_doc *page,
                     double *ret_value);
