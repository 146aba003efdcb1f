#pragma once

#include <stddef.h>
#include <stdio.h>

#include "exporter/settings/option.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"

/* The command line of a command: flags by a table of options, and words. */

enum { FLAGS_MAX_WORDS = 256 };

struct flags {
    struct settings *settings;
    const struct option **options;      /* of the settings */
    const char *words[FLAGS_MAX_WORDS]; /* in order */
    size_t n_words;
};

/* Reads argv behind argv[0] by tables that end at a row without a name, `more` may be NULL:
 * --name=value, --name value, --name and --no-name of switches; behind -- all are words. If a flag
 * that is not repeatable is given again, the last one counts. -EINVAL with every mistake in
 * `problems`. The caller finishes it in any case. */
int flags_read(struct flags *flags, const struct option *options, const struct option *more,
               int argc, char *const *argv, struct problems *problems);
void flags_finish(struct flags *flags);
#define CLEANUP_FLAGS CLEANUP(flags_finish)

/* The same for a whole command: -1, or its exit code if it asked for help, which is printed, or has
 * mistakes, which are. */
int flags_begin(struct flags *flags, const char *usage, const struct option *options, int argc,
                char *const *argv);

/* The same into settings that exist; with `words` NULL every word is a problem. */
void flags_set(struct settings *settings, int argc, char *const *argv, struct flags *words,
               struct problems *problems);

/* Whether --help or -h is among the arguments before "--". */
bool flags_ask_for_help(int argc, char *const *argv);

/* One line per option. */
void flags_print_help(const struct option *options, FILE *to);
