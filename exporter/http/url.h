#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"

/* The target of a request, "/metrics?collect[]=host": its path, and its query as name=value pairs,
 * all percent-decoded. */
struct http_url {
    char *path;
    struct http_parameter {
        const char *name;
        const char *value; /* "" without '=' */
    } * parameters;
    size_t n_parameters;
    bool has_encoded_slash; /* "%2F" in the path: once decoded, it looks like any other slash */
    char *memory;           /* of the parameters */
};

enum { HTTP_URL_MAX_PARAMETERS = 100 };

/* Reads a request target. -EINVAL: not a path, an invalid %-sequence, a NUL, or too many
 * parameters. Free it with http_url_finish. */
int http_url_parse(const char *target, struct http_url *ret_url, struct error *err);
void http_url_finish(struct http_url *url); /* accepts a zeroed one */

/* The value of the first parameter of that name, or NULL. */
const char *http_url_parameter(const struct http_url *url, const char *name);
