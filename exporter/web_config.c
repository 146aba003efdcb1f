#include "exporter/web_config.h"
#include <errno.h>
int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems) {
    (void)ret_config;
    problems_add(problems, path, 0, 0, "not supported yet");
    return -EINVAL;
}
struct web_config *web_config_ref(struct web_config *config) {
    return config;
}
void web_config_unref(struct web_config *config) {
    (void)config;
}
const struct tls_context *web_config_tls(const struct web_config *config) {
    (void)config;
    return NULL;
}
struct users *web_config_users(const struct web_config *config) {
    (void)config;
    return NULL;
}
const struct web_config_header *web_config_headers(const struct web_config *config, size_t *ret_n) {
    (void)config;
    *ret_n = 0;
    return NULL;
}
