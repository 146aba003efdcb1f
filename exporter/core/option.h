#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can be configured: one row per setting. The same name serves everywhere: the flag
 * --web.listen-address, the variable WAAP_WEB_LISTEN_ADDRESS and, in the YAML file, the key
 * listen_address under web. A switch of a collector, --collector.host, is the key `enabled` under
 * collector: host: there. */

enum option_type {
    OPTION_BOOL,
    OPTION_INT,      /* min..max */
    OPTION_SIZE,     /* bytes: 512, 64KiB, 10MiB, 1GiB; min..max in bytes */
    OPTION_DURATION, /* 500ms, 10s, 5m, 1h, or a bare number of seconds; min..max in milliseconds */
    OPTION_STRING,
    OPTION_CHOICE, /* one of `choices` */
    OPTION_REGEX,  /* POSIX extended; checked when it is set. "" means none */
};

struct option {
    const char *name; /* "web.listen-address" */
    enum option_type type;
    bool repeatable;            /* a list: the flag may be given again, YAML takes a sequence */
    const char *default_text;   /* as one would write it on the command line; NULL or "": empty */
    int64_t min, max;           /* both 0: unbounded */
    const char *const *choices; /* NULL-terminated */
    const char *help;           /* one sentence for --help, no final point */
};
