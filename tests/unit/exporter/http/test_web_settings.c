#include "exporter/http/web_settings.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"

/* Reads `text` and gives all complaints, one per line. */
static void parse(const char *text, struct web_settings *out, struct buf *complaints) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = web_settings_parse("w.yml", text, strlen(text), out, &problems);
    TEST_ASSERT_EQUAL_INT(problems.n_lines > 0 ? -EINVAL : 0, r);
    for (size_t i = 0; i < problems.n_lines; i++) {
        buf_printf(complaints, "%s%s", i > 0 ? "\n" : "", problems.lines[i]);
    }
}

#define PAIR "tls_server_config:\n  cert_file: c\n  key_file: k\n"

static void test_mistakes(void) {
    static const struct {
        const char *text;
        const char *complaints;
    } rows[] = {
        {"- a\n", "w.yml:1:1: expected a mapping, got a list"},
        {"hello\n", "w.yml:1:1: expected a mapping, got a value"},
        {"tls_server_conf: {}\n",
         "w.yml:1:1: tls_server_conf: unknown key, did you mean tls_server_config?"},
        {"a: 1\nb: 2\n", "w.yml:1:1: a: unknown key\nw.yml:2:1: b: unknown key"},
        {"tls_server_config: yes\n",
         "w.yml:1:20: tls_server_config: expected a mapping, got a value"},
        {"tls_server_config:\n  min_version: TLS12\n",
         "w.yml:2:3: tls_server_config: expected cert_file or cert, got neither\n"
         "w.yml:2:3: tls_server_config: expected key_file or key, got neither"},
        {PAIR "  cert: c\n  key: k\n",
         "w.yml:4:9: tls_server_config.cert: expected either cert or cert_file, got both\n"
         "w.yml:5:8: tls_server_config.key: expected either key or key_file, got both"},
        {PAIR "  min_version: TLS10\n  max_version: TLS11\n",
         "w.yml:4:16: tls_server_config.min_version: expected one of TLS12, TLS13, got \"TLS10\"\n"
         "w.yml:5:16: tls_server_config.max_version: expected one of TLS12, TLS13, got \"TLS11\""},
        {PAIR "  min_version: [TLS12]\n",
         "w.yml:4:16: tls_server_config.min_version: expected one of TLS12, TLS13, got a list"},
        {PAIR "  min_version: TLS13\n  max_version: TLS12\n",
         "w.yml:4:16: tls_server_config.min_version: expected at most max_version"},
        {PAIR "  cipher_suites: TLS_AES_128_GCM_SHA256\n",
         "w.yml:4:18: tls_server_config.cipher_suites: expected a list, got a value"},
        {PAIR "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA, TLS_AES_128_GCM_SHA256, "
              "TLS_AES_128_GCM_SHA256, {a: b}, '']\n",
         "w.yml:4:19: tls_server_config.cipher_suites[0]: expected a cipher suite with forward "
         "secrecy by its name in Go, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n"
         "w.yml:4:69: tls_server_config.cipher_suites[2]: given twice\n"
         "w.yml:4:93: tls_server_config.cipher_suites[3]: expected a text\n"
         "w.yml:4:101: tls_server_config.cipher_suites[4]: expected a text"},
        {PAIR "  curve_preferences: [CurveP224]\n",
         "w.yml:4:23: tls_server_config.curve_preferences[0]: expected one of CurveP256, "
         "CurveP384, CurveP521, X25519"},
        {PAIR "  client_auth_type: Maybe\n",
         "w.yml:4:21: tls_server_config.client_auth_type: expected one of NoClientCert, "
         "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven, "
         "RequireAndVerifyClientCert, got \"Maybe\""},
        {PAIR "  client_auth_type: RequireAndVerifyClientCert\n",
         "w.yml:4:21: tls_server_config.client_auth_type: expected client_ca_file or client_ca "
         "with it, to verify against"},
        {PAIR "  client_ca_file: ca\n",
         "w.yml:4:19: tls_server_config.client_ca_file: expected client_auth_type with it, such as "
         "RequireAndVerifyClientCert"},
        {PAIR "  client_ca: ca\n  client_ca_file: ca\n  client_auth_type: NoClientCert\n",
         "w.yml:4:14: tls_server_config.client_ca: expected either client_ca or client_ca_file, "
         "got both\n"
         "w.yml:4:14: tls_server_config.client_ca: expected client_auth_type with it, such as "
         "RequireAndVerifyClientCert"},
        {PAIR "  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n",
         "w.yml:5:24: tls_server_config.client_allowed_sans: expected client_auth_type "
         "RequireAndVerifyClientCert or RequireAnyClientCert with it"},
        {PAIR "  client_auth_type: RequireAnyClientCert\n  client_allowed_sans: [[a], a, a]\n",
         "w.yml:5:25: tls_server_config.client_allowed_sans[0]: expected a text\n"
         "w.yml:5:33: tls_server_config.client_allowed_sans[2]: given twice"},
        {PAIR "  prefer_server_cipher_suites: perhaps\n",
         "w.yml:4:32: tls_server_config.prefer_server_cipher_suites: expected true or false, got "
         "\"perhaps\""},
        {PAIR "  cert_file: d\n",
         "w.yml:4:3: tls_server_config.cert_file: duplicate key, first given in line 2"},
        {"http_server_config:\n  http2: maybe\n  headers:\n    X-Frame-Options: allow\n"
         "    X-Powered-By: waap\n    X-XSS-Protection: \"a\\r\\nb\"\n    "
         "X-Content-Type-Options: [nosniff]\n",
         "w.yml:2:10: http_server_config.http2: expected true or false, got \"maybe\"\n"
         "w.yml:4:22: http_server_config.headers.X-Frame-Options: expected one of deny, "
         "sameorigin, got \"allow\"\n"
         "w.yml:5:5: http_server_config.headers.X-Powered-By: unknown key\n"
         "w.yml:6:23: http_server_config.headers.X-XSS-Protection: expected a text without control "
         "characters\n"
         "w.yml:7:29: http_server_config.headers.X-Content-Type-Options: expected one of nosniff, "
         "got a list"},
        {"rate_limit:\n  interval: 1s\n",
         "w.yml:2:13: rate_limit.interval: expected rate_limit.burst with it"},
        {"rate_limit:\n  interval: fast\n  burst: 0\n",
         "w.yml:2:13: rate_limit.interval: expected a duration from 0s to 1h, got \"fast\"\n"
         "w.yml:3:10: rate_limit.burst: expected a whole number from 1 to 1000000, got \"0\""},
        {"basic_auth_users: [ann]\n",
         "w.yml:1:19: basic_auth_users: expected a mapping, got a list"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct web_settings settings CLEANUP_WEB_SETTINGS;
        struct buf complaints CLEANUP_BUF = {0};
        parse(rows[i].text, &settings, &complaints);
        TEST_ASSERT_EQUAL_STRING(rows[i].complaints, buf_str(&complaints));
    }
}

static void test_nothing_given(void) {
    static const char *const texts[] = {
        "",
        "# nothing\n",
        "{}\n",
        "tls_server_config:\nhttp_server_config:\nbasic_auth_users:\nrate_limit: ~\n",
        "tls_server_config: {}\n",
        "http_server_config: {headers: {X-Frame-Options: ''}}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct web_settings settings CLEANUP_WEB_SETTINGS;
        struct buf complaints CLEANUP_BUF = {0};
        parse(texts[i], &settings, &complaints);
        TEST_ASSERT_EQUAL_STRING("", buf_str(&complaints));
        TEST_ASSERT_NULL(settings.nodes[WEB_TLS]);
        TEST_ASSERT_NULL(settings.nodes[WEB_HEADER_X_FRAME_OPTIONS]);
        TEST_ASSERT_EQUAL_INT64(0, settings.numbers[WEB_RATE_LIMIT_INTERVAL]);
    }
}

static void test_defaults_of_tls(void) {
    struct web_settings settings CLEANUP_WEB_SETTINGS;
    struct buf complaints CLEANUP_BUF = {0};
    parse(PAIR "  client_auth_type: ''\n", &settings, &complaints);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&complaints));
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_2, settings.policy.min);
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_3, settings.policy.max);
    TEST_ASSERT_EQUAL_INT(TLS_CLIENT_NONE, settings.client_auth);
    TEST_ASSERT_FALSE(settings.policy.client_order);
    TEST_ASSERT_EQUAL_UINT64(0, settings.policy.n_suites);
    TEST_ASSERT_EQUAL_STRING("c", settings.nodes[WEB_TLS_CERT_FILE]->text);
}

static void test_everything_given(void) {
    static const char text[] =
        PAIR "  client_ca_file: ca\n"
             "  client_auth_type: RequireAndVerifyClientCert\n"
             "  client_allowed_sans: [a.example, 192.0.2.1]\n"
             "  min_version: TLS13\n"
             "  max_version: \"TLS13\"\n"
             "  cipher_suites:\n    - TLS_AES_128_GCM_SHA256\n"
             "  prefer_server_cipher_suites: false\n"
             "  curve_preferences: [X25519, CurveP256]\n"
             "http_server_config:\n"
             "  http2: false\n"
             "  headers:\n"
             "    X-Frame-Options: deny\n"
             "    X-Content-Type-Options: nosniff\n"
             "    X-XSS-Protection: 1; mode=block\n"
             "    Strict-Transport-Security: max-age=31536000; includeSubDomains\n"
             "    Content-Security-Policy: default-src 'self'\n"
             "basic_auth_users:\n  ann: $2b$04$abc\n"
             "rate_limit:\n  interval: 1m30s\n  burst: 20\n";
    struct web_settings settings CLEANUP_WEB_SETTINGS;
    struct buf complaints CLEANUP_BUF = {0};
    parse(text, &settings, &complaints);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&complaints));
    TEST_ASSERT_EQUAL_INT(TLS_CLIENT_REQUIRE_AND_VERIFY, settings.client_auth);
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_3, settings.policy.min);
    TEST_ASSERT_TRUE(settings.policy.client_order);
    TEST_ASSERT_EQUAL_PTR(tls_suite_find("TLS_AES_128_GCM_SHA256"), settings.policy.suites[0]);
    TEST_ASSERT_EQUAL_PTR(tls_curve_find("X25519"), settings.policy.curves[0]);
    TEST_ASSERT_EQUAL_UINT64(2, settings.policy.n_curves);
    TEST_ASSERT_EQUAL_INT64(90000, settings.numbers[WEB_RATE_LIMIT_INTERVAL]);
    TEST_ASSERT_EQUAL_INT64(20, settings.numbers[WEB_RATE_LIMIT_BURST]);
    TEST_ASSERT_EQUAL_STRING("1; mode=block", settings.nodes[WEB_HEADER_X_XSS_PROTECTION]->text);
}
