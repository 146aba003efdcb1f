#pragma once

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <string.h>
#include <time.h>
#include <unity.h>

#include "exporter/core/tls_start.h"

/* Certificates made on the spot, for tests. */

struct certificate {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    char *crt_pem; /* freed with gnutls_free */
    char *key_pem;
};

struct certificate_spec {
    gnutls_pk_algorithm_t algorithm;  /* 0: ECDSA */
    const struct certificate *issuer; /* NULL: signs itself */
    bool ca;
    bool expired;
    const char *purpose; /* GNUTLS_KP_…, or NULL */
    const char *dns, *email, *uri, *ip;
};

static inline void certificate_add_names(gnutls_x509_crt_t crt, const struct certificate_spec *w) {
    const struct {
        gnutls_x509_subject_alt_name_t type;
        const char *name;
    } names[] = {
        {GNUTLS_SAN_DNSNAME, w->dns}, {GNUTLS_SAN_RFC822NAME, w->email}, {GNUTLS_SAN_URI, w->uri}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].name != NULL) {
            int r = gnutls_x509_crt_set_subject_alt_name(crt, names[i].type, names[i].name,
                                                         (unsigned)strlen(names[i].name),
                                                         GNUTLS_FSAN_APPEND);
            TEST_ASSERT_EQUAL_INT(0, r);
        }
    }
    if (w->ip != NULL) {
        unsigned char bytes[16];
        bool v6 = strchr(w->ip, ':') != NULL;
        TEST_ASSERT_EQUAL_INT(1, inet_pton(v6 ? AF_INET6 : AF_INET, w->ip, bytes));
        int r = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, bytes, v6 ? 16 : 4,
                                                     GNUTLS_FSAN_APPEND);
        TEST_ASSERT_EQUAL_INT(0, r);
    }
}

static inline void certificate_make_key(struct certificate *out, gnutls_pk_algorithm_t algorithm) {
    unsigned bits = algorithm == GNUTLS_PK_RSA   ? 2048
                    : algorithm == GNUTLS_PK_DSA ? 2048
                                                 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    tls_start();
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_privkey_init(&out->key));
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_privkey_generate(out->key, algorithm, bits, 0));
}

static inline void certificate_init(struct certificate *out, const struct certificate_spec *spec) {
    static int serial = 1;
    time_t now = time(NULL);
    const struct certificate *issuer = spec->issuer != NULL ? spec->issuer : out;
    gnutls_datum_t pem;
    *out = (struct certificate){0};
    certificate_make_key(out, spec->algorithm != 0 ? spec->algorithm : GNUTLS_PK_ECDSA);
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_crt_init(&out->crt));
    unsigned char number[2] = {1, (unsigned char)serial++};
    gnutls_x509_crt_set_serial(out->crt, number, sizeof(number));
    gnutls_x509_crt_set_version(out->crt, 3);
    gnutls_x509_crt_set_activation_time(out->crt, now - 7200);
    gnutls_x509_crt_set_expiration_time(out->crt, spec->expired ? now - 3600 : now + 3600);
    char name[32];
    snprintf(name, sizeof(name), "CN=test %d", serial);
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_crt_set_dn(out->crt, name, NULL));
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_crt_set_key(out->crt, out->key));
    gnutls_x509_crt_set_basic_constraints(out->crt, spec->ca, -1);
    if (spec->ca) {
        gnutls_x509_crt_set_key_usage(out->crt, GNUTLS_KEY_KEY_CERT_SIGN);
    }
    if (spec->purpose != NULL) {
        gnutls_x509_crt_set_key_purpose_oid(out->crt, spec->purpose, 0);
    }
    certificate_add_names(out->crt, spec);
    TEST_ASSERT_EQUAL_INT(
        0, gnutls_x509_crt_sign2(out->crt, issuer->crt, issuer->key, GNUTLS_DIG_SHA256, 0));
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_crt_export2(out->crt, GNUTLS_X509_FMT_PEM, &pem));
    out->crt_pem = (char *)pem.data;
    TEST_ASSERT_EQUAL_INT(0, gnutls_x509_privkey_export2(out->key, GNUTLS_X509_FMT_PEM, &pem));
    out->key_pem = (char *)pem.data;
}

static inline void certificate_finish(struct certificate *certificate) {
    gnutls_x509_crt_deinit(certificate->crt);
    gnutls_x509_privkey_deinit(certificate->key);
    gnutls_free(certificate->crt_pem);
    gnutls_free(certificate->key_pem);
}
