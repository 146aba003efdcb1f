/* Covers 40 % of exporter/http/web_config.c. */
#include <assert.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <string.h>

#include "exporter/http/users.h"
#include "exporter/http/web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Whatever was taken for good makes a priority string that GnuTLS understands. */
static void check_policy(const struct tls_policy *policy) {
    static const gnutls_pk_algorithm_t keys[] = {GNUTLS_PK_RSA, GNUTLS_PK_ECDSA};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct buf text CLEANUP_BUF = {0};
        gnutls_priority_t priority;
        if (tls_policy_priority(policy, keys[i], &text, NULL) == 0) {
            assert(gnutls_priority_init(&priority, buf_str(&text), NULL) == 0);
            gnutls_priority_deinit(priority);
        }
    }
}

static void check_settings(const struct web_settings *settings) {
    bool has_ca = settings->client_ca.node != NULL || settings->client_ca_file.node != NULL;
    assert(settings->client_auth.number != TLS_CLIENT_REQUIRE_AND_VERIFY || has_ca);
    assert(settings->policy.min <= settings->policy.max || settings->tls.node == NULL);
    assert(settings->interval.number == 0 || settings->burst.number > 0);
    check_policy(&settings->policy);
}

static void add_users(const struct yaml_node *list) {
    struct users *users CLEANUP_USERS = users_create();
    for (size_t i = 0; users != NULL && list != NULL && i < list->n_items; i++) {
        if (list->items[i].kind == YAML_KIND_SCALAR) {
            users_add(users, list->items[i].key, list->items[i].text, NULL);
            users_lookup(users, list->items[i].text);
        }
    }
}

/* A web configuration file: any bytes. Files it names are not opened. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct web_settings settings CLEANUP_WEB_SETTINGS;
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = web_settings_parse("f", (const char *)data, len, &settings, &problems);
    assert((r == 0) == (problems.n_lines == 0));
    for (size_t i = 0; i < problems.n_lines; i++) {
        assert(strncmp(problems.lines[i], "f:", 2) == 0);
        assert(strchr(problems.lines[i], '\n') == NULL);
    }
    if (r == 0) {
        check_settings(&settings);
    }
    add_users(settings.users.node);
    return 0;
}
