#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

enum { SUGGEST_MAX_LEN = 63 };

/* Finds, among the words it is shown, the one nearest to what a user wrote. */
struct suggest {
    const char *wanted;
    size_t allowed;  /* letters that may differ */
    size_t distance; /* of the best; beyond what is allowed where it only has the word in it */
    char best[SUGGEST_MAX_LEN + 1]; /* "" while nothing is near enough */
};

/* Begins a search. Words that differ in more than a third of the letters (half of a short one) are
 * passed over, unless what was written is a part of them: "listen" of "web.listen-address", the
 * first one that is offered, or "config" of "config.file" where that is the only one. */
void suggest_init(struct suggest *suggest, const char *wanted);

/* Offers one word of `len` bytes. */
void suggest_offer(struct suggest *suggest, const char *word, size_t len);

/* Appends ", did you mean <prefix><word>?", or nothing. */
void suggest_write(const struct suggest *suggest, const char *prefix, struct buf *out);
