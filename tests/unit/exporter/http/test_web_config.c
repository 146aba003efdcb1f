#include "exporter/http/web_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "tests/unit/exporter/http/certificates.h"

#define HASH_SECRET "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"

static struct certificate rsa, ecdsa, dsa;
static char dir[64];

static void write_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_TRUE(fputs(text, file) >= 0);
}

static void make_files(void) {
    char fifo[128];
    strcpy(dir, "/tmp/test_web_config.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    certificate_init(&rsa, &(struct certificate_spec){.algorithm = GNUTLS_PK_RSA, .ca = true});
    certificate_init(&ecdsa, &(struct certificate_spec){0});
    certificate_init(&dsa, &(struct certificate_spec){.algorithm = GNUTLS_PK_DSA});
    write_file("rsa.crt", rsa.crt_pem);
    write_file("rsa.key", rsa.key_pem);
    write_file("ecdsa.crt", ecdsa.crt_pem);
    write_file("ecdsa.key", ecdsa.key_pem);
    write_file("dsa.crt", dsa.crt_pem);
    write_file("dsa.key", dsa.key_pem);
    write_file("empty", "");
    snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
    TEST_ASSERT_EQUAL_INT(0, mkfifo(fifo, 0600));
}

static void remove_files(void) {
    static const char *const names[] = {"rsa.crt", "rsa.key", "ecdsa.crt", "ecdsa.key", "dsa.crt",
                                        "dsa.key", "empty",   "fifo",      "web.yml"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    certificate_finish(&rsa);
    certificate_finish(&ecdsa);
    certificate_finish(&dsa);
}

/* Loads `text`; what is complained about, one per line, with DIR for the directory. */
static struct web_config *load(const char *text, struct buf *complaints) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct web_config *config = NULL;
    char path[128];
    write_file("web.yml", text);
    snprintf(path, sizeof(path), "%s/web.yml", dir);
    int r = web_config_load(path, &config, &problems);
    TEST_ASSERT_EQUAL_INT(r == 0, config != NULL);
    TEST_ASSERT_EQUAL_INT(r == 0, problems.n_lines == 0);
    for (size_t i = 0; i < problems.n_lines; i++) {
        buf_add_str(complaints, i > 0 ? "\n" : "");
        for (const char *c = problems.lines[i]; *c != '\0';) {
            bool here = strncmp(c, dir, strlen(dir)) == 0;
            buf_add(complaints, here ? "DIR" : c, here ? 3 : 1);
            c += here ? strlen(dir) : 1;
        }
    }
    return config;
}

static struct web_config *load_good(const char *text) {
    struct buf complaints CLEANUP_BUF = {0};
    struct web_config *config = load(text, &complaints);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&complaints));
    return config;
}

static void test_an_empty_file_is_plain_and_open(void) {
    struct web_config *config CLEANUP_WEB_CONFIG = load_good("");
    TEST_ASSERT_NULL(config->tls);
    TEST_ASSERT_NULL(config->users);
    TEST_ASSERT_EQUAL_UINT64(0, config->n_headers);
    TEST_ASSERT_EQUAL_INT64(0, config->rate_limit.interval_ms);
}

static void test_a_missing_file(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct web_config *config = NULL;
    TEST_ASSERT_EQUAL_INT(-ENOENT, web_config_load("/nonexistent/w.yml", &config, &problems));
    TEST_ASSERT_EQUAL_UINT64(1, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("web.config.file: open /nonexistent/w.yml: No such file or directory",
                             problems.lines[0]);
    TEST_ASSERT_NULL(config);
}

static void test_files_relative_to_the_configuration(void) {
    struct web_config *config CLEANUP_WEB_CONFIG = load_good("tls_server_config:\n"
                                                             "  cert_file: rsa.crt\n"
                                                             "  key_file: ./rsa.key\n"
                                                             "  client_ca_file: rsa.crt\n"
                                                             "  client_auth_type: "
                                                             "RequireAndVerifyClientCert\n"
                                                             "  client_allowed_sans: [a]\n");
    TEST_ASSERT_NOT_NULL(config->tls);
}

static void test_an_absolute_path_and_one_without_directory(void) {
    struct buf text CLEANUP_BUF = {0};
    struct problems problems CLEANUP_PROBLEMS = {0};
    buf_printf(&text, "tls_server_config: {cert_file: %s/ecdsa.crt, key_file: %s/ecdsa.key}\n", dir,
               dir);
    web_config_unref(load_good(buf_str(&text)));
    write_file("web.yml", "tls_server_config: {cert_file: ecdsa.crt, key_file: ecdsa.key}\n");
    char *before CLEANUP_FREE = getcwd(NULL, 0);
    TEST_ASSERT_EQUAL_INT(0, chdir(dir));
    struct web_config *config CLEANUP_WEB_CONFIG = NULL;
    int r = web_config_load("web.yml", &config, &problems);
    TEST_ASSERT_EQUAL_INT(0, chdir(before));
    TEST_ASSERT_EQUAL_INT(0, r);
}

static void add_block(struct buf *out, const char *key, const char *pem) {
    buf_printf(out, "  %s: |\n    ", key);
    for (const char *c = pem; *c != '\0'; c++) {
        buf_add_char(out, *c);
        buf_add_str(out, *c == '\n' && c[1] != '\0' ? "    " : "");
    }
}

static void test_certificates_within_the_text(void) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "tls_server_config:\n  client_auth_type: VerifyClientCertIfGiven\n");
    add_block(&text, "cert", ecdsa.crt_pem);
    add_block(&text, "key", ecdsa.key_pem);
    add_block(&text, "client_ca", rsa.crt_pem);
    struct web_config *config CLEANUP_WEB_CONFIG = load_good(buf_str(&text));
    TEST_ASSERT_NOT_NULL(config->tls);
}

static void test_mistakes(void) {
    static const struct {
        const char *text;
        const char *complaints;
    } rows[] = {
        {"tls_server_config: {cert_file: none.crt, key_file: none.key}\n",
         "DIR/web.yml:1:32: tls_server_config.cert_file: open DIR/none.crt: No such file or "
         "directory"},
        {"tls_server_config: {cert_file: empty, key_file: rsa.key}\n",
         "DIR/web.yml:1:32: tls_server_config.cert_file: not a certificate in PEM"},
        {"tls_server_config: {cert_file: ., key_file: rsa.key}\n",
         "DIR/web.yml:1:32: tls_server_config.cert_file: read DIR/.: Is a directory"},
        {"tls_server_config: {cert_file: fifo, key_file: rsa.key}\n",
         "DIR/web.yml:1:32: tls_server_config.cert_file: read DIR/fifo: a pipe, not a file"},
        {"tls_server_config: {cert_file: rsa.crt, key_file: ecdsa.key}\n",
         "DIR/web.yml:1:51: tls_server_config.key_file: does not match the certificate"},
        {"tls_server_config: {cert_file: dsa.crt, key_file: dsa.key}\n",
         "DIR/web.yml:1:20: tls_server_config: expected a certificate with an RSA, ECDSA or EdDSA "
         "key"},
        {"tls_server_config: {cert_file: rsa.crt, key_file: rsa.key, cipher_suites: "
         "[TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]}\n",
         "DIR/web.yml:1:75: tls_server_config.cipher_suites: none of these suites fits the "
         "certificate, whose key is RSA, and the TLS versions"},
        /* All at once: in the text, in the files, among the users. */
        {"tls_server_config:\n"
         "  cert_file: rsa.crt\n"
         "  key_file: rsa.crt\n"
         "  client_ca_file: empty\n"
         "  client_auth_type: RequireAndVerifyClientCert\n"
         "  min_version: TLS11\n"
         "basic_auth_users:\n"
         "  ann: topsecret\n"
         "  'b:c': " HASH_SECRET "\n"
         "  dora: {}\n",
         "DIR/web.yml:6:16: tls_server_config.min_version: expected one of TLS12, TLS13, got "
         "\"TLS11\"\n"
         "DIR/web.yml:8:8: basic_auth_users.ann: expected a bcrypt hash: $2a$, $2b$ or $2y$, 60 "
         "characters in all\n"
         "DIR/web.yml:9:10: basic_auth_users.b:c: expected a name without a colon\n"
         "DIR/web.yml:10:9: basic_auth_users.dora: expected a bcrypt hash, got a mapping\n"
         "DIR/web.yml:4:19: tls_server_config.client_ca_file: not a certificate in PEM\n"
         "DIR/web.yml:3:13: tls_server_config.key_file: not a private key in PEM without "
         "password"},
        {"tls_server_config: {key_file: rsa.key}\nbasic_auth_users: {ann: ~}\n",
         "DIR/web.yml:1:20: tls_server_config: expected cert_file or cert, got neither\n"
         "DIR/web.yml:2:25: basic_auth_users.ann: expected a bcrypt hash: $2a$, $2b$ or $2y$, 60 "
         "characters in all"},
        {"tls_server_config: [\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf complaints CLEANUP_BUF = {0};
        TEST_ASSERT_NULL(load(rows[i].text, &complaints));
        if (rows[i].complaints != NULL) {
            TEST_ASSERT_EQUAL_STRING(rows[i].complaints, buf_str(&complaints));
        }
    }
}

static void test_users_headers_and_rate(void) {
    struct web_config *config CLEANUP_WEB_CONFIG = load_good("basic_auth_users:\n"
                                                             "  ann: " HASH_SECRET "\n"
                                                             "http_server_config:\n"
                                                             "  headers:\n"
                                                             "    X-Frame-Options: sameorigin\n"
                                                             "    X-XSS-Protection: '0'\n"
                                                             "rate_limit:\n"
                                                             "  interval: 250ms\n"
                                                             "  burst: 7\n");
    TEST_ASSERT_TRUE(users_verify(config->users, "Basic YW5uOnNlY3JldA=="));
    TEST_ASSERT_FALSE(users_verify(config->users, "Basic YW5uOnNlY3JldHM="));
    const struct web_config_header *headers = config->headers;
    TEST_ASSERT_EQUAL_UINT64(2, config->n_headers);
    TEST_ASSERT_EQUAL_STRING("X-Frame-Options", headers[0].name);
    TEST_ASSERT_EQUAL_STRING("sameorigin", headers[0].value);
    TEST_ASSERT_EQUAL_STRING("X-XSS-Protection", headers[1].name);
    TEST_ASSERT_EQUAL_STRING("0", headers[1].value);
    TEST_ASSERT_EQUAL_INT64(250, config->rate_limit.interval_ms);
    TEST_ASSERT_EQUAL_INT64(7, config->rate_limit.burst);
}

static void test_it_lives_until_the_last_reference(void) {
    struct web_config *config = load_good("basic_auth_users: {ann: " HASH_SECRET "}\n");
    struct web_config *held = web_config_ref(config);
    web_config_unref(config);
    TEST_ASSERT_TRUE(users_verify(held->users, "Basic YW5uOnNlY3JldA=="));
    web_config_unref(held);
    web_config_unref(NULL);
}

void suiteSetUp(void) {
    make_files();
}

int suiteTearDown(int failures) {
    remove_files();
    return failures;
}

/* ---- the text ---- */

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

static void test_mistakes_in_the_text(void) {
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
        TEST_ASSERT_NULL(settings.tls.node);
        TEST_ASSERT_NULL(settings.headers[3].node);
        TEST_ASSERT_EQUAL_INT64(0, settings.interval.number);
    }
}

static void test_defaults_of_tls(void) {
    struct web_settings settings CLEANUP_WEB_SETTINGS;
    struct buf complaints CLEANUP_BUF = {0};
    parse(PAIR "  client_auth_type: ''\n", &settings, &complaints);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&complaints));
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_2, settings.policy.min);
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_3, settings.policy.max);
    TEST_ASSERT_EQUAL_INT(TLS_CLIENT_NONE, settings.client_auth.number);
    TEST_ASSERT_FALSE(settings.policy.client_order);
    TEST_ASSERT_EQUAL_UINT64(0, settings.policy.n_suites);
    TEST_ASSERT_EQUAL_STRING("c", settings.cert_file.node->text);
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
    TEST_ASSERT_EQUAL_INT(TLS_CLIENT_REQUIRE_AND_VERIFY, settings.client_auth.number);
    TEST_ASSERT_EQUAL_INT(TLS_VERSION_1_3, settings.policy.min);
    TEST_ASSERT_TRUE(settings.policy.client_order);
    TEST_ASSERT_EQUAL_PTR(tls_suite_find("TLS_AES_128_GCM_SHA256"), settings.policy.suites[0]);
    TEST_ASSERT_EQUAL_PTR(tls_curve_find("X25519"), settings.policy.curves[0]);
    TEST_ASSERT_EQUAL_UINT64(2, settings.policy.n_curves);
    TEST_ASSERT_EQUAL_INT64(90000, settings.interval.number);
    TEST_ASSERT_EQUAL_INT64(20, settings.burst.number);
    TEST_ASSERT_EQUAL_STRING("1; mode=block", settings.headers[4].node->text);
}
