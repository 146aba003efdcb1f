#include "exporter/http/tls_policy.h"

#include <errno.h>
#include <string.h>

/* What a suite of TLS 1.2 asks of the certificate; a suite of TLS 1.3 asks nothing. */
enum suite_key { SUITE_KEY_ANY, SUITE_KEY_ECDSA, SUITE_KEY_RSA };

struct tls_suite {
    const char *name;
    const char *cipher; /* of GnuTLS */
    enum suite_key key;
    bool aead; /* also fit for TLS 1.3; the others are CBC with SHA1 */
};

struct tls_curve {
    const char *name;
    const char *group; /* of GnuTLS */
};

/* Those that Go calls secure, without the ones that lack forward secrecy. */
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

/* What suites come to. */
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
                         "and the versions of TLS",
                         key == SUITE_KEY_RSA ? "RSA" : "ECDSA or EdDSA");
    }
    /* Named one by one: NORMAL alone speaks TLS 1.0, and finite-field groups cost the server most.
     */
    buf_add_str(out, "NORMAL:-VERS-ALL:-KX-ALL:-CIPHER-ALL:-MAC-ALL:-GROUP-ALL"
                     ":-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:+ECDHE-ECDSA:+ECDHE-RSA");
    buf_add_str(out, tls13 ? ":+VERS-TLS1.3" : "");
    buf_add_str(out, tls12 ? ":+VERS-TLS1.2" : "");
    buf_add(out, ciphers.data, ciphers.len);
    buf_add_str(out, selection.aead ? ":+AEAD" : "");
    buf_add_str(out, selection.cbc ? ":+SHA1" : "");
    add_groups(policy, out);
    buf_add_str(out, policy->client_order ? "" : ":%SERVER_PRECEDENCE");
    return out->failed || ciphers.failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}
