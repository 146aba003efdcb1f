#include "exporter/http_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "exporter/daemon.h"
#include "exporter/network.h"

static bool is_listed(const char *const *names, const char *name) {
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

static bool is_within(const char *const *networks, const struct in6_addr *address) {
    for (; *networks != NULL; networks++) {
        struct network network;
        if (network_parse(*networks, &network, NULL) == 0 && network_contains(&network, address)) {
            return true;
        }
    }
    return false;
}

/* A page from elsewhere can make a browser on this machine send requests that look like ours. */
static bool is_foreign_page(const struct http_access_peer *peer) {
    const char *scheme_end = peer->origin != NULL ? strstr(peer->origin, "://") : NULL;
    return peer->origin != NULL &&
           (scheme_end == NULL || peer->host == NULL || strcmp(scheme_end + 3, peer->host) != 0);
}

/* Whether it is an address or "localhost", with or without a port. */
static bool is_fixed_host(const char *host) {
    char name[INET_ADDRSTRLEN] = {0};
    size_t len = strcspn(host, ":");
    struct in_addr address;
    if (host[0] == '[' ||
        (len == strlen("localhost") && strncasecmp(host, "localhost", len) == 0)) {
        return true;
    }
    memcpy(name, host, len < sizeof(name) ? len : 0);
    return inet_pton(AF_INET, name, &address) == 1;
}

int http_access_judge(const struct http_access_peer *peer, const char *const *networks,
                      const char *const *users, struct error *err) {
    bool is_local = peer->is_unix || network_is_loopback(&peer->address);
    bool is_user = peer->user != NULL && is_listed(users, peer->user);
    /* Whoever serves a name can let it lead here once the page is there. */
    bool is_rebound =
        is_local && peer->origin != NULL && peer->host != NULL && !is_fixed_host(peer->host);
    if (is_foreign_page(peer) || (is_rebound && !is_user)) {
        return error_set(err, -EPERM, "a page of %s may not write here", peer->origin);
    }
    if ((is_local && !peer->forwarded) || is_user ||
        (!peer->is_unix && is_within(networks, &peer->address))) {
        return 0;
    }
    char address[INET6_ADDRSTRLEN];
    network_format(&peer->address, address);
    if (is_local) {
        return error_set(err, -EPERM,
                         "a proxy that asks for others may not write: start waap with "
                         "--push.allow=%s to trust it, or with --push.user=NAME and let a user of "
                         "the web configuration log in",
                         peer->is_unix ? "127.0.0.1" : address);
    }
    return error_set(err, -EPERM,
                     "only this machine may write, not %s: start waap with --push.allow=%s (or its "
                     "network, as 172.17.0.0/16), or with --push.user=NAME and log in as that user "
                     "of the web configuration",
                     address, address);
}

char *http_access_user(const struct http_request *request) {
    return request->user != NULL ? strdup(request->user) : NULL;
}

/* By what one proxy or another adds: none adds all of them. */
static bool is_forwarded(const struct http_request *request) {
    static const char *const names[] = {"Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (http_header(request, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

int http_access_check(const struct http_request *request, struct error *err) {
    const struct settings *settings = request->daemon->config->settings;
    struct http_access_peer peer = {
        .is_unix = request->client->is_unix,
        .address = request->client->address,
        .forwarded = is_forwarded(request),
        .origin = http_header(request, MHD_HTTP_HEADER_ORIGIN),
        .host = http_header(request, MHD_HTTP_HEADER_HOST),
        .user = request->user,
    };
    return http_access_judge(&peer, settings_list(settings, "push.allow"),
                             settings_list(settings, "push.user"), err);
}

bool http_access_may_write(struct http_request *request) {
    struct error err;
    if (http_access_check(request, &err) == 0) {
        return true;
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN, "%s", err.text);
    return false;
}
