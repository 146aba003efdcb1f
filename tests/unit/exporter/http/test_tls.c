#include "exporter/http/tls.h"

#include <errno.h>
#include <sys/socket.h>

#include "tests/unit/exporter/http/certificates.h"

static struct certificate ca, foreign_ca, server_rsa, server_ecdsa;
static struct certificate client, foreign_client, server_client, expired_client;

static void make_certificates(void) {
    certificate_init(&ca, &(struct certificate_spec){.ca = true});
    certificate_init(&foreign_ca, &(struct certificate_spec){.ca = true});
    certificate_init(&server_rsa, &(struct certificate_spec){.algorithm = GNUTLS_PK_RSA});
    certificate_init(&server_ecdsa, &(struct certificate_spec){0});
    certificate_init(&client, &(struct certificate_spec){.issuer = &ca,
                                                         .purpose = GNUTLS_KP_TLS_WWW_CLIENT,
                                                         .dns = "scraper.example",
                                                         .email = "ops@example.org",
                                                         .uri = "spiffe://example/scraper",
                                                         .ip = "192.0.2.7"});
    certificate_init(&foreign_client, &(struct certificate_spec){.issuer = &foreign_ca,
                                                                 .dns = "scraper.example",
                                                                 .ip = "2001:db8::7"});
    certificate_init(&server_client, &(struct certificate_spec){
                                         .issuer = &ca, .purpose = GNUTLS_KP_TLS_WWW_SERVER});
    certificate_init(&expired_client, &(struct certificate_spec){.issuer = &ca, .expired = true});
}

static void finish_certificates(void) {
    struct certificate *all[] = {&ca,     &foreign_ca,     &server_rsa,    &server_ecdsa,
                                 &client, &foreign_client, &server_client, &expired_client};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        certificate_finish(all[i]);
    }
}

static struct tls_context *context(const struct certificate *server,
                                   const struct tls_policy *policy) {
    struct error err = {0};
    struct tls_context *tls = tls_context_create();
    TEST_ASSERT_NOT_NULL(tls);
    int r = tls_context_set_certificate(tls, server->crt_pem, strlen(server->crt_pem), &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    r = tls_context_set_key(tls, server->key_pem, strlen(server->key_pem), &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    r = tls_context_set_policy(tls, policy, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return tls;
}

static const struct tls_policy both_versions = {.min = TLS_VERSION_1_2, .max = TLS_VERSION_1_3};

/* The other side of a handshake and what came of it. */
struct peer {
    const char *priority;
    const struct certificate *certificate; /* NULL: none */
    bool accepted;
    int alert; /* what the server sent, or -1 */
    gnutls_protocol_t version;
};

static bool goes_on(int r) {
    return r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED;
}

/* Both sides in turn. In TLS 1.3 the client is done before the server has seen its certificate, so
 * that it learns of a refusal only when it reads. */
static void shake_hands(gnutls_session_t server, gnutls_session_t other, struct peer *peer) {
    int server_r = GNUTLS_E_AGAIN, other_r = GNUTLS_E_AGAIN;
    for (int turn = 0; turn < 20 && goes_on(server_r); turn++) {
        other_r = goes_on(other_r) ? gnutls_handshake(other) : other_r;
        server_r = gnutls_handshake(server);
    }
    peer->accepted = server_r == 0;
    peer->version = gnutls_protocol_get_version(server);
    char byte;
    for (int turn = 0; turn < 20 && server_r != 0 && goes_on(other_r); turn++) {
        other_r = gnutls_handshake(other);
    }
    int r = other_r == 0 ? (int)gnutls_record_recv(other, &byte, 1) : other_r;
    peer->alert = r == GNUTLS_E_FATAL_ALERT_RECEIVED ? (int)gnutls_alert_get(other) : -1;
}

/* Sends the certificate even if the server did not name its issuer, as a hostile client would. */
static int send_anyway(gnutls_session_t session, const gnutls_datum_t *ca_names, int n_ca_names,
                       const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                       gnutls_retr2_st *out) {
    (void)ca_names, (void)n_ca_names, (void)algorithms, (void)n_algorithms;
    struct certificate *own = gnutls_session_get_ptr(session);
    *out = (gnutls_retr2_st){.cert_type = GNUTLS_CRT_X509, .key_type = GNUTLS_PRIVKEY_X509};
    if (own != NULL) {
        out->ncerts = 1;
        out->cert.x509 = &own->crt;
        out->key.x509 = own->key;
    }
    return 0;
}

static void connect_to(const struct tls_context *tls, struct peer *peer) {
    int fds[2];
    gnutls_session_t server, other;
    gnutls_certificate_credentials_t credentials;
    TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    TEST_ASSERT_EQUAL_INT(0, gnutls_init(&server, GNUTLS_SERVER | GNUTLS_NONBLOCK));
    TEST_ASSERT_EQUAL_INT(0, gnutls_init(&other, GNUTLS_CLIENT | GNUTLS_NONBLOCK));
    TEST_ASSERT_EQUAL_INT(0, gnutls_certificate_allocate_credentials(&credentials));
    gnutls_transport_set_int(server, fds[0]);
    gnutls_transport_set_int(other, fds[1]);
    TEST_ASSERT_EQUAL_INT(0, tls_context_apply(tls, server));
    gnutls_session_set_ptr(other, (void *)peer->certificate);
    gnutls_certificate_set_retrieve_function(credentials, send_anyway);
    gnutls_credentials_set(other, GNUTLS_CRD_CERTIFICATE, credentials);
    TEST_ASSERT_EQUAL_INT(0, gnutls_priority_set_direct(other, peer->priority, NULL));
    shake_hands(server, other, peer);
    gnutls_deinit(server);
    gnutls_deinit(other);
    gnutls_certificate_free_credentials(credentials);
    close(fds[0]);
    close(fds[1]);
}

#define ONLY_1_0 "NORMAL:-VERS-ALL:+VERS-TLS1.0:%COMPAT"
#define ONLY_1_1 "NORMAL:-VERS-ALL:+VERS-TLS1.1:%COMPAT"
#define ONLY_1_2 "NORMAL:-VERS-ALL:+VERS-TLS1.2"
#define ONLY_1_3 "NORMAL:-VERS-ALL:+VERS-TLS1.3"

static void test_versions(void) {
    static const struct {
        enum tls_version min, max;
        const char *client;
        gnutls_protocol_t spoken; /* 0: refused */
    } rows[] = {
        {TLS_VERSION_1_2, TLS_VERSION_1_3, ONLY_1_0, 0},
        {TLS_VERSION_1_2, TLS_VERSION_1_3, ONLY_1_1, 0},
        {TLS_VERSION_1_2, TLS_VERSION_1_3, ONLY_1_2, GNUTLS_TLS1_2},
        {TLS_VERSION_1_2, TLS_VERSION_1_3, ONLY_1_3, GNUTLS_TLS1_3},
        {TLS_VERSION_1_2, TLS_VERSION_1_3, "NORMAL", GNUTLS_TLS1_3},
        {TLS_VERSION_1_2, TLS_VERSION_1_2, "NORMAL", GNUTLS_TLS1_2},
        {TLS_VERSION_1_2, TLS_VERSION_1_2, ONLY_1_3, 0},
        {TLS_VERSION_1_3, TLS_VERSION_1_3, "NORMAL", GNUTLS_TLS1_3},
        {TLS_VERSION_1_3, TLS_VERSION_1_3, ONLY_1_2, 0},
    };
    const struct certificate *servers[] = {&server_rsa, &server_ecdsa};
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        size_t row = i / 2;
        struct tls_policy policy = {.min = rows[row].min, .max = rows[row].max};
        struct tls_context *tls CLEANUP_TLS_CONTEXT = context(servers[i % 2], &policy);
        struct peer peer = {.priority = rows[row].client};
        connect_to(tls, &peer);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[row].spoken != 0, peer.accepted, peer.priority);
        if (peer.accepted) {
            TEST_ASSERT_EQUAL_INT(rows[row].spoken, peer.version);
        }
    }
}

static void test_a_list_of_old_suites_still_serves_clients_of_tls13(void) {
    struct tls_policy policy = both_versions;
    policy.suites[policy.n_suites++] = tls_suite_find("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA");
    struct tls_context *tls CLEANUP_TLS_CONTEXT = context(&server_rsa, &policy);
    struct peer peer = {.priority = "NORMAL"};
    connect_to(tls, &peer);
    TEST_ASSERT_TRUE(peer.accepted);
    TEST_ASSERT_EQUAL_INT(GNUTLS_TLS1_2, peer.version);
}

enum { NONE, RIGHT, FOREIGN, SERVER_ONLY, EXPIRED };

static void test_client_certificates(void) {
    static const struct certificate *const certificates[] = {
        [RIGHT] = &client,
        [FOREIGN] = &foreign_client,
        [SERVER_ONLY] = &server_client,
        [EXPIRED] = &expired_client,
    };
    static const struct {
        enum tls_client_auth auth;
        bool accepted[5]; /* by NONE, RIGHT, … */
    } rows[] = {
        {TLS_CLIENT_NONE, {true, true, true, true, true}},
        {TLS_CLIENT_REQUEST, {true, true, true, true, true}},
        {TLS_CLIENT_REQUIRE_ANY, {false, true, true, true, true}},
        {TLS_CLIENT_VERIFY_IF_GIVEN, {true, true, false, false, false}},
        {TLS_CLIENT_REQUIRE_AND_VERIFY, {false, true, false, false, false}},
    };
    static const char *const versions[] = {ONLY_1_2, ONLY_1_3};
    for (size_t i = 0; i < 2 * 5 * ARRAY_LEN(rows); i++) {
        size_t row = i / 10, who = i / 2 % 5;
        struct tls_context *tls CLEANUP_TLS_CONTEXT = context(&server_rsa, &both_versions);
        TEST_ASSERT_EQUAL_INT(0,
                              tls_context_set_client_ca(tls, ca.crt_pem, strlen(ca.crt_pem), NULL));
        tls_context_set_clients(tls, rows[row].auth);
        struct peer peer = {.priority = versions[i % 2], .certificate = certificates[who]};
        connect_to(tls, &peer);
        char which[64];
        snprintf(which, sizeof(which), "auth %zu, client %zu, %s", row, who, peer.priority);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[row].accepted[who], peer.accepted, which);
    }
}

static void test_a_refused_client_is_told_why(void) {
    const struct {
        const struct certificate *certificate;
        int alert;
    } rows[] = {
        {&foreign_client, GNUTLS_A_UNKNOWN_CA},
        {&expired_client, GNUTLS_A_CERTIFICATE_EXPIRED},
        {&server_client, GNUTLS_A_BAD_CERTIFICATE},
    };
    static const char *const versions[] = {ONLY_1_2, ONLY_1_3};
    struct tls_context *tls CLEANUP_TLS_CONTEXT = context(&server_ecdsa, &both_versions);
    TEST_ASSERT_EQUAL_INT(0, tls_context_set_client_ca(tls, ca.crt_pem, strlen(ca.crt_pem), NULL));
    tls_context_set_clients(tls, TLS_CLIENT_REQUIRE_AND_VERIFY);
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct peer peer = {.priority = versions[i % 2], .certificate = rows[i / 2].certificate};
        connect_to(tls, &peer);
        TEST_ASSERT_FALSE(peer.accepted);
        TEST_ASSERT_EQUAL_INT(rows[i / 2].alert, peer.alert);
    }
}

static void test_only_allowed_names_come_in(void) {
    static const struct {
        const char *san;
        bool right, foreign;
    } rows[] = {
        {"scraper.example", true, false},
        {"ops@example.org", true, false},
        {"spiffe://example/scraper", true, false},
        {"192.0.2.7", true, false},
        {"2001:db8::7", false, false}, /* the foreign CA's client has it */
        {"192.0.2.70", false, false},
        {"192.0.2", false, false},
        {"scraper.exampl", false, false},
        {"scraper.example.org", false, false},
        {"SCRAPER.example", false, false},
        {"*.example", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_context *tls CLEANUP_TLS_CONTEXT = context(&server_ecdsa, &both_versions);
        TEST_ASSERT_EQUAL_INT(0,
                              tls_context_set_client_ca(tls, ca.crt_pem, strlen(ca.crt_pem), NULL));
        tls_context_set_clients(tls, TLS_CLIENT_REQUIRE_AND_VERIFY);
        tls_context_add_san(tls, "nobody.example");
        tls_context_add_san(tls, rows[i].san);
        struct peer right = {.priority = ONLY_1_3, .certificate = &client};
        struct peer foreign = {.priority = ONLY_1_3, .certificate = &foreign_client};
        connect_to(tls, &right);
        connect_to(tls, &foreign);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].right, right.accepted, rows[i].san);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].foreign, foreign.accepted, rows[i].san);
        if (!right.accepted) {
            TEST_ASSERT_EQUAL_INT(GNUTLS_A_ACCESS_DENIED, right.alert);
        }
    }
}

static void test_an_ipv6_address_matches_however_it_is_written(void) {
    struct tls_context *tls CLEANUP_TLS_CONTEXT = context(&server_ecdsa, &both_versions);
    tls_context_set_clients(tls, TLS_CLIENT_REQUIRE_ANY);
    tls_context_add_san(tls, "2001:DB8:0:0::7");
    struct peer peer = {.priority = ONLY_1_2, .certificate = &foreign_client};
    connect_to(tls, &peer);
    TEST_ASSERT_TRUE(peer.accepted);
}

static void test_mistakes_are_worded(void) {
    struct error err = {0};
    struct tls_context *tls CLEANUP_TLS_CONTEXT = tls_context_create();
    const char *pem = server_rsa.crt_pem;
    TEST_ASSERT_EQUAL_INT(-EINVAL, tls_context_set_certificate(tls, "", 0, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "not a certificate in PEM"));
    TEST_ASSERT_EQUAL_INT(-EINVAL, tls_context_set_certificate(tls, pem, strlen(pem) / 2, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, tls_context_set_client_ca(tls, "", 0, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "not a certificate in PEM"));
    TEST_ASSERT_EQUAL_INT(-EINVAL, tls_context_set_client_ca(tls, "hello", 5, &err));
    TEST_ASSERT_EQUAL_INT(0, tls_context_set_certificate(tls, pem, strlen(pem), &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, tls_context_set_key(tls, pem, strlen(pem), &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "not a private key in PEM"));
    const char *others[] = {server_ecdsa.key_pem, ca.key_pem};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        int r = tls_context_set_key(tls, others[i], strlen(others[i]), &err);
        TEST_ASSERT_EQUAL_INT(-EINVAL, r);
        TEST_ASSERT_EQUAL_STRING("does not match the certificate", err.text);
    }
}

static void test_a_session_without_context_fails(void) {
    struct peer peer = {.priority = ONLY_1_3};
    gnutls_session_t server, other;
    gnutls_certificate_credentials_t nothing;
    int fds[2];
    TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    TEST_ASSERT_EQUAL_INT(0, gnutls_certificate_allocate_credentials(&nothing));
    gnutls_certificate_set_retrieve_function2(nothing, tls_no_certificate);
    TEST_ASSERT_EQUAL_INT(0, gnutls_init(&server, GNUTLS_SERVER | GNUTLS_NONBLOCK));
    TEST_ASSERT_EQUAL_INT(0, gnutls_init(&other, GNUTLS_CLIENT | GNUTLS_NONBLOCK));
    gnutls_session_t sessions[] = {server, other};
    for (size_t i = 0; i < 2; i++) {
        gnutls_transport_set_int(sessions[i], fds[i]);
        gnutls_set_default_priority(sessions[i]);
        gnutls_credentials_set(sessions[i], GNUTLS_CRD_CERTIFICATE, nothing);
    }
    shake_hands(server, other, &peer);
    TEST_ASSERT_FALSE(peer.accepted);
    gnutls_deinit(server);
    gnutls_deinit(other);
    gnutls_certificate_free_credentials(nothing);
    close(fds[0]);
    close(fds[1]);
}

void suiteSetUp(void) {
    make_certificates();
}

int suiteTearDown(int failures) {
    finish_certificates();
    return failures;
}

/* ---- versions, suites and curves ---- */

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
         "error: none of these suites fits the certificate, whose key is RSA, and the TLS "
         "versions"},
        {{RSA_CBC},
         TLS_VERSION_1_3,
         TLS_VERSION_1_3,
         GNUTLS_PK_RSA,
         "error: none of these suites fits the certificate, whose key is RSA, and the TLS "
         "versions"},
        {{RSA_128, RSA_CBC},
         TLS_VERSION_1_2,
         TLS_VERSION_1_3,
         GNUTLS_PK_ECDSA,
         "error: none of these suites fits the certificate, whose key is ECDSA or EdDSA, and the "
         "TLS versions"},
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
