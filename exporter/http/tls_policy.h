#pragma once

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Which versions, cipher suites and curves of TLS are spoken. The names are those of Go's
 * crypto/tls, because the web configuration file is shared with exporters written in Go. */

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

struct tls_suite;
struct tls_curve;

enum { TLS_POLICY_MAX_SUITES = 16, TLS_POLICY_MAX_CURVES = 4 };

struct tls_policy {
    enum tls_version min, max;
    const struct tls_suite *suites[TLS_POLICY_MAX_SUITES]; /* none: those with an AEAD cipher */
    size_t n_suites;
    const struct tls_curve *curves[TLS_POLICY_MAX_CURVES]; /* none: all we know */
    size_t n_curves;
    bool client_order; /* the client's order of preference counts, not ours */
};

/* The suite named as in Go ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), or NULL. */
const struct tls_suite *tls_suite_find(const char *name);

/* The curve named as in Go ("CurveP256", "X25519"), or NULL. */
const struct tls_curve *tls_curve_find(const char *name);

/* Appends the GnuTLS priority string for a policy and the kind of key in our certificate. -EINVAL
 * where they leave nothing to speak. */
int tls_policy_priority(const struct tls_policy *policy, gnutls_pk_algorithm_t algorithm,
                        struct buf *out, struct error *err);
