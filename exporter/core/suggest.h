#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

enum { SUGGEST_MAX_LEN = 63 };

/* Finds, among the words it is shown, the one nearest to what a user wrote. */
struct suggest {
    const char *wanted;
    size_t distance;
    char best[SUGGEST_MAX_LEN + 1]; /* "" while nothing is near enough */
};

/* Begins a search. Words that differ in more than a third of the letters (half of a short one) are
 * passed over. */
void suggest_init(struct suggest *suggest, const char *wanted);

/* Offers one word of `len` bytes. */
void suggest_offer(struct suggest *suggest, const char *word, size_t len);

/* Appends ", did you mean <prefix><word>?", or nothing. */
void suggest_write(const struct suggest *suggest, const char *prefix, struct buf *out);
