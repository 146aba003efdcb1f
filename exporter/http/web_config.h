#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "exporter/core/cleanup.h"
#include "exporter/http/tls.h"
#include "exporter/http/users.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"
#include "exporter/settings/yaml.h"

enum { WEB_MAX_FILES = 4, WEB_MAX_HEADERS = 5 }; /* itself, certificate, key, client CA */

struct web_config_header {
    const char *name;
    char *value;
};

struct web_config_rate_limit {
    int64_t interval_ms; /* one request per interval …; 0: no limit */
    int64_t burst;       /* … but so many at once */
};

/* The web configuration file in force, in the schema of Prometheus' exporter toolkit. Immutable and
 * reference counted; a reload replaces it, and connections keep the one they were opened with. */
struct web_config {
    atomic_uint refs;
    struct web_config_source {
        char *path;
        struct stat stat; /* when it was read */
    } sources[WEB_MAX_FILES];
    size_t n_sources;
    struct tls_context *tls;                           /* NULL: plain HTTP */
    struct users *users;                               /* NULL: no password is required */
    struct web_config_header headers[WEB_MAX_HEADERS]; /* of every response */
    size_t n_headers;
    struct web_config_rate_limit rate_limit;
};

/* Reads the file at `path` and the certificates it names, relative to its directory. 0, or a
 * negative errno with every mistake added to `problems`. Release it with web_config_unref. */
int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems);

/* The same for the file of the setting web.config.file; NULL if there is none. */
int web_config_load_set(const struct settings *settings, struct web_config **ret_config,
                        struct problems *problems);

struct web_config *web_config_ref(struct web_config *config);
void web_config_unref(struct web_config *config); /* accepts NULL */

static inline void web_config_cleanup(struct web_config **config) {
    web_config_unref(*config);
}
#define CLEANUP_WEB_CONFIG CLEANUP(web_config_cleanup)

/* Whether a file that was read has been replaced since; `*ret_stamp` identifies the state of the
 * files, so that a bad one is not tried twice. Reads the file system: slow. */
bool web_config_outdated(const struct web_config *config, uint64_t *ret_stamp);

/* ---- for tests ---- */

/* A value of the file; `node` is NULL if it is not given or empty. */
struct web_value {
    const struct yaml_node *node;
    int64_t number; /* of switches, choices and numbers */
};

/* The content of a web configuration file: known keys, right types, nothing contradictory. The
 * files it names are not opened. */
struct web_settings {
    struct yaml_doc *doc; /* owns all texts */
    struct web_value users;
    struct web_value headers[WEB_MAX_HEADERS];
    struct web_value http2; /* we speak HTTP/1.1 in any case */
    struct web_value burst, interval;
    struct web_value tls;
    struct web_value cert, cert_file, key, key_file, client_ca, client_ca_file;
    struct web_value client_auth, client_sans;
    struct web_value min_version, max_version, suites, curves, server_order;
    struct tls_policy policy;
};

/* Reads `text`. 0, or -EINVAL with every mistake added to `problems` as `file`:line:column. The
 * caller finishes `out` in either case. */
int web_settings_parse(const char *file, const char *text, size_t len, struct web_settings *out,
                       struct problems *problems);
void web_settings_finish(struct web_settings *settings);
#define CLEANUP_WEB_SETTINGS CLEANUP(web_settings_finish)
