#include "exporter/http/web_settings.h"

#include <errno.h>
#include <string.h>

#include "exporter/settings/option.h"
#include "exporter/settings/suggest.h"

enum { RATE_LIMIT_MAX_BURST = 1000000, RATE_LIMIT_MAX_INTERVAL_MS = 60 * 60 * 1000 };

struct field {
    const char *section; /* dotted, with the final point; "": top level */
    const char *key;
    enum yaml_kind kind;
    const struct option *option; /* form of a value that is not just a text */
};

static int check_header_value(const char *text, struct error *err) {
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7f') {
            return error_set(err, -EINVAL, "expected a text without control characters");
        }
    }
    return 0;
}

static const char *const client_auth_names[] = {
    [TLS_CLIENT_NONE] = "NoClientCert",
    [TLS_CLIENT_REQUEST] = "RequestClientCert",
    [TLS_CLIENT_REQUIRE_ANY] = "RequireAnyClientCert",
    [TLS_CLIENT_VERIFY_IF_GIVEN] = "VerifyClientCertIfGiven",
    [TLS_CLIENT_REQUIRE_AND_VERIFY] = "RequireAndVerifyClientCert",
    NULL,
};
static const char *const version_names[] = {
    [TLS_VERSION_1_2] = "TLS12",
    [TLS_VERSION_1_3] = "TLS13",
    NULL,
};
static const char *const frame_options[] = {"deny", "sameorigin", NULL};
static const char *const content_type_options[] = {"nosniff", NULL};

static const struct option option_bool = {.type = OPTION_BOOL};
static const struct option option_burst = {
    .type = OPTION_INT, .min = 1, .max = RATE_LIMIT_MAX_BURST};
static const struct option option_interval = {
    .type = OPTION_DURATION, .min = 0, .max = RATE_LIMIT_MAX_INTERVAL_MS};
static const struct option option_client_auth = {.type = OPTION_CHOICE,
                                                 .choices = client_auth_names};
static const struct option option_version = {.type = OPTION_CHOICE, .choices = version_names};
static const struct option option_header = {.type = OPTION_STRING, .check = check_header_value};
static const struct option option_frame = {.type = OPTION_CHOICE, .choices = frame_options};
static const struct option option_content_type = {.type = OPTION_CHOICE,
                                                  .choices = content_type_options};

#define HEADERS "http_server_config.headers."
#define HTTP "http_server_config."
#define RATE "rate_limit."
#define TLS "tls_server_config."

static const struct field fields[] = {
    [WEB_BASIC_AUTH_USERS] = {"", "basic_auth_users", YAML_KIND_MAPPING, NULL},
    [WEB_HTTP] = {"", "http_server_config", YAML_KIND_MAPPING, NULL},
    [WEB_RATE_LIMIT] = {"", "rate_limit", YAML_KIND_MAPPING, NULL},
    [WEB_TLS] = {"", "tls_server_config", YAML_KIND_MAPPING, NULL},

    [WEB_HTTP_HEADERS] = {HTTP, "headers", YAML_KIND_MAPPING, NULL},
    [WEB_HTTP_HTTP2] = {HTTP, "http2", YAML_KIND_SCALAR, &option_bool},

    [WEB_HEADER_CONTENT_SECURITY_POLICY] = {HEADERS, "Content-Security-Policy", YAML_KIND_SCALAR,
                                            &option_header},
    [WEB_HEADER_STRICT_TRANSPORT_SECURITY] = {HEADERS, "Strict-Transport-Security",
                                              YAML_KIND_SCALAR, &option_header},
    [WEB_HEADER_X_CONTENT_TYPE_OPTIONS] = {HEADERS, "X-Content-Type-Options", YAML_KIND_SCALAR,
                                           &option_content_type},
    [WEB_HEADER_X_FRAME_OPTIONS] = {HEADERS, "X-Frame-Options", YAML_KIND_SCALAR, &option_frame},
    [WEB_HEADER_X_XSS_PROTECTION] = {HEADERS, "X-XSS-Protection", YAML_KIND_SCALAR, &option_header},

    [WEB_RATE_LIMIT_BURST] = {RATE, "burst", YAML_KIND_SCALAR, &option_burst},
    [WEB_RATE_LIMIT_INTERVAL] = {RATE, "interval", YAML_KIND_SCALAR, &option_interval},

    [WEB_TLS_CERT] = {TLS, "cert", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_CERT_FILE] = {TLS, "cert_file", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_CIPHER_SUITES] = {TLS, "cipher_suites", YAML_KIND_SEQUENCE, NULL},
    [WEB_TLS_CLIENT_ALLOWED_SANS] = {TLS, "client_allowed_sans", YAML_KIND_SEQUENCE, NULL},
    [WEB_TLS_CLIENT_AUTH_TYPE] = {TLS, "client_auth_type", YAML_KIND_SCALAR, &option_client_auth},
    [WEB_TLS_CLIENT_CA] = {TLS, "client_ca", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_CLIENT_CA_FILE] = {TLS, "client_ca_file", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_CURVE_PREFERENCES] = {TLS, "curve_preferences", YAML_KIND_SEQUENCE, NULL},
    [WEB_TLS_KEY] = {TLS, "key", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_KEY_FILE] = {TLS, "key_file", YAML_KIND_SCALAR, NULL},
    [WEB_TLS_MAX_VERSION] = {TLS, "max_version", YAML_KIND_SCALAR, &option_version},
    [WEB_TLS_MIN_VERSION] = {TLS, "min_version", YAML_KIND_SCALAR, &option_version},
    [WEB_TLS_PREFER_SERVER_CIPHER_SUITES] = {TLS, "prefer_server_cipher_suites", YAML_KIND_SCALAR,
                                             &option_bool},
};
_Static_assert(ARRAY_LEN(fields) == N_WEB_KEYS, "every key has its row");

/* One reading. */
struct reader {
    const char *file;
    struct web_settings *out;
    struct problems *problems;
};

static void complain(struct reader *reader, enum web_key key, const char *text) {
    web_settings_complain(reader->out, reader->file, key, reader->problems, text);
}

/* A mistake in one item of a list. */
static void complain_item(struct reader *reader, enum web_key key, size_t index, const char *text) {
    const struct yaml_node *item = &reader->out->nodes[key]->items[index];
    problems_add(reader->problems, reader->file, item->line, item->column, "%s%s[%zu]: %s",
                 fields[key].section, fields[key].key, index, text);
}

static bool is_given(const struct reader *reader, enum web_key key) {
    return reader->out->nodes[key] != NULL;
}

/* ---- keys and types ---- */

static const char *kind_noun(enum yaml_kind kind) {
    switch (kind) {
    case YAML_KIND_MAPPING:
        return "a mapping";
    case YAML_KIND_SEQUENCE:
        return "a list";
    default:
        return "a text";
    }
}

static void read_value(struct reader *reader, enum web_key key, const struct yaml_node *node) {
    const struct field *field = &fields[key];
    if (yaml_node_is_null(node)) {
        return;
    }
    if (node->kind != field->kind) {
        struct buf text CLEANUP_BUF = {0};
        buf_add_str(&text, "expected ");
        if (field->option != NULL) {
            option_describe(field->option, &text);
        } else {
            buf_add_str(&text, kind_noun(field->kind));
        }
        problems_add(reader->problems, reader->file, node->line, node->column, "%s%s: %s, got %s",
                     field->section, field->key, buf_str(&text), yaml_node_kind_name(node));
        return;
    }
    if (node->kind == YAML_KIND_SCALAR && node->text[0] == '\0') {
        return;
    }
    struct error err;
    reader->out->nodes[key] = node;
    if (field->option != NULL &&
        option_parse(field->option, node->text, &reader->out->numbers[key], &err) < 0) {
        complain(reader, key, err.text);
    }
}

static enum web_key find_key(const char *section, const char *name) {
    for (enum web_key key = 0; key < N_WEB_KEYS; key++) {
        if (strcmp(fields[key].section, section) == 0 && strcmp(fields[key].key, name) == 0) {
            return key;
        }
    }
    return N_WEB_KEYS;
}

static void add_unknown_key(struct reader *reader, const char *section,
                            const struct yaml_node *node) {
    struct buf text CLEANUP_BUF = {0};
    struct suggest suggest;
    suggest_init(&suggest, node->key);
    for (enum web_key key = 0; key < N_WEB_KEYS; key++) {
        if (strcmp(fields[key].section, section) == 0) {
            suggest_offer(&suggest, fields[key].key, strlen(fields[key].key));
        }
    }
    buf_printf(&text, "%s%s: unknown key", section, node->key);
    suggest_write(&suggest, "", &text);
    problems_add(reader->problems, reader->file, node->key_line, node->key_column, "%s",
                 buf_str(&text));
}

static void read_section(struct reader *reader, const char *section,
                         const struct yaml_node *mapping) {
    for (size_t i = 0; mapping != NULL && i < mapping->n_items; i++) {
        const struct yaml_node *node = &mapping->items[i];
        enum web_key key = find_key(section, node->key);
        if (key == N_WEB_KEYS) {
            add_unknown_key(reader, section, node);
        } else {
            read_value(reader, key, node);
        }
    }
}

/* ---- lists ---- */

/* The text of an item; NULL, after a complaint, if it is none or was given before. */
static const char *list_text(struct reader *reader, enum web_key key, size_t index) {
    const struct yaml_node *list = reader->out->nodes[key];
    const struct yaml_node *item = &list->items[index];
    if (item->kind != YAML_KIND_SCALAR || item->text[0] == '\0') {
        complain_item(reader, key, index, "expected a text");
        return NULL;
    }
    for (size_t i = 0; i < index; i++) {
        if (list->items[i].kind == YAML_KIND_SCALAR &&
            strcmp(list->items[i].text, item->text) == 0) {
            complain_item(reader, key, index, "given twice");
            return NULL;
        }
    }
    return item->text;
}

static size_t list_len(const struct reader *reader, enum web_key key) {
    return is_given(reader, key) ? reader->out->nodes[key]->n_items : 0;
}

static void read_suites(struct reader *reader) {
    struct tls_policy *policy = &reader->out->policy;
    for (size_t i = 0; i < list_len(reader, WEB_TLS_CIPHER_SUITES); i++) {
        const char *name = list_text(reader, WEB_TLS_CIPHER_SUITES, i);
        const struct tls_suite *suite = name != NULL ? tls_suite_find(name) : NULL;
        if (suite != NULL) {
            policy->suites[policy->n_suites++] = suite;
        } else if (name != NULL) {
            complain_item(reader, WEB_TLS_CIPHER_SUITES, i,
                          "expected a cipher suite with forward secrecy by its name in Go, such as "
                          "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        }
    }
}

static void read_curves(struct reader *reader) {
    struct tls_policy *policy = &reader->out->policy;
    for (size_t i = 0; i < list_len(reader, WEB_TLS_CURVE_PREFERENCES); i++) {
        const char *name = list_text(reader, WEB_TLS_CURVE_PREFERENCES, i);
        const struct tls_curve *curve = name != NULL ? tls_curve_find(name) : NULL;
        if (curve != NULL) {
            policy->curves[policy->n_curves++] = curve;
        } else if (name != NULL) {
            complain_item(reader, WEB_TLS_CURVE_PREFERENCES, i,
                          "expected one of CurveP256, CurveP384, CurveP521, X25519");
        }
    }
}

static void read_sans(struct reader *reader) {
    for (size_t i = 0; i < list_len(reader, WEB_TLS_CLIENT_ALLOWED_SANS); i++) {
        const char *san = list_text(reader, WEB_TLS_CLIENT_ALLOWED_SANS, i);
        if (san != NULL && strlen(san) > TLS_MAX_SAN_LEN) {
            complain_item(reader, WEB_TLS_CLIENT_ALLOWED_SANS, i, "expected at most 2048 bytes");
        }
    }
}

/* ---- what must fit together ---- */

/* Of a value and the file that holds it, one at most; where `needed`, one. */
static void check_pair(struct reader *reader, enum web_key inline_key, enum web_key file_key,
                       bool needed) {
    struct buf text CLEANUP_BUF = {0};
    const char *name = fields[inline_key].key, *file_name = fields[file_key].key;
    if (is_given(reader, inline_key) && is_given(reader, file_key)) {
        buf_printf(&text, "expected either %s or %s, got both", name, file_name);
        complain(reader, inline_key, buf_str(&text));
    } else if (needed && !is_given(reader, inline_key) && !is_given(reader, file_key)) {
        buf_printf(&text, "expected %s or %s, got neither", file_name, name);
        complain(reader, WEB_TLS, buf_str(&text));
    }
}

static void check_clients(struct reader *reader) {
    enum tls_client_auth auth = reader->out->client_auth;
    bool has_ca = is_given(reader, WEB_TLS_CLIENT_CA) || is_given(reader, WEB_TLS_CLIENT_CA_FILE);
    bool verifies = auth == TLS_CLIENT_VERIFY_IF_GIVEN || auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    bool requires = auth == TLS_CLIENT_REQUIRE_ANY || auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    if (verifies && !has_ca) {
        complain(reader, WEB_TLS_CLIENT_AUTH_TYPE,
                 "expected client_ca_file or client_ca with it, to verify against");
    }
    if (has_ca && auth == TLS_CLIENT_NONE) {
        complain(reader,
                 is_given(reader, WEB_TLS_CLIENT_CA) ? WEB_TLS_CLIENT_CA : WEB_TLS_CLIENT_CA_FILE,
                 "expected client_auth_type with it, such as RequireAndVerifyClientCert");
    }
    if (is_given(reader, WEB_TLS_CLIENT_ALLOWED_SANS) && !requires) {
        complain(reader, WEB_TLS_CLIENT_ALLOWED_SANS,
                 "expected client_auth_type RequireAndVerifyClientCert or RequireAnyClientCert "
                 "with it");
    }
}

static void read_tls(struct reader *reader) {
    struct web_settings *out = reader->out;
    const struct yaml_node *tls = out->nodes[WEB_TLS];
    read_section(reader, TLS, tls);
    if (tls == NULL || tls->n_items == 0) {
        out->nodes[WEB_TLS] = NULL;
        return;
    }
    read_suites(reader);
    read_curves(reader);
    read_sans(reader);
    out->client_auth = (enum tls_client_auth)out->numbers[WEB_TLS_CLIENT_AUTH_TYPE];
    out->policy.min = (enum tls_version)out->numbers[WEB_TLS_MIN_VERSION];
    out->policy.max = is_given(reader, WEB_TLS_MAX_VERSION)
                          ? (enum tls_version)out->numbers[WEB_TLS_MAX_VERSION]
                          : TLS_VERSION_1_3;
    out->policy.client_order = is_given(reader, WEB_TLS_PREFER_SERVER_CIPHER_SUITES) &&
                               out->numbers[WEB_TLS_PREFER_SERVER_CIPHER_SUITES] == 0;
    if (out->policy.min > out->policy.max) {
        complain(reader, WEB_TLS_MIN_VERSION, "expected at most max_version");
    }
    check_pair(reader, WEB_TLS_CERT, WEB_TLS_CERT_FILE, true);
    check_pair(reader, WEB_TLS_KEY, WEB_TLS_KEY_FILE, true);
    check_pair(reader, WEB_TLS_CLIENT_CA, WEB_TLS_CLIENT_CA_FILE, false);
    check_clients(reader);
}

static void read_rate_limit(struct reader *reader) {
    read_section(reader, RATE, reader->out->nodes[WEB_RATE_LIMIT]);
    if (reader->out->numbers[WEB_RATE_LIMIT_INTERVAL] > 0 &&
        !is_given(reader, WEB_RATE_LIMIT_BURST)) {
        complain(reader, WEB_RATE_LIMIT_INTERVAL, "expected rate_limit.burst with it");
    }
}

int web_settings_parse(const char *file, const char *text, size_t len, struct web_settings *out,
                       struct problems *problems) {
    *out = (struct web_settings){0};
    struct reader reader = {.file = file, .out = out, .problems = problems};
    size_t n_before = problems->n_lines;
    out->doc = yaml_doc_parse(file, text, len, problems);
    if (out->doc == NULL) {
        return -EINVAL;
    }
    const struct yaml_node *root = yaml_doc_root(out->doc);
    if (root->kind != YAML_KIND_MAPPING) {
        problems_add(problems, file, root->line, root->column, "expected a mapping, got %s",
                     yaml_node_kind_name(root));
        return -EINVAL;
    }
    read_section(&reader, "", root);
    read_section(&reader, HTTP, out->nodes[WEB_HTTP]);
    read_section(&reader, HEADERS, out->nodes[WEB_HTTP_HEADERS]);
    read_rate_limit(&reader);
    read_tls(&reader);
    return problems->n_lines == n_before ? 0 : -EINVAL;
}

void web_settings_finish(struct web_settings *settings) {
    yaml_doc_destroy(settings->doc);
    *settings = (struct web_settings){0};
}

void web_settings_complain(const struct web_settings *settings, const char *file, enum web_key key,
                           struct problems *problems, const char *text) {
    const struct yaml_node *node = settings->nodes[key];
    problems_add(problems, file, node->line, node->column, "%s%s: %s", fields[key].section,
                 fields[key].key, text);
}

const char *web_settings_key_name(enum web_key key) {
    return fields[key].key;
}
