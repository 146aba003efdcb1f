#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/metrics/exposition_doc.h"

/* The simplest of PromQL: fps{plugin="objcounter",job!="test"}, for pages that are read without a
 * Prometheus. */

enum { SELECTOR_MAX_MATCHERS = 16 };

struct selector {
    char *text; /* what the others point into */
    const char *name;
    struct selector_matcher {
        const char *label;
        const char *value;
        bool differs; /* != */
    } matchers[SELECTOR_MAX_MATCHERS];
    size_t n_matchers;
};

/* Reads a selector of series by = and !=; -EINVAL says what else it is. Free it with
 * selector_finish. */
int selector_parse(const char *text, struct selector *ret_selector, struct error *err);
void selector_finish(struct selector *selector); /* accepts a zeroed one */
#define CLEANUP_SELECTOR CLEANUP(selector_finish)

/* Counts the samples of a page that are meant; `*ret_value` is that of the last. */
size_t selector_find(const struct selector *selector, const struct exposition_doc *page,
                     double *ret_value);
