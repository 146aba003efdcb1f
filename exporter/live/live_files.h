#pragma once

#include <stddef.h>

/* The page at "/", from exporter/live/ by embed.py. */

struct live_file {
    const char *path;
    const char *content_type;
    const unsigned char *gzip;
    size_t gzip_size;
    size_t size; /* unpacked */
};

/* HTML with marks, "@NAME@", where the state of the daemon goes. */
extern const char live_html[];
extern const struct live_file live_css;
extern const struct live_file live_js;
