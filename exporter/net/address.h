#pragma once

#include <stdbool.h>

#include "exporter/core/error.h"

/* An address to listen on: "host:port", "[v6]:port", ":port" (all addresses) or "unix:/path". */
struct http_address {
    bool is_unix;
    char host[256]; /* "" means all addresses */
    char port[8];
    char path[108]; /* of a Unix socket; what struct sockaddr_un can hold */
};

/* Parses one address; -EINVAL with the reason. */
int http_address_parse(const char *text, struct http_address *ret_address, struct error *err);

/* The same for option tables: only checks it. */
int http_address_check(const char *text, struct error *err);

/* Whether it is all addresses of the machine: "", "0.0.0.0" or "::". */
bool http_address_is_any(const struct http_address *address);
