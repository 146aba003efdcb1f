#pragma once

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Splits a text into the words of a command line, without a shell and what one would put in: words
 * end at blanks; '…' holds anything but its own quote; in "…" and outside of quotes a backslash
 * takes the next character as it is. The list ends in NULL and lies, like the words, in the arena.
 * -EINVAL with what is not closed, -ENOMEM. */
int run_args_split(const char *text, struct arena *arena, const char *const **ret_words,
                   struct error *err);

/* Ends a buffer of pointers with NULL and copies it into the arena; NULL when memory is out. */
const char *const *run_args_list(struct buf *words, struct arena *arena);
