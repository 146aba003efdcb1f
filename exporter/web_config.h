#pragma once

#include <stddef.h>

#include "exporter/core/problems.h"
#include "exporter/http_tls.h"
#include "exporter/http_users.h"

struct web_config;

struct web_config_header {
    const char *name;
    const char *value;
};

int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems);
struct web_config *web_config_ref(struct web_config *config);
void web_config_unref(struct web_config *config); /* accepts NULL */
const struct tls_context *web_config_tls(const struct web_config *config);
struct users *web_config_users(const struct web_config *config);
const struct web_config_header *web_config_headers(const struct web_config *config, size_t *ret_n);
