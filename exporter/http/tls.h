#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/http/tls_policy.h"

/* What a TLS session of the server needs: certificate, versions and ciphers, and whom to let in.
 * Set up by the calls below, then shared and unchangeable. It must outlive the sessions it was
 * applied to: a connection holds the web_config that owns it. */
struct tls_context;

enum tls_client_auth {
    TLS_CLIENT_NONE,               /* no certificate is asked for */
    TLS_CLIENT_REQUEST,            /* asked for; any or none will do */
    TLS_CLIENT_REQUIRE_ANY,        /* any will do */
    TLS_CLIENT_VERIFY_IF_GIVEN,    /* none, or one signed by the client CA */
    TLS_CLIENT_REQUIRE_AND_VERIFY, /* one signed by the client CA */
};

enum { TLS_MAX_SAN_LEN = 2048 };

/* The caller destroys it. NULL when memory is out. */
struct tls_context *tls_context_create(void);
void tls_context_destroy(struct tls_context *tls); /* accepts NULL */

static inline void tls_context_cleanup(struct tls_context **tls) {
    tls_context_destroy(*tls);
}
#define CLEANUP_TLS_CONTEXT CLEANUP(tls_context_cleanup)

/* Sets our certificate, with its chain, from PEM. */
int tls_context_set_certificate(struct tls_context *tls, const char *pem, size_t len,
                                struct error *err);

/* Sets the key of the certificate, which was set before, from PEM. */
int tls_context_set_key(struct tls_context *tls, const char *pem, size_t len, struct error *err);

/* Sets who may sign client certificates, from PEM. */
int tls_context_set_client_ca(struct tls_context *tls, const char *pem, size_t len,
                              struct error *err);

/* Sets which clients are let in: by certificate and, where `n_sans` is not 0, only if one of its
 * alternative names (host, address, e-mail, URI) is among `sans`, each at most TLS_MAX_SAN_LEN
 * bytes long. -ENOMEM. */
int tls_context_set_clients(struct tls_context *tls, enum tls_client_auth auth,
                            const char *const *sans, size_t n_sans);

/* Sets versions, suites and curves; the certificate was set before. */
int tls_context_set_policy(struct tls_context *tls, const struct tls_policy *policy,
                           struct error *err);

/* Prepares a server session before its handshake. -EIO when GnuTLS refuses: drop the connection. */
int tls_context_apply(const struct tls_context *tls, gnutls_session_t session);

/* A gnutls_certificate_retrieve_function2 that has no certificate. libmicrohttpd, started with it
 * as MHD_OPTION_HTTPS_CERT_CALLBACK, needs no copy of the key, and a session to which no context
 * was applied fails. */
int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *ca_names, int n_ca_names,
                       const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                       gnutls_pcert_st **ret_chain, unsigned *ret_n_chain,
                       gnutls_privkey_t *ret_key);
