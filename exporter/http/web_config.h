#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/http/tls.h"
#include "exporter/http/users.h"
#include "exporter/settings/problems.h"

/* The web configuration file in force: TLS, users, headers, rate limit. Complete and checked before
 * anybody sees it, unchangeable and counted; a reload puts another in its place, and connections
 * keep theirs until they end. */
struct web_config;

struct web_config_header {
    const char *name;
    const char *value;
};

struct web_config_rate_limit {
    int64_t interval_ms; /* one request per interval …; 0: no limit */
    int64_t burst;       /* … but so many at once */
};

/* Reads the file at `path` and the certificates it names, relative to its directory. 0, or a
 * negative errno with every mistake added to `problems`. The caller drops it with
 * web_config_unref. */
int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems);
struct web_config *web_config_ref(struct web_config *config);
void web_config_unref(struct web_config *config); /* accepts NULL */

static inline void web_config_cleanup(struct web_config **config) {
    web_config_unref(*config);
}
#define CLEANUP_WEB_CONFIG CLEANUP(web_config_cleanup)

/* What sessions need, or NULL for plain HTTP. */
const struct tls_context *web_config_tls(const struct web_config *config);

/* Who may come in, or NULL for everybody. */
struct users *web_config_users(const struct web_config *config);

/* Headers to add to every response. */
const struct web_config_header *web_config_headers(const struct web_config *config, size_t *ret_n);

struct web_config_rate_limit web_config_rate_limit(const struct web_config *config);

/* Whether a file that was read is another one by this time; `*ret_stamp` then tells one state of
 * the files from the next, so that a bad one need not be tried twice. Asks the file system: slow.
 */
bool web_config_outdated(const struct web_config *config, uint64_t *ret_stamp);
