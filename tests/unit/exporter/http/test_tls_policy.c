#include "exporter/http/tls_policy.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

/* What GnuTLS makes of a policy: "suite version" separated by spaces, in order. */
static void describe(const struct tls_policy *policy, gnutls_pk_algorithm_t key, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    struct error err = {0};
    gnutls_priority_t priority;
    if (tls_policy_priority(policy, key, &text, &err) < 0) {
        buf_printf(out, "error: %s", err.text);
        return;
    }
    const char *stopped_at = "";
    int r = gnutls_priority_init(&priority, buf_str(&text), &stopped_at);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, stopped_at);
    for (unsigned i = 0; r != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE; i++) {
        unsigned index;
        gnutls_kx_algorithm_t exchange;
        gnutls_protocol_t version;
        r = gnutls_priority_get_cipher_suite_index(priority, i, &index);
        if (r < 0) {
            continue;
        }
        const char *name = gnutls_cipher_suite_info(index, NULL, &exchange, NULL, NULL, &version);
        /* Of TLS 1.2, only what our key can do counts. */
        bool rsa = key == GNUTLS_PK_RSA;
        if (version == GNUTLS_TLS1_3 ||
            exchange == (rsa ? GNUTLS_KX_ECDHE_RSA : GNUTLS_KX_ECDHE_ECDSA)) {
            buf_printf(out, "%s%s", out->len > 0 ? " " : "", name + strlen("TLS_"));
        }
    }
    gnutls_priority_deinit(priority);
}

#define RSA_128 "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
#define RSA_256 "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
#define RSA_CBC "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"
#define ECDSA_CHACHA "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
#define ANY_128 "TLS_AES_128_GCM_SHA256"

static void test_exactly_these_suites_are_spoken(void) {
    static const struct {
        const char *suites[4];
        enum tls_version min, max;
        gnutls_pk_algorithm_t key;
        const char *spoken;
    } rows[] = {
        {{NULL},
         TLS_VERSION_1_2,
         TLS_VERSION_1_3,
         GNUTLS_PK_RSA,
         "AES_128_GCM_SHA256 CHACHA20_POLY1305_SHA256 AES_256_GCM_SHA384 "
         "ECDHE_RSA_AES_128_GCM_SHA256 ECDHE_RSA_CHACHA20_POLY1305 "
         "ECDHE_RSA_AES_256_GCM_SHA384"},
        {{NULL},
         TLS_VERSION_1_2,
         TLS_VERSION_1_2,
         GNUTLS_PK_ECDSA,
         "ECDHE_ECDSA_AES_128_GCM_SHA256 ECDHE_ECDSA_CHACHA20_POLY1305 "
         "ECDHE_ECDSA_AES_256_GCM_SHA384"},
        {{NULL},
         TLS_VERSION_1_3,
         TLS_VERSION_1_3,
         GNUTLS_PK_EDDSA_ED25519,
         "AES_128_GCM_SHA256 CHACHA20_POLY1305_SHA256 AES_256_GCM_SHA384"},
        /* In the order given. */
        {{RSA_256, RSA_128},
         TLS_VERSION_1_2,
         TLS_VERSION_1_2,
         GNUTLS_PK_RSA,
         "ECDHE_RSA_AES_256_GCM_SHA384 ECDHE_RSA_AES_128_GCM_SHA256"},
        /* Suites for another kind of key open nothing. */
        {{ECDSA_CHACHA, RSA_128},
         TLS_VERSION_1_2,
         TLS_VERSION_1_3,
         GNUTLS_PK_RSA,
         "AES_128_GCM_SHA256 ECDHE_RSA_AES_128_GCM_SHA256"},
        /* CBC does not exist in TLS 1.3: offering that version would fail every handshake. */
        {{RSA_CBC}, TLS_VERSION_1_2, TLS_VERSION_1_3, GNUTLS_PK_RSA, "ECDHE_RSA_AES_128_CBC_SHA1"},
        {{ANY_128}, TLS_VERSION_1_2, TLS_VERSION_1_3, GNUTLS_PK_RSA, "AES_128_GCM_SHA256"},
        {{ANY_128},
         TLS_VERSION_1_2,
         TLS_VERSION_1_2,
         GNUTLS_PK_RSA,
         "error: none of these suites fits the certificate, whose key is RSA, and the versions of "
         "TLS"},
        {{RSA_CBC},
         TLS_VERSION_1_3,
         TLS_VERSION_1_3,
         GNUTLS_PK_RSA,
         "error: none of these suites fits the certificate, whose key is RSA, and the versions of "
         "TLS"},
        {{RSA_128, RSA_CBC},
         TLS_VERSION_1_2,
         TLS_VERSION_1_3,
         GNUTLS_PK_ECDSA,
         "error: none of these suites fits the certificate, whose key is ECDSA or EdDSA, and the "
         "versions of TLS"},
        {{NULL},
         TLS_VERSION_1_2,
         TLS_VERSION_1_3,
         GNUTLS_PK_DSA,
         "error: expected a certificate with an RSA, ECDSA or EdDSA key"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_policy policy = {.min = rows[i].min, .max = rows[i].max};
        struct buf spoken CLEANUP_BUF = {0};
        for (size_t j = 0; rows[i].suites[j] != NULL; j++) {
            policy.suites[policy.n_suites] = tls_suite_find(rows[i].suites[j]);
            TEST_ASSERT_NOT_NULL(policy.suites[policy.n_suites++]);
        }
        describe(&policy, rows[i].key, &spoken);
        TEST_ASSERT_EQUAL_STRING(rows[i].spoken, buf_str(&spoken));
    }
}

static void test_priority_text(void) {
    struct tls_policy policy = {.max = TLS_VERSION_1_3};
    struct buf text CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, tls_policy_priority(&policy, GNUTLS_PK_RSA, &text, NULL));
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&text), ":+VERS-TLS1.3:+VERS-TLS1.2:"));
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&text), ":+GROUP-X25519:+GROUP-SECP256R1:"));
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&text), ":%SERVER_PRECEDENCE"));
    buf_reset(&text);
    policy.curves[policy.n_curves++] = tls_curve_find("CurveP384");
    policy.curves[policy.n_curves++] = tls_curve_find("X25519");
    policy.client_order = true;
    TEST_ASSERT_EQUAL_INT(0, tls_policy_priority(&policy, GNUTLS_PK_RSA, &text, NULL));
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&text), ":+AEAD:+GROUP-SECP384R1:+GROUP-X25519"));
    TEST_ASSERT_NULL(strstr(buf_str(&text), "SECP256R1"));
    TEST_ASSERT_NULL(strstr(buf_str(&text), "SERVER_PRECEDENCE"));
}

static void test_no_finite_field_groups_and_no_sha1_signatures(void) {
    struct tls_policy policy = {.max = TLS_VERSION_1_3};
    struct buf text CLEANUP_BUF = {0}, groups CLEANUP_BUF = {0};
    gnutls_priority_t priority;
    const unsigned *list;
    TEST_ASSERT_EQUAL_INT(0, tls_policy_priority(&policy, GNUTLS_PK_RSA, &text, NULL));
    TEST_ASSERT_EQUAL_INT(0, gnutls_priority_init(&priority, buf_str(&text), NULL));
    int n_groups = gnutls_priority_group_list(priority, &list);
    for (int i = 0; i < n_groups; i++) {
        buf_printf(&groups, "%s ", gnutls_group_get_name(list[i]));
    }
    TEST_ASSERT_EQUAL_STRING("X25519 SECP256R1 SECP384R1 SECP521R1 ", buf_str(&groups));
    int n_signatures = gnutls_priority_sign_list(priority, &list);
    TEST_ASSERT_TRUE(n_signatures > 0);
    for (int i = 0; i < n_signatures; i++) {
        TEST_ASSERT_NOT_EQUAL(GNUTLS_DIG_SHA1, gnutls_sign_get_hash_algorithm(list[i]));
    }
    gnutls_priority_deinit(priority);
}

static void test_names_nobody_has(void) {
    TEST_ASSERT_NULL(tls_suite_find(""));
    TEST_ASSERT_NULL(tls_suite_find("TLS_RSA_WITH_RC4_128_SHA"));
    TEST_ASSERT_NULL(tls_suite_find("TLS_RSA_WITH_AES_128_GCM_SHA256"));
    TEST_ASSERT_NULL(tls_suite_find("tls_aes_128_gcm_sha256"));
    TEST_ASSERT_NULL(tls_curve_find("CurveP224"));
    TEST_ASSERT_NULL(tls_curve_find("x25519"));
}
