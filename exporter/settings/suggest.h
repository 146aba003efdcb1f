#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

enum { SUGGEST_MAX_LEN = 63 };

/* Finds, among the words it is offered, the one nearest to a user's word. */
struct suggest {
    const char *wanted;
    size_t allowed;                 /* letters that may differ */
    size_t distance;                /* of the best; beyond `allowed` if it only contains the word */
    char best[SUGGEST_MAX_LEN + 1]; /* "" while nothing is near enough */
};

/* Begins a search. Words that differ in more than a third of the letters (half of a short one) are
 * skipped, unless the user's word is a part of them: "listen" of "web.listen-address", the
 * first one that is offered, or "config" of "config.file" if that is the only one. */
void suggest_init(struct suggest *suggest, const char *wanted);

/* Offers one word of `len` bytes. */
void suggest_offer(struct suggest *suggest, const char *word, size_t len);

/* Appends ", did you mean <prefix><word>?", or nothing. */
void suggest_write(const struct suggest *suggest, const char *prefix, struct buf *out);
