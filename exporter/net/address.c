#include "exporter/net/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_unix(const char *path, struct http_address *address, struct error *err) {
    if (path[0] != '/') {
        return error_set(err, -EINVAL, "expected an absolute path behind \"unix:\", got \"%s\"",
                         path);
    }
    if (strlen(path) >= sizeof(address->path)) {
        return error_set(err, -EINVAL, "path of a Unix socket is longer than %zu bytes: \"%s\"",
                         sizeof(address->path) - 1, path);
    }
    address->is_unix = true;
    strcpy(address->path, path);
    return 0;
}

static int parse_port(const char *text, struct http_address *address, struct error *err) {
    size_t len = strlen(text);
    bool digits = len >= 1 && len <= 5 && strspn(text, "0123456789") == len;
    if (!digits || atoi(text) > 65535) {
        return error_set(err, -EINVAL, "expected a port from 0 to 65535, got \"%s\"", text);
    }
    strcpy(address->port, text);
    return 0;
}

static int parse_host(const char *text, struct http_address *address, struct error *err) {
    const char *host = text;
    const char *colon = strrchr(text, ':');
    const char *host_end = colon;
    if (text[0] == '[') {
        host = text + 1;
        host_end = strchr(text, ']');
        colon = host_end != NULL && host_end[1] == ':' ? host_end + 1 : NULL;
    } else if (colon != NULL && memchr(text, ':', (size_t)(colon - text)) != NULL) {
        return error_set(err, -EINVAL, "an IPv6 address needs brackets, as in [::1]:9090: \"%s\"",
                         text);
    }
    if (colon == NULL) {
        return error_set(err, -EINVAL,
                         "expected host:port, [v6]:port, :port or unix:/path, got \"%s\"", text);
    }
    size_t len = (size_t)(host_end - host);
    if (len >= sizeof(address->host)) {
        return error_set(err, -EINVAL, "host name is longer than %zu bytes",
                         sizeof(address->host) - 1);
    }
    memcpy(address->host, host, len);
    return parse_port(colon + 1, address, err);
}

int http_address_parse(const char *text, struct http_address *ret_address, struct error *err) {
    struct http_address address = {0};
    int r = strncmp(text, "unix:", 5) == 0 ? parse_unix(text + 5, &address, err)
                                           : parse_host(text, &address, err);
    if (r == 0) {
        *ret_address = address;
    }
    return r;
}

int http_address_check(const char *text, struct error *err) {
    struct http_address ignored;
    return http_address_parse(text, &ignored, err);
}

bool http_address_is_any(const struct http_address *address) {
    const char *host = address->host;
    return host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}
