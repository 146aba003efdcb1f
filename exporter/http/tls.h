#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The versions, cipher suites and curves of TLS that we accept. The names are those of Go's
 * crypto/tls, because the web configuration file is shared with exporters written in Go. */

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

struct tls_suite;
struct tls_curve;

enum { TLS_POLICY_MAX_SUITES = 16, TLS_POLICY_MAX_CURVES = 4 };

struct tls_policy {
    enum tls_version min, max;
    const struct tls_suite *suites[TLS_POLICY_MAX_SUITES]; /* none: all with an AEAD cipher */
    size_t n_suites;
    const struct tls_curve *curves[TLS_POLICY_MAX_CURVES]; /* none: all */
    size_t n_curves;
    bool client_order; /* the client's order of preference wins */
};

/* The suite named as in Go ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), or NULL. */
const struct tls_suite *tls_suite_find(const char *name);

/* The curve named as in Go ("CurveP256", "X25519"), or NULL. */
const struct tls_curve *tls_curve_find(const char *name);

/* Appends the GnuTLS priority string for a policy and the kind of key in our certificate. -EINVAL
 * if they leave no suite. */
int tls_policy_priority(const struct tls_policy *policy, gnutls_pk_algorithm_t algorithm,
                        struct buf *out, struct error *err);

/* Certificate, policy and client authentication of the server's TLS sessions. Set up by the calls
 * below, then shared and immutable. It must outlive the sessions it was applied to: a connection
 * holds the web_config that owns it. */
struct tls_context;

enum tls_client_auth {
    TLS_CLIENT_NONE,               /* no certificate is requested */
    TLS_CLIENT_REQUEST,            /* any or none */
    TLS_CLIENT_REQUIRE_ANY,        /* any */
    TLS_CLIENT_VERIFY_IF_GIVEN,    /* none, or one signed by the client CA */
    TLS_CLIENT_REQUIRE_AND_VERIFY, /* one signed by the client CA */
};

enum { TLS_MAX_SAN_LEN = 2048 };

/* The caller destroys it. */
struct tls_context *tls_context_create(void);
void tls_context_destroy(struct tls_context *tls); /* accepts NULL */

static inline void tls_context_cleanup(struct tls_context **tls) {
    tls_context_destroy(*tls);
}
#define CLEANUP_TLS_CONTEXT CLEANUP(tls_context_cleanup)

/* Sets our certificate, with its chain, from PEM; once. */
int tls_context_set_certificate(struct tls_context *tls, const char *pem, size_t len,
                                struct error *err);

/* Sets the key of the certificate from PEM, after the certificate. */
int tls_context_set_key(struct tls_context *tls, const char *pem, size_t len, struct error *err);

/* Sets the CA of client certificates, from PEM. */
int tls_context_set_client_ca(struct tls_context *tls, const char *pem, size_t len,
                              struct error *err);

/* Sets by which certificates clients may connect. */
void tls_context_set_clients(struct tls_context *tls, enum tls_client_auth auth);

/* Restricts clients to those whose certificate has one of the alternative names (host, address,
 * e-mail, URI) that were added, each at most TLS_MAX_SAN_LEN bytes long. */
void tls_context_add_san(struct tls_context *tls, const char *san);

/* Sets versions, suites and curves, after the certificate. */
int tls_context_set_policy(struct tls_context *tls, const struct tls_policy *policy,
                           struct error *err);

/* Prepares a server session before its handshake. -EIO: close the connection. */
int tls_context_apply(const struct tls_context *tls, gnutls_session_t session);

/* A gnutls_certificate_retrieve_function2 that has no certificate. libmicrohttpd, started with it
 * as MHD_OPTION_HTTPS_CERT_CALLBACK, needs no copy of the key, and a session to which no context
 * was applied fails. */
int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *ca_names, int n_ca_names,
                       const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                       gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                       gnutls_privkey_t *ret_key);
