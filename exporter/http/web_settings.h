#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/http/tls.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/yaml_doc.h"

/* What a web configuration file says, in the schema of Prometheus' exporter toolkit: keys known,
 * types right, nothing contradictory. Files it names are not opened here. */

enum web_key {
    WEB_BASIC_AUTH_USERS,
    WEB_HTTP,
    WEB_RATE_LIMIT,
    WEB_TLS,

    WEB_HTTP_HEADERS,
    WEB_HTTP_HTTP2, /* we speak HTTP/1.1 whatever it says */

    WEB_HEADER_FIRST,
    WEB_HEADER_CONTENT_SECURITY_POLICY = WEB_HEADER_FIRST,
    WEB_HEADER_STRICT_TRANSPORT_SECURITY,
    WEB_HEADER_X_CONTENT_TYPE_OPTIONS,
    WEB_HEADER_X_FRAME_OPTIONS,
    WEB_HEADER_X_XSS_PROTECTION,
    WEB_HEADER_LAST = WEB_HEADER_X_XSS_PROTECTION,

    WEB_RATE_LIMIT_BURST,
    WEB_RATE_LIMIT_INTERVAL, /* milliseconds */

    WEB_TLS_CERT,
    WEB_TLS_CERT_FILE,
    WEB_TLS_CIPHER_SUITES,
    WEB_TLS_CLIENT_ALLOWED_SANS,
    WEB_TLS_CLIENT_AUTH_TYPE,
    WEB_TLS_CLIENT_CA,
    WEB_TLS_CLIENT_CA_FILE,
    WEB_TLS_CURVE_PREFERENCES,
    WEB_TLS_KEY,
    WEB_TLS_KEY_FILE,
    WEB_TLS_MAX_VERSION,
    WEB_TLS_MIN_VERSION,
    WEB_TLS_PREFER_SERVER_CIPHER_SUITES,

    N_WEB_KEYS,
};

struct web_settings {
    struct yaml_doc *doc;                      /* owns all texts */
    const struct yaml_node *nodes[N_WEB_KEYS]; /* where each key stands; NULL: not given or empty */
    int64_t numbers[N_WEB_KEYS];               /* of switches, choices and numbers; 0: not given */
    enum tls_client_auth client_auth;
    struct tls_policy policy;
};

/* Reads `text`. 0, or -EINVAL with every mistake added to `problems` as `file`:line:column. The
 * caller finishes `out` in either case. */
int web_settings_parse(const char *file, const char *text, size_t len, struct web_settings *out,
                       struct problems *problems);

/* Frees what it holds and leaves it empty. */
void web_settings_finish(struct web_settings *settings);
#define CLEANUP_WEB_SETTINGS CLEANUP(web_settings_finish)

/* Adds a mistake in the value of `key`: "file:3:5: tls_server_config.cert_file: text". */
void web_settings_complain(const struct web_settings *settings, const char *file, enum web_key key,
                           struct problems *problems, const char *text);

/* The name of a key, without its section. Static. */
const char *web_settings_key_name(enum web_key key);
