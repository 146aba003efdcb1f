#include "exporter/http/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/log.h"
#include "exporter/core/scan.h"
#include "exporter/http/server.h"
#include "exporter/net/network.h"

enum { MAX_NAME = 255 }; /* of DNS */

static bool is_listed(const char *const *names, const char *name,
                      int (*compare)(const char *a, const char *b)) {
    while (*names != NULL && compare(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

/* With `alone` only an entry for this one address counts. */
static bool is_within(const char *const *networks, const struct in6_addr *address, bool alone) {
    for (; *networks != NULL; networks++) {
        struct network network;
        if (network_parse(*networks, &network, NULL) == 0 && network_contains(&network, address) &&
            (!alone || network_is_address(&network))) {
            return true;
        }
    }
    return false;
}

/* A page from elsewhere can make a browser send requests in its user's name. */
static bool is_foreign_page(const struct http_access_peer *peer) {
    const char *scheme_end = peer->origin != NULL ? strstr(peer->origin, "://") : NULL;
    return peer->origin != NULL &&
           (scheme_end == NULL || peer->host == NULL || strcmp(scheme_end + 3, peer->host) != 0);
}

/* Whether the host is an address or a name of this machine, with or without a port. */
static bool is_own_name(const char *host, const struct http_access_rules *rules) {
    char name[MAX_NAME + 1] = {0};
    size_t len = strcspn(host, ":");
    struct in_addr address;
    if (host[0] == '[') {
        return true;
    }
    memcpy(name, host, len < sizeof(name) ? len : 0);
    bool is_own = inet_pton(AF_INET, name, &address) == 1 || strcasecmp(name, "localhost") == 0 ||
                  strcasecmp(name, rules->hostname) == 0;
    return (is_own && name[0] != '\0') || is_listed(rules->names, name, strcasecmp);
}

/* The owner of a name can make it resolve to this machine after a browser has loaded the owner's
 * page (DNS rebinding). Passwords protect: a browser sends them only to the name they are for. */
static int check_page(const struct http_access_peer *peer, const struct http_access_rules *rules,
                      struct error *err) {
    if (is_foreign_page(peer)) {
        return error_set(err, -EPERM, "a page of %s may not write here", peer->origin);
    }
    if (peer->is_browser && !peer->is_unix && peer->user == NULL &&
        (peer->host == NULL || !is_own_name(peer->host, rules))) {
        const char *host = peer->host != NULL ? peer->host : "";
        return error_set(
            err, -EPERM,
            "a page of %s may not write here: if this is a name of this machine, start "
            "waap with --web.hostname=%.*s",
            host, (int)strcspn(host, ":"), host);
    }
    return 0;
}

int http_access_judge(const struct http_access_peer *peer, const struct http_access_rules *rules,
                      struct error *err) {
    int r = check_page(peer, rules, err);
    if (r < 0) {
        return r;
    }
    bool is_loopback = !peer->is_unix && network_is_loopback(&peer->address);
    bool is_local = peer->is_unix || (is_loopback && rules->allow_local);
    bool forwards = peer->forwarded || peer->is_gateway;
    if ((is_local && !peer->forwarded) ||
        (peer->user != NULL && is_listed(rules->users, peer->user, strcmp)) ||
        (!peer->is_unix && is_within(rules->networks, &peer->address, forwards))) {
        return 0;
    }
    char address[INET6_ADDRSTRLEN];
    network_format(&peer->address, address);
    if (peer->forwarded) {
        return error_set(err, -EPERM,
                         "a proxy may not write for others: start waap with "
                         "--push.allow=%s to trust it, or with --push.user=NAME and let a user of "
                         "the web configuration log in",
                         peer->is_unix ? "127.0.0.1" : address);
    }
    if (peer->is_gateway) {
        return error_set(
            err, -EPERM,
            "%s may not write as part of its network: it is a gateway, which may "
            "forward for strangers; use the plugin socket, start waap with --push.user=NAME "
            "and log in as that user of the web configuration, or with "
            "--push.allow=%s to trust all that it forwards",
            address, address);
    }
    return error_set(err, -EPERM,
                     "%s may not write: start waap with --push.allow=%s (or its network, as "
                     "172.17.0.0/16), or with --push.user=NAME and log in as that user of the web "
                     "configuration",
                     address, address);
}

/* ---- gateways ---- */

/* About 1000 routes, which take the kernel 2 ms to write: the time grows with their square. */
enum { MAX_TABLE = 128 << 10, MAX_HEX = 2 * sizeof(struct in6_addr) + 1 };

struct table {
    const char *path;
    unsigned n_before; /* words of a line before the gateway, which is zero if there is none */
};

/* Iface Destination Gateway Flags … */
static const struct table table_v4 = {"/proc/self/net/route", 2};

/* Destination, its bits, source, its bits, gateway, … */
static const struct table table_v6 = {"/proc/self/net/ipv6_route", 4};

static const struct table *table_of(const struct in6_addr *address) {
    return IN6_IS_ADDR_V4MAPPED(address) ? &table_v4 : &table_v6;
}

/* The address as in its table: IPv4 as a number in this machine's byte order. */
static void format_hex(const struct in6_addr *address, char out[static MAX_HEX]) {
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        uint32_t number;
        memcpy(&number, &address->s6_addr[12], sizeof(number));
        snprintf(out, MAX_HEX, "%08X", (unsigned)number);
        return;
    }
    for (size_t i = 0; i < sizeof(address->s6_addr); i++) {
        snprintf(out + 2 * i, 3, "%02x", address->s6_addr[i]);
    }
}

static bool has_word(const char *line, unsigned n_before, const char *text) {
    struct scan_word word;
    while (scan_word(&line, &word)) {
        if (n_before-- == 0) {
            return scan_word_equal(word, text);
        }
    }
    return false;
}

bool http_access_names_gateway(const char *text, const struct in6_addr *address) {
    char hex[MAX_HEX];
    format_hex(address, hex);
    while (!has_word(text, table_of(address)->n_before, hex)) {
        text = strchr(text, '\n');
        if (text == NULL) {
            return false;
        }
        text++;
    }
    return true;
}

int http_access_is_gateway(const struct in6_addr *address, bool *ret_is_gateway,
                           struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read_at(AT_FDCWD, table_of(address)->path, MAX_TABLE, &text, err);
    if (r == 0) {
        *ret_is_gateway = http_access_names_gateway(buf_str(&text), address);
    }
    return r;
}

/* ---- requests ---- */

/* Proxies add one or another of these. */
static bool is_forwarded(const struct http_request *request) {
    static const char *const names[] = {"Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (http_header(request, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Looked up once per connection, and only for clients that a network allows. If that fails they are
 * rejected: otherwise a published port would admit everybody. */
static bool is_gateway(struct http_client *client, const char *const *networks) {
    if (client->is_unix || !is_within(networks, &client->address, false)) {
        return false;
    }
    struct error err;
    if (!client->gateway_known &&
        http_access_is_gateway(&client->address, &client->is_gateway, &err) < 0) {
        log_warn("http: networks of push.allow are ignored: %s", err.text);
        client->is_gateway = true;
    }
    client->gateway_known = true;
    return client->is_gateway;
}

static int judge(const struct http_request *request, bool is_browser, struct error *err) {
    const struct settings *settings = request->server->config->settings;
    const char *const *networks = settings_list(settings, "push.allow");
    struct http_access_peer peer = {
        .is_unix = request->client->is_unix,
        .address = request->client->address,
        .is_gateway = is_gateway(request->client, networks),
        .forwarded = is_forwarded(request),
        .is_browser = is_browser,
        .origin = http_header(request, MHD_HTTP_HEADER_ORIGIN),
        .host = http_header(request, MHD_HTTP_HEADER_HOST),
        .user = request->user,
    };
    char hostname[MAX_NAME + 1] = "";
    gethostname(hostname, sizeof(hostname) - 1);
    struct http_access_rules rules = {
        .hostname = hostname,
        .allow_local = settings_bool(settings, "push.allow-local"),
        .networks = networks,
        .users = settings_list(settings, "push.user"),
        .names = settings_list(settings, "web.hostname"),
    };
    return http_access_judge(&peer, &rules, err);
}

int http_access_check(const struct http_request *request, struct error *err) {
    /* Browsers send Origin with every request that may change something. */
    bool is_browser = http_header(request, MHD_HTTP_HEADER_ORIGIN) != NULL ||
                      http_header(request, "Sec-Fetch-Site") != NULL;
    return judge(request, is_browser, err);
}

int http_access_check_viewer(const struct http_request *request, struct error *err) {
    return judge(request, true, err);
}

bool http_access_may_write(struct http_request *request) {
    struct error err;
    if (http_access_check(request, &err) == 0) {
        return true;
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN, "%s", err.text);
    return false;
}
