#pragma once

#include <stddef.h>
#include <stdio.h>

#include "exporter/core/cleanup.h"

/* Mistakes found in what a user wrote, several at once, each with its place. A zeroed struct is an
 * empty list. */
struct problems {
    char **lines;
    size_t n_lines;
    size_t cap_lines;
};

/* Frees the list and leaves it empty. */
void problems_finish(struct problems *problems);
#define CLEANUP_PROBLEMS CLEANUP(problems_finish)

/* Adds "file:line:column: text"; `line` 0 leaves line and column out (a flag, a variable). */
void problems_add(struct problems *problems, const char *file, size_t line, size_t column,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Writes the list, one problem per line. */
void problems_print(const struct problems *problems, FILE *to);
