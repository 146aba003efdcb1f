#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* One row per setting. The same name is used everywhere: the flag
 * --web.listen-address, the variable WAAP_WEB_LISTEN_ADDRESS and, in the YAML file, the key
 * listen_address under web. A switch of a collector, --collector.host, is the key `enabled` under
 * collector: host: there. */

enum option_type {
    OPTION_BOOL,
    OPTION_INT,      /* min..max */
    OPTION_SIZE,     /* bytes: 512, 64KiB, 10MiB, 1GiB; min..max in bytes */
    OPTION_DURATION, /* 500ms, 10s, 1m30s, 1h, a bare number: seconds; min..max in milliseconds */
    OPTION_STRING,
    OPTION_CHOICE, /* one of `choices`; if repeatable, some of them, also "a,b" */
    OPTION_REGEX,  /* as core/regex.h has it; checked when it is set. "" means none */
};

struct option {
    const char *name; /* "web.listen-address" */
    enum option_type type;
    bool repeatable;            /* a list: the flag may be given again, YAML takes a sequence */
    bool not_in_file;           /* makes sense as flag and variable only */
    bool common;                /* comes first in --help */
    const char *default_text;   /* as one would write it on the command line; NULL: empty, false */
    const char *bare_text;      /* optional, of choices: what true means, and the flag alone */
    int64_t min, max;           /* both 0: unbounded */
    const char *const *choices; /* NULL-terminated */
    const char *help;           /* one sentence for --help, no final point */

    /* Optional, for texts of a special form: 0, or -EINVAL with "expected …, got …". */
    int (*check)(const char *text, struct error *err);
};

/* Reads one value. `*ret_number` is the number, the bytes, the milliseconds, the index of the
 * choice or, if the option is repeatable, their bits, 0 or 1, or 0 for texts. -EINVAL with the
 * reason ("expected a duration such as 10s, got
 * \"ten\""), without the option's name. */
int option_parse(const struct option *option, const char *text, int64_t *ret_number,
                 struct error *err);

/* What a usage text has behind "--name=": "SIZE". */
const char *option_placeholder(const struct option *option);

/* Appends what a value must look like: "a whole number from 0 to 10000". */
void option_describe(const struct option *option, struct buf *out);

/* Appends a number as one would write it: "64KiB" for a size, "1m30s" for a duration. */
void option_format(enum option_type type, int64_t number, struct buf *out);
