#include "exporter/http/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
        return (c | 0x20) - 'a' + 10;
    }
    return -1;
}

static bool has_encoded_slash(const char *path) {
    for (const char *c = strchr(path, '%'); c != NULL; c = strchr(c + 1, '%')) {
        if (strncasecmp(c, "%2f", 3) == 0) {
            return true;
        }
    }
    return false;
}

/* Decodes in place; in a query '+' is a space. */
static int decode(char *text, bool query, struct error *err) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from == '+' && query) {
            *to++ = ' ';
            continue;
        }
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]);
        int low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0) {
            return error_set(err, -EINVAL, "invalid %%-sequence in the address");
        }
        if (high == 0 && low == 0) {
            return error_set(err, -EINVAL, "NUL in the address");
        }
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return 0;
}

static int parse_query(char *query, struct http_url *url, struct error *err) {
    size_t n_max = 1;
    for (const char *c = query; *c != '\0'; c++) {
        n_max += *c == '&';
    }
    if (n_max > HTTP_URL_MAX_PARAMETERS) {
        return error_set(err, -EINVAL, "more than %d parameters", HTTP_URL_MAX_PARAMETERS);
    }
    url->parameters = mem_zalloc(n_max, sizeof(*url->parameters));
    char *rest = query;
    char *pair;
    while ((pair = strsep(&rest, "&")) != NULL) {
        if (pair[0] == '\0') {
            continue;
        }
        char *equals = strchr(pair, '=');
        char *value = equals != NULL ? equals + 1 : pair + strlen(pair);
        if (equals != NULL) {
            *equals = '\0';
        }
        int r = decode(pair, true, err);
        r = r < 0 || equals == NULL ? r : decode(value, true, err);
        if (r < 0) {
            return r;
        }
        url->parameters[url->n_parameters++] = (struct http_parameter){
            .name = pair,
            .value = equals != NULL ? value : "",
        };
    }
    return 0;
}

/* "http://host/path" is sent to proxies, and every server must accept it. */
static const char *skip_origin(const char *target) {
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;
    if (scheme == 0) {
        return target;
    }
    const char *path = target + scheme + strcspn(target + scheme, "/?");
    return path[0] == '\0' ? "/" : path;
}

int http_url_parse(const char *target, struct http_url *ret_url, struct error *err) {
    target = skip_origin(target);
    if (target[0] != '/') {
        return error_set(err, -EINVAL, "the address must be a path");
    }
    size_t path_len = strcspn(target, "?");
    struct http_url url = {
        .path = mem_strndup(target, path_len),
        .memory = target[path_len] == '?' ? mem_strdup(target + path_len + 1) : NULL,
    };
    url.has_encoded_slash = has_encoded_slash(url.path);
    int r = decode(url.path, false, err);
    if (r == 0 && url.memory != NULL) {
        r = parse_query(url.memory, &url, err);
    }
    if (r < 0) {
        http_url_finish(&url);
        return r;
    }
    *ret_url = url;
    return 0;
}

void http_url_finish(struct http_url *url) {
    free(url->path);
    free(url->parameters);
    free(url->memory);
    *url = (struct http_url){0};
}

const char *http_url_parameter(const struct http_url *url, const char *name) {
    for (size_t i = 0; i < url->n_parameters; i++) {
        if (strcmp(url->parameters[i].name, name) == 0) {
            return url->parameters[i].value;
        }
    }
    return NULL;
}
