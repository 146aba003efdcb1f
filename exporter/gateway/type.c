#include "exporter/gateway/type.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static const char protobuf_type[] = "application/vnd.google.protobuf";
static const char blanks[] = " \t";

/* Whether the value of a parameter is that word, in quotes or without; moves behind it. */
static bool take_value(const char **at, const char *word) {
    bool quoted = **at == '"', same = true;
    const char *end = quoted ? "\"" : "; \t";
    *at += quoted ? 1 : 0;
    while (**at != '\0' && strchr(end, **at) == NULL) {
        *at += quoted && **at == '\\' && (*at)[1] != '\0' ? 1 : 0;
        same = same && **at == *word;
        word += same ? 1 : 0;
        (*at)++;
    }
    *at += quoted && **at == '"' ? 1 : 0;
    return same && *word == '\0';
}

/* Whether one of the parameters has that name and value. */
static bool has_parameter(const char *parameters, const char *name, const char *value) {
    const char *at = parameters;
    while (*(at += strspn(at, "; \t")) != '\0') {
        size_t len = strcspn(at, "=; \t");
        bool named = len == strlen(name) && strncasecmp(at, name, len) == 0;
        at += len;
        if (*at == '=') {
            at++;
            if (take_value(&at, value) && named) {
                return true;
            }
        }
    }
    return false;
}

int gateway_type_parse(const char *content_type, bool *ret_protobuf, struct error *err) {
    const char *type = content_type != NULL ? content_type : "";
    type += strspn(type, blanks);
    size_t len = strcspn(type, "; \t");
    *ret_protobuf = len == strlen(protobuf_type) && strncasecmp(type, protobuf_type, len) == 0;
    if (*ret_protobuf &&
        (!has_parameter(type + len, "proto", "io.prometheus.client.MetricFamily") ||
         !has_parameter(type + len, "encoding", "delimited"))) {
        return error_set(err, -EINVAL,
                         "protobuf must be proto=io.prometheus.client.MetricFamily; "
                         "encoding=delimited, got \"%s\"",
                         content_type);
    }
    return 0;
}
