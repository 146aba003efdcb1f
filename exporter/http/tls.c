#include "exporter/http/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/core/tls_start.h"

/* ---- versions, suites and curves ---- */

/* The kind of key that a suite of TLS 1.2 needs; suites of TLS 1.3 go with any. */
enum suite_key { SUITE_KEY_ANY, SUITE_KEY_ECDSA, SUITE_KEY_RSA };

struct tls_suite {
    const char *name;
    const char *cipher; /* of GnuTLS */
    enum suite_key key;
    bool aead; /* also for TLS 1.3; the others are CBC with SHA1 */
};

struct tls_curve {
    const char *name;
    const char *group; /* of GnuTLS */
};

/* The suites that Go calls secure and that have forward secrecy. */
static const struct tls_suite suites[] = {
    {"TLS_AES_128_GCM_SHA256", "AES-128-GCM", SUITE_KEY_ANY, true},
    {"TLS_AES_256_GCM_SHA384", "AES-256-GCM", SUITE_KEY_ANY, true},
    {"TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", SUITE_KEY_ANY, true},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "AES-128-CBC", SUITE_KEY_ECDSA, false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", SUITE_KEY_ECDSA, true},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "AES-256-CBC", SUITE_KEY_ECDSA, false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", SUITE_KEY_ECDSA, true},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", SUITE_KEY_ECDSA, true},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "AES-128-CBC", SUITE_KEY_RSA, false},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", SUITE_KEY_RSA, true},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "AES-256-CBC", SUITE_KEY_RSA, false},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", SUITE_KEY_RSA, true},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", SUITE_KEY_RSA, true},
};
_Static_assert(ARRAY_LEN(suites) <= TLS_POLICY_MAX_SUITES, "a policy can list every suite");

static const struct tls_curve curves[] = {
    {"CurveP256", "GROUP-SECP256R1"},
    {"CurveP384", "GROUP-SECP384R1"},
    {"CurveP521", "GROUP-SECP521R1"},
    {"X25519", "GROUP-X25519"},
};
_Static_assert(ARRAY_LEN(curves) <= TLS_POLICY_MAX_CURVES, "a policy can list every curve");

const struct tls_suite *tls_suite_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
        if (strcmp(suites[i].name, name) == 0) {
            return &suites[i];
        }
    }
    return NULL;
}

const struct tls_curve *tls_curve_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
        if (strcmp(curves[i].name, name) == 0) {
            return &curves[i];
        }
    }
    return NULL;
}

static enum suite_key key_of(gnutls_pk_algorithm_t algorithm) {
    switch (algorithm) {
    case GNUTLS_PK_RSA:
    case GNUTLS_PK_RSA_PSS:
        return SUITE_KEY_RSA;
    case GNUTLS_PK_ECDSA:
    case GNUTLS_PK_EDDSA_ED25519:
    case GNUTLS_PK_EDDSA_ED448:
        return SUITE_KEY_ECDSA;
    default:
        return SUITE_KEY_ANY;
    }
}

/* What a list of suites allows. */
struct selection {
    bool aead, cbc;
    bool tls12, tls13;
};

/* GnuTLS takes ciphers, not suites, and the same for both versions. With one kind of key and one
 * key exchange, the ciphers name the suites of TLS 1.2 exactly. */
static struct selection select_listed(const struct tls_policy *policy, enum suite_key key,
                                      struct buf *ciphers) {
    struct selection selection = {0};
    for (size_t i = 0; i < policy->n_suites; i++) {
        const struct tls_suite *suite = policy->suites[i];
        if (suite->key != SUITE_KEY_ANY && suite->key != key) {
            continue;
        }
        buf_printf(ciphers, ":+%s", suite->cipher);
        selection.aead |= suite->aead;
        selection.cbc |= !suite->aead;
        selection.tls12 |= suite->key == key;
        selection.tls13 |= suite->aead;
    }
    return selection;
}

static struct selection select_default(struct buf *ciphers) {
    buf_add_str(ciphers, ":+AES-128-GCM:+CHACHA20-POLY1305:+AES-256-GCM");
    return (struct selection){.aead = true, .tls12 = true, .tls13 = true};
}

static void add_groups(const struct tls_policy *policy, struct buf *out) {
    if (policy->n_curves == 0) {
        buf_add_str(out, ":+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-SECP521R1");
    }
    for (size_t i = 0; i < policy->n_curves; i++) {
        buf_printf(out, ":+%s", policy->curves[i]->group);
    }
}

int tls_policy_priority(const struct tls_policy *policy, gnutls_pk_algorithm_t algorithm,
                        struct buf *out, struct error *err) {
    enum suite_key key = key_of(algorithm);
    if (key == SUITE_KEY_ANY) {
        return error_set(err, -EINVAL, "expected a certificate with an RSA, ECDSA or EdDSA key");
    }
    struct buf ciphers CLEANUP_BUF = {0};
    struct selection selection =
        policy->n_suites > 0 ? select_listed(policy, key, &ciphers) : select_default(&ciphers);
    bool tls12 = selection.tls12 && policy->min <= TLS_VERSION_1_2;
    bool tls13 = selection.tls13 && policy->max >= TLS_VERSION_1_3;
    if (!tls12 && !tls13) {
        return error_set(err, -EINVAL,
                         "none of these suites fits the certificate, whose key is %s, "
                         "and the TLS versions",
                         key == SUITE_KEY_RSA ? "RSA" : "ECDSA or EdDSA");
    }
    /* Listed one by one: NORMAL includes TLS 1.0 and finite-field groups, the most expensive. */
    buf_add_str(out, "NORMAL:-VERS-ALL:-KX-ALL:-CIPHER-ALL:-MAC-ALL:-GROUP-ALL"
                     ":-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:+ECDHE-ECDSA:+ECDHE-RSA");
    buf_add_str(out, tls13 ? ":+VERS-TLS1.3" : "");
    buf_add_str(out, tls12 ? ":+VERS-TLS1.2" : "");
    buf_add(out, ciphers.data, ciphers.len);
    buf_add_str(out, selection.aead ? ":+AEAD" : "");
    buf_add_str(out, selection.cbc ? ":+SHA1" : "");
    add_groups(policy, out);
    buf_add_str(out, policy->client_order ? "" : ":%SERVER_PRECEDENCE");
    return 0;
}

/* ---- sessions ---- */

struct tls_context {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    gnutls_x509_crt_t *chain; /* our own, first the certificate itself */
    unsigned n_chain;
    enum tls_client_auth client_auth;
    char **sans;
    size_t n_sans;
};

static int verify_client(gnutls_session_t session);

struct tls_context *tls_context_create(void) {
    tls_start();
    struct tls_context *tls = mem_zalloc(1, sizeof(*tls));
    if (gnutls_certificate_allocate_credentials(&tls->credentials) < 0) {
        mem_out();
    }
    gnutls_certificate_set_verify_function(tls->credentials, verify_client);
    return tls;
}

void tls_context_destroy(struct tls_context *tls) {
    if (tls == NULL) {
        return;
    }
    for (unsigned i = 0; i < tls->n_chain; i++) {
        gnutls_x509_crt_deinit(tls->chain[i]);
    }
    gnutls_free(tls->chain);
    gnutls_certificate_free_credentials(tls->credentials);
    if (tls->priority != NULL) {
        gnutls_priority_deinit(tls->priority);
    }
    for (size_t i = 0; i < tls->n_sans; i++) {
        free(tls->sans[i]);
    }
    free(tls->sans);
    free(tls);
}

static gnutls_datum_t datum(const char *pem, size_t len) {
    return (gnutls_datum_t){.data = (unsigned char *)pem, .size = (unsigned)len};
}

int tls_context_set_certificate(struct tls_context *tls, const char *pem, size_t len,
                                struct error *err) {
    gnutls_datum_t data = datum(pem, len);
    unsigned n_chain = 0;
    if (gnutls_x509_crt_list_import2(&tls->chain, &n_chain, &data, GNUTLS_X509_FMT_PEM, 0) < 0) {
        return error_set(err, -EINVAL, "not a certificate in PEM");
    }
    tls->n_chain = n_chain;
    return 0;
}

int tls_context_set_key(struct tls_context *tls, const char *pem, size_t len, struct error *err) {
    gnutls_datum_t data = datum(pem, len);
    gnutls_x509_privkey_t key;
    if (gnutls_x509_privkey_init(&key) < 0) {
        mem_out();
    }
    int r = gnutls_x509_privkey_import2(key, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (r < 0) {
        gnutls_x509_privkey_deinit(key);
        return error_set(err, -EINVAL, "not a private key in PEM without password");
    }
    r = gnutls_certificate_set_x509_key(tls->credentials, tls->chain, (int)tls->n_chain, key);
    gnutls_x509_privkey_deinit(key);
    if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) {
        return error_set(err, -EINVAL, "does not match the certificate");
    }
    return r < 0 ? error_set(err, -EINVAL, "%s", gnutls_strerror(r)) : 0;
}

int tls_context_set_client_ca(struct tls_context *tls, const char *pem, size_t len,
                              struct error *err) {
    gnutls_datum_t data = datum(pem, len);
    int r = gnutls_certificate_set_x509_trust_mem(tls->credentials, &data, GNUTLS_X509_FMT_PEM);
    if (r <= 0) {
        return error_set(err, -EINVAL, "not a certificate in PEM");
    }
    return 0;
}

void tls_context_set_clients(struct tls_context *tls, enum tls_client_auth auth) {
    tls->client_auth = auth;
}

void tls_context_add_san(struct tls_context *tls, const char *san) {
    tls->sans = mem_resize(tls->sans, tls->n_sans + 1, sizeof(*tls->sans));
    tls->sans[tls->n_sans++] = mem_strdup(san);
}

int tls_context_set_policy(struct tls_context *tls, const struct tls_policy *policy,
                           struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int algorithm = gnutls_x509_crt_get_pk_algorithm(tls->chain[0], NULL);
    int r = tls_policy_priority(policy, (gnutls_pk_algorithm_t)algorithm, &text, err);
    if (r < 0) {
        return r;
    }
    r = gnutls_priority_init2(&tls->priority, buf_str(&text), NULL, 0);
    return r < 0 ? error_set(err, -EINVAL, "%s: %s", buf_str(&text), gnutls_strerror(r)) : 0;
}

int tls_context_apply(const struct tls_context *tls, gnutls_session_t session) {
    static const gnutls_certificate_request_t requests[] = {
        [TLS_CLIENT_NONE] = GNUTLS_CERT_IGNORE,
        [TLS_CLIENT_REQUEST] = GNUTLS_CERT_REQUEST,
        [TLS_CLIENT_REQUIRE_ANY] = GNUTLS_CERT_REQUIRE,
        [TLS_CLIENT_VERIFY_IF_GIVEN] = GNUTLS_CERT_REQUEST,
        [TLS_CLIENT_REQUIRE_AND_VERIFY] = GNUTLS_CERT_REQUIRE,
    };
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) < 0 ||
        gnutls_priority_set(session, tls->priority) < 0) {
        return -EIO;
    }
    gnutls_certificate_server_set_request(session, requests[tls->client_auth]);
    /* libmicrohttpd uses the session's own pointer. That of the session cache is free: without a
     * cache every session verifies its client. */
    gnutls_db_set_ptr(session, (void *)tls);
    return 0;
}

int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *ca_names, int n_ca_names,
                       const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                       gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                       gnutls_privkey_t *ret_key) {
    (void)session, (void)ca_names, (void)n_ca_names, (void)algorithms, (void)n_algorithms;
    (void)ret_chain, (void)ret_n_chain, (void)ret_key;
    return -1;
}

static bool address_matches(const char *bytes, size_t len, const char *san) {
    unsigned char address[sizeof(struct in6_addr)];
    int family = len == sizeof(struct in_addr) ? AF_INET : AF_INET6;
    return (len == sizeof(struct in_addr) || len == sizeof(struct in6_addr)) &&
           inet_pton(family, san, address) == 1 && memcmp(address, bytes, len) == 0;
}

static bool name_matches(int type, const char *name, size_t len, const char *san) {
    switch (type) {
    case GNUTLS_SAN_IPADDRESS:
        return address_matches(name, len, san);
    case GNUTLS_SAN_DNSNAME:
    case GNUTLS_SAN_RFC822NAME:
    case GNUTLS_SAN_URI:
        return strlen(san) == len && memcmp(san, name, len) == 0;
    default:
        return false;
    }
}

static bool name_allowed(const struct tls_context *tls, int type, const char *name, size_t len) {
    for (size_t i = 0; i < tls->n_sans; i++) {
        if (name_matches(type, name, len, tls->sans[i])) {
            return true;
        }
    }
    return false;
}

static bool certificate_allowed(const struct tls_context *tls, const gnutls_datum_t *der) {
    gnutls_x509_crt_t certificate;
    if (gnutls_x509_crt_init(&certificate) < 0) {
        return false;
    }
    bool allowed = false;
    int type = gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER);
    for (unsigned i = 0; type >= 0 && !allowed; i++) {
        char name[TLS_MAX_SAN_LEN + 1];
        size_t len = sizeof(name);
        type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &len, NULL);
        if (type == GNUTLS_E_SHORT_MEMORY_BUFFER) {
            type = GNUTLS_SAN_MAX; /* longer than any we allow */
        } else if (type >= 0) {
            allowed = name_allowed(tls, type, name, len);
        }
    }
    gnutls_x509_crt_deinit(certificate);
    return allowed;
}

/* Without an alert the client would only see a closed connection. */
static int reject(gnutls_session_t session, gnutls_alert_description_t alert) {
    gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

static gnutls_alert_description_t alert_of(unsigned status) {
    if (status & GNUTLS_CERT_SIGNER_NOT_FOUND) {
        return GNUTLS_A_UNKNOWN_CA;
    }
    return status & GNUTLS_CERT_EXPIRED ? GNUTLS_A_CERTIFICATE_EXPIRED : GNUTLS_A_BAD_CERTIFICATE;
}

/* Called by GnuTLS in the handshake, even if the client sent no certificate. */
static int verify_client(gnutls_session_t session) {
    const struct tls_context *tls = gnutls_db_get_ptr(session);
    unsigned n_chain = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n_chain);
    bool required = tls->client_auth == TLS_CLIENT_REQUIRE_ANY ||
                    tls->client_auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    bool verified = tls->client_auth == TLS_CLIENT_VERIFY_IF_GIVEN ||
                    tls->client_auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    if (chain == NULL || n_chain == 0) {
        return required ? reject(session, GNUTLS_A_CERTIFICATE_REQUIRED) : 0;
    }
    if (verified) {
        gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                         .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
        unsigned status = 0;
        int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
        if (r < 0 || status != 0) {
            return reject(session, r < 0 ? GNUTLS_A_BAD_CERTIFICATE : alert_of(status));
        }
    }
    if (tls->n_sans > 0 && !certificate_allowed(tls, &chain[0])) {
        return reject(session, GNUTLS_A_ACCESS_DENIED);
    }
    return 0;
}
