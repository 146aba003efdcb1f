#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/http/request.h"

/* Which clients may write: push, change knobs, wipe, reload, quit. The web configuration admits
 * readers; these rules apply to writers in addition. */

/* What is known of a client. */
struct http_access_peer {
    bool is_unix; /* over a Unix socket, whose file permissions protect it */
    struct in6_addr address;
    bool is_gateway; /* of a route of this machine: may forward for strangers, as docker-proxy does
                      */
    bool forwarded;  /* by a proxy, for another client */
    bool is_browser;
    const char *origin; /* of the page in a browser; or NULL */
    const char *host;   /* of the Host header; or NULL */
    const char *user;   /* with a checked password; or NULL */
};

/* The settings that allow writing; the lists end with NULL. */
struct http_access_rules {
    bool allow_local;            /* push.allow-local: this machine, over TCP */
    const char *const *networks; /* push.allow */
    const char *const *users;    /* push.user */
    const char *const *names;    /* web.hostname */
    const char *hostname;        /* of this machine, in addition to `names` */
};

/* 0, or -EPERM with a text that explains how to allow it. */
int http_access_judge(const struct http_access_peer *peer, const struct http_access_rules *rules,
                      struct error *err);

/* The same for the client of a request. */
int http_access_check(const struct http_request *request, struct error *err);

/* The same for a browser that shows the requested page. */
int http_access_check_viewer(const struct http_request *request, struct error *err);

/* Whether the request may write; if not, it has got a reply. */
bool http_access_may_write(struct http_request *request);

/* Whether a routing table has a route via this address. `text` is the kernel's /proc/net/route for
 * IPv4 (mapped) addresses, its ipv6_route for others. */
bool http_access_names_gateway(const char *text, const struct in6_addr *address);

/* The same for the network namespace of this process. */
int http_access_is_gateway(const struct in6_addr *address, bool *ret_is_gateway, struct error *err);
