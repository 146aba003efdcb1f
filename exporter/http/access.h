#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/http/request.h"

/* Who may change something: push, turn knobs, wipe, reload, quit. Readers are let in by the web
 * configuration alone; for writers this comes on top of it. */

/* What is known of who asks. */
struct http_access_peer {
    bool is_unix; /* came over a Unix socket: its file permissions have decided */
    struct in6_addr address;
    bool is_gateway; /* of a route of this machine: forwards for strangers, as docker-proxy does */
    bool forwarded;  /* a proxy says that it asks for somebody else */
    bool is_browser;
    const char *origin; /* of the page that makes a browser ask; or NULL */
    const char *host;   /* that the request was meant for; or NULL */
    const char *user;   /* whose password was checked; or NULL */
};

/* Who may write, by the settings; the lists end with NULL. */
struct http_access_rules {
    bool allow_local;            /* push.allow-local: this machine may, over TCP */
    const char *const *networks; /* push.allow */
    const char *const *users;    /* push.user */
    const char *const *names;    /* web.hostname */
    const char *hostname;        /* of this machine, beside `names` */
};

/* Decides; -EPERM with words that say how to allow it. */
int http_access_judge(const struct http_access_peer *peer, const struct http_access_rules *rules,
                      struct error *err);

/* The same for who sends the request. */
int http_access_check(const struct http_request *request, struct error *err);

/* Whether a browser that shows the page that is asked for may write. */
int http_access_check_viewer(const struct http_request *request, struct error *err);

/* Whether the request may change something; where it may not it has been answered. */
bool http_access_may_write(struct http_request *request);

/* The name that came with a password which was found to be right; the caller frees it. NULL: none
 * was asked for. */
char *http_access_user(const struct http_request *request);

/* Whether a routing table has a route by way of this address. `text` is the kernel's
 * /proc/net/route for IPv4 (mapped) addresses, its ipv6_route for others. */
bool http_access_names_gateway(const char *text, const struct in6_addr *address);

/* The same for the network that this process is in. */
int http_access_is_gateway(const struct in6_addr *address, bool *ret_is_gateway, struct error *err);
