#include "exporter/http/web_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/settings/yaml.h"

enum {
    MAX_FILE = 1 << 20,
    MAX_BURST = 1000000,
    MAX_INTERVAL_MS = 60 * 60 * 1000,
};

/* ---- the keys of the file ---- */

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

/* Stores a node of the right kind that is not empty; false: there is none. */
static bool take_node(struct yaml_reader *reader, enum yaml_kind kind, const char *expected,
                      const struct yaml_node *node, struct web_value *value) {
    if (yaml_node_is_null(node)) {
        return false;
    }
    if (node->kind != kind) {
        yaml_key_complain(reader, node, "expected %s, got %s", expected, yaml_node_kind_name(node));
        return false;
    }
    if (kind == YAML_KIND_SCALAR ? node->text[0] == '\0' : node->n_items == 0) {
        return false;
    }
    value->node = node;
    return true;
}

static void read_value(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    struct web_value *value = to;
    struct buf expected CLEANUP_BUF = {0};
    struct error err;
    option_describe(&key->option, &expected);
    if (take_node(reader, YAML_KIND_SCALAR, buf_str(&expected), node, value) &&
        option_parse(&key->option, node->text, &value->number, &err) < 0) {
        yaml_key_complain(reader, node, "%s", err.text);
    }
}

static void read_list(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    (void)key;
    take_node(reader, YAML_KIND_SEQUENCE, "a list", node, to);
}

static void read_mapping(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)key;
    take_node(reader, YAML_KIND_MAPPING, "a mapping", node, to);
}

#define VALUE(name, field, ...)                                                                    \
    {                                                                                              \
        name, read_value, offsetof(struct web_settings, field), {                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define LIST(name, field)                                                                          \
    {                                                                                              \
        name, read_list, offsetof(struct web_settings, field), {                                   \
            0                                                                                      \
        }                                                                                          \
    }
#define TEXT .type = OPTION_STRING
#define HEADER .type = OPTION_STRING, .check = check_header_value
#define CHOICE(names) .type = OPTION_CHOICE, .choices = (names)

static const struct yaml_key header_keys[] = {
    VALUE("Content-Security-Policy", headers[0], HEADER),
    VALUE("Strict-Transport-Security", headers[1], HEADER),
    VALUE("X-Content-Type-Options", headers[2], CHOICE(content_type_options)),
    VALUE("X-Frame-Options", headers[3], CHOICE(frame_options)),
    VALUE("X-XSS-Protection", headers[4], HEADER),
    {0},
};

static const struct yaml_key rate_limit_keys[] = {
    VALUE("burst", burst, .type = OPTION_INT, .min = 1, .max = MAX_BURST),
    VALUE("interval", interval, .type = OPTION_DURATION, .min = 0, .max = MAX_INTERVAL_MS),
    {0},
};

static const struct yaml_key tls_keys[] = {
    VALUE("cert", cert, TEXT),
    VALUE("cert_file", cert_file, TEXT),
    LIST("cipher_suites", suites),
    LIST("client_allowed_sans", client_sans),
    VALUE("client_auth_type", client_auth, CHOICE(client_auth_names)),
    VALUE("client_ca", client_ca, TEXT),
    VALUE("client_ca_file", client_ca_file, TEXT),
    LIST("curve_preferences", curves),
    VALUE("key", key, TEXT),
    VALUE("key_file", key_file, TEXT),
    VALUE("max_version", max_version, CHOICE(version_names)),
    VALUE("min_version", min_version, CHOICE(version_names)),
    VALUE("prefer_server_cipher_suites", server_order, .type = OPTION_BOOL),
    {0},
};

static void read_headers(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, header_keys, node, to);
}

static const struct yaml_key http_keys[] = {
    {"headers", read_headers, 0, {0}},
    VALUE("http2", http2, .type = OPTION_BOOL),
    {0},
};

/* ---- values that must fit together ---- */

/* A mistake in a value of the mapping that is being read. */
static void complain(struct yaml_reader *reader, const struct web_value *value, const char *text) {
    size_t len = reader->path.len;
    buf_printf(&reader->path, ".%s", value->node->key);
    yaml_key_complain(reader, value->node, "%s", text);
    buf_truncate(&reader->path, len);
}

/* Calls `read` with each item of a list that is a text and not given twice. */
static void read_items(struct yaml_reader *reader, const struct web_value *list,
                       const char *(*read)(struct tls_policy *policy, const char *text),
                       struct tls_policy *policy) {
    const struct yaml_node *node = list->node;
    for (size_t i = 0; node != NULL && i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        const char *mistake = NULL;
        if (item->kind != YAML_KIND_SCALAR || item->text[0] == '\0') {
            mistake = "expected a text";
        }
        for (size_t k = 0; mistake == NULL && k < i; k++) {
            if (node->items[k].kind == YAML_KIND_SCALAR &&
                strcmp(node->items[k].text, item->text) == 0) {
                mistake = "given twice";
            }
        }
        mistake = mistake == NULL ? read(policy, item->text) : mistake;
        if (mistake != NULL) {
            size_t len = reader->path.len;
            buf_printf(&reader->path, ".%s[%zu]", node->key, i);
            yaml_key_complain(reader, item, "%s", mistake);
            buf_truncate(&reader->path, len);
        }
    }
}

static const char *read_suite(struct tls_policy *policy, const char *name) {
    const struct tls_suite *suite = tls_suite_find(name);
    if (suite == NULL) {
        return "expected a cipher suite with forward secrecy by its name in Go, such as "
               "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    }
    policy->suites[policy->n_suites++] = suite;
    return NULL;
}

static const char *read_curve(struct tls_policy *policy, const char *name) {
    const struct tls_curve *curve = tls_curve_find(name);
    if (curve == NULL) {
        return "expected one of CurveP256, CurveP384, CurveP521, X25519";
    }
    policy->curves[policy->n_curves++] = curve;
    return NULL;
}

static const char *read_san(struct tls_policy *policy, const char *san) {
    (void)policy;
    return strlen(san) > TLS_MAX_SAN_LEN ? "expected at most 2048 bytes" : NULL;
}

/* A value is given in the text or in a file, not both; one of them if it is needed. */
static void check_pair(struct yaml_reader *reader, const char *name, const struct web_value *text,
                       const struct web_value *file, const struct web_value *needed_by) {
    struct buf mistake CLEANUP_BUF = {0};
    if (text->node != NULL && file->node != NULL) {
        buf_printf(&mistake, "expected either %s or %s_file, got both", name, name);
        complain(reader, text, buf_str(&mistake));
    } else if (needed_by != NULL && text->node == NULL && file->node == NULL) {
        yaml_key_complain(reader, needed_by->node, "expected %s_file or %s, got neither", name,
                          name);
    }
}

static void check_clients(struct yaml_reader *reader, const struct web_settings *settings) {
    int64_t auth = settings->client_auth.number;
    const struct web_value *ca =
        settings->client_ca.node != NULL ? &settings->client_ca : &settings->client_ca_file;
    bool verifies = auth == TLS_CLIENT_VERIFY_IF_GIVEN || auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    bool requires = auth == TLS_CLIENT_REQUIRE_ANY || auth == TLS_CLIENT_REQUIRE_AND_VERIFY;
    if (verifies && ca->node == NULL) {
        complain(reader, &settings->client_auth,
                 "expected client_ca_file or client_ca with it, to verify against");
    }
    if (ca->node != NULL && auth == TLS_CLIENT_NONE) {
        complain(reader, ca,
                 "expected client_auth_type with it, such as RequireAndVerifyClientCert");
    }
    if (settings->client_sans.node != NULL && !requires) {
        complain(reader, &settings->client_sans,
                 "expected client_auth_type RequireAndVerifyClientCert or RequireAnyClientCert "
                 "with it");
    }
}

static void read_tls(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to) {
    struct web_settings *settings = to;
    struct tls_policy *policy = &settings->policy;
    read_mapping(reader, key, node, &settings->tls);
    if (settings->tls.node == NULL) {
        return;
    }
    yaml_key_read_all(reader, tls_keys, node, settings);
    read_items(reader, &settings->suites, read_suite, policy);
    read_items(reader, &settings->curves, read_curve, policy);
    read_items(reader, &settings->client_sans, read_san, policy);
    policy->min = (enum tls_version)settings->min_version.number;
    policy->max = settings->max_version.node != NULL
                      ? (enum tls_version)settings->max_version.number
                      : TLS_VERSION_1_3;
    policy->client_order =
        settings->server_order.node != NULL && settings->server_order.number == 0;
    if (policy->min > policy->max) {
        complain(reader, &settings->min_version, "expected at most max_version");
    }
    check_pair(reader, "cert", &settings->cert, &settings->cert_file, &settings->tls);
    check_pair(reader, "key", &settings->key, &settings->key_file, &settings->tls);
    check_pair(reader, "client_ca", &settings->client_ca, &settings->client_ca_file, NULL);
    check_clients(reader, settings);
}

static void read_http(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, http_keys, node, to);
}

static void read_rate_limit(struct yaml_reader *reader, const struct yaml_key *key,
                            const struct yaml_node *node, void *to) {
    (void)key;
    struct web_settings *settings = to;
    yaml_key_read_all(reader, rate_limit_keys, node, settings);
    if (settings->interval.number > 0 && settings->burst.node == NULL) {
        complain(reader, &settings->interval, "expected rate_limit.burst with it");
    }
}

static const struct yaml_key root_keys[] = {
    {"basic_auth_users", read_mapping, offsetof(struct web_settings, users), {0}},
    {"http_server_config", read_http, 0, {0}},
    {"rate_limit", read_rate_limit, 0, {0}},
    {"tls_server_config", read_tls, 0, {0}},
    {0},
};

int web_settings_parse(const char *file, const char *text, size_t len, struct web_settings *out,
                       struct problems *problems) {
    *out = (struct web_settings){0};
    struct yaml_reader reader = {.file = file, .problems = problems};
    size_t n_before = problems->n_lines;
    out->doc = yaml_doc_parse(file, text, len, problems);
    if (out->doc != NULL) {
        yaml_key_read_all(&reader, root_keys, yaml_doc_root(out->doc), out);
    }
    buf_finish(&reader.path);
    return problems->n_lines == n_before ? 0 : -EINVAL;
}

void web_settings_finish(struct web_settings *settings) {
    yaml_doc_destroy(settings->doc);
    *settings = (struct web_settings){0};
}

/* ---- files ---- */

struct loader {
    const char *path;
    struct web_settings settings;
    struct web_config *config;
    struct problems *problems;
};

/* A mistake in tls_server_config, or in a value of it. */
static void complain_tls(struct loader *loader, const struct web_value *value, const char *text) {
    const struct yaml_node *node = value->node;
    bool whole = value == &loader->settings.tls;
    problems_add(loader->problems, loader->path, node->line, node->column,
                 "tls_server_config%s%s: %s", whole ? "" : ".", whole ? "" : node->key, text);
}

/* It may hold a private key. */
static void wipe(struct buf *buf) {
    if (buf->data != NULL) {
        explicit_bzero(buf->data, buf->cap);
    }
    buf_finish(buf);
}

/* `name` relative to the directory of the file at `path`. */
static char *resolve(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    struct buf joined = {0};
    if (name[0] != '/' && slash != NULL) {
        buf_add(&joined, path, (size_t)(slash - path) + 1);
    }
    buf_add_str(&joined, name);
    return buf_take(&joined);
}

/* Opened without blocking: a pipe instead of a file is an error, not a wait. */
static int read_file(struct web_config *config, const char *path, struct buf *out,
                     struct error *err) {
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct web_config_source *source = &config->sources[config->n_sources];
    if (fd < 0 || fstat(fd, &source->stat) < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    source->path = mem_strdup(path);
    config->n_sources++;
    return file_reread(fd, path, MAX_FILE, out, err);
}

/* ---- TLS ---- */

/* Sets a certificate or key given as text or as file. 1: set, 0: not given, or a negative errno
 * after a complaint. */
static int
load_pem(struct loader *loader, const struct web_value *text, const struct web_value *file,
         int (*set)(struct tls_context *tls, const char *pem, size_t len, struct error *err)) {
    struct buf content CLEANUP(wipe) = {0};
    struct error err = {0};
    int r = 0;
    if (text->node == NULL && file->node == NULL) {
        return 0;
    }
    if (text->node != NULL) {
        buf_add_str(&content, text->node->text);
    } else {
        char *path CLEANUP_FREE = resolve(loader->path, file->node->text);
        r = read_file(loader->config, path, &content, &err);
    }
    if (r == 0) {
        r = set(loader->config->tls, buf_str(&content), content.len, &err);
    }
    if (r < 0) {
        complain_tls(loader, text->node != NULL ? text : file, err.text);
    }
    return r < 0 ? r : 1;
}

static void set_clients(struct loader *loader) {
    const struct web_settings *settings = &loader->settings;
    const struct yaml_node *list = settings->client_sans.node;
    tls_context_set_clients(loader->config->tls,
                            (enum tls_client_auth)settings->client_auth.number);
    for (size_t i = 0; list != NULL && i < list->n_items; i++) {
        tls_context_add_san(loader->config->tls, list->items[i].text);
    }
}

static int set_policy(struct loader *loader) {
    const struct web_settings *settings = &loader->settings;
    struct error err = {0};
    int r = tls_context_set_policy(loader->config->tls, &settings->policy, &err);
    if (r < 0) {
        complain_tls(loader, settings->suites.node != NULL ? &settings->suites : &settings->tls,
                     err.text);
    }
    return r;
}

/* Reports mistakes in the files together with those in the text; the rest needs a good text. */
static int load_tls(struct loader *loader, bool text_ok) {
    const struct web_settings *settings = &loader->settings;
    loader->config->tls = tls_context_create();
    int client_r = load_pem(loader, &settings->client_ca, &settings->client_ca_file,
                            tls_context_set_client_ca);
    int r = load_pem(loader, &settings->cert, &settings->cert_file, tls_context_set_certificate);
    if (r == 1) { /* the key must match it */
        r = load_pem(loader, &settings->key, &settings->key_file, tls_context_set_key);
    }
    if (client_r < 0 || r < 0 || !text_ok) {
        return -EINVAL;
    }
    set_clients(loader);
    return set_policy(loader);
}

/* ---- the whole file ---- */

static int load_users(struct loader *loader) {
    const struct yaml_node *list = loader->settings.users.node;
    if (list == NULL) {
        return 0;
    }
    loader->config->users = users_create();
    if (loader->config->users == NULL) {
        problems_add(loader->problems, loader->path, list->line, list->column,
                     "basic_auth_users: no random numbers");
        return -EIO;
    }
    int result = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct yaml_node *user = &list->items[i];
        struct error err = {0};
        int r = user->kind != YAML_KIND_SCALAR
                    ? error_set(&err, -EINVAL, "expected a bcrypt hash, got %s",
                                yaml_node_kind_name(user))
                    : users_add(loader->config->users, user->key, user->text, &err);
        if (r < 0) {
            problems_add(loader->problems, loader->path, user->line, user->column,
                         "basic_auth_users.%s: %s", user->key, err.text);
            result = r;
        }
    }
    return result;
}

static void load_headers(struct loader *loader) {
    struct web_config *config = loader->config;
    for (size_t i = 0; i < WEB_MAX_HEADERS; i++) {
        const struct yaml_node *node = loader->settings.headers[i].node;
        if (node != NULL) {
            config->headers[config->n_headers++] = (struct web_config_header){
                .name = header_keys[i].name, .value = mem_strdup(node->text)};
        }
    }
}

static int load_all(struct loader *loader, const struct buf *text) {
    const struct web_settings *settings = &loader->settings;
    int text_r = web_settings_parse(loader->path, buf_str(text), text->len, &loader->settings,
                                    loader->problems);
    int users_r = load_users(loader);
    int tls_r = settings->tls.node != NULL ? load_tls(loader, text_r == 0) : 0;
    load_headers(loader);
    loader->config->rate_limit = (struct web_config_rate_limit){
        .interval_ms = settings->interval.number,
        .burst = settings->burst.number,
    };
    return text_r < 0 || users_r < 0 || tls_r < 0 ? -EINVAL : 0;
}

int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems) {
    struct web_config *config CLEANUP_WEB_CONFIG = mem_zalloc(1, sizeof(*config));
    struct buf text CLEANUP(wipe) = {0};
    struct error err = {0};
    config->refs = 1;
    int r = read_file(config, path, &text, &err);
    if (r < 0) {
        problems_add(problems, "web.config.file", 0, 0, "%s", err.text);
        return r;
    }
    struct loader loader = {.path = path, .config = config, .problems = problems};
    r = load_all(&loader, &text);
    web_settings_finish(&loader.settings);
    if (r < 0) {
        return r;
    }
    *ret_config = TAKE(config);
    return 0;
}

int web_config_load_set(const struct settings *settings, struct web_config **ret_config,
                        struct problems *problems) {
    const char *path = settings_string(settings, "web.config.file");
    *ret_config = NULL;
    return path[0] != '\0' ? web_config_load(path, ret_config, problems) : 0;
}

struct web_config *web_config_ref(struct web_config *config) {
    atomic_fetch_add(&config->refs, 1);
    return config;
}

void web_config_unref(struct web_config *config) {
    if (config == NULL || atomic_fetch_sub(&config->refs, 1) != 1) {
        return;
    }
    tls_context_destroy(config->tls);
    users_destroy(config->users);
    for (size_t i = 0; i < config->n_headers; i++) {
        free(config->headers[i].value);
    }
    for (size_t i = 0; i < config->n_sources; i++) {
        free(config->sources[i].path);
    }
    free(config);
}

bool web_config_outdated(const struct web_config *config, uint64_t *ret_stamp) {
    bool outdated = false;
    *ret_stamp = 0;
    for (size_t i = 0; i < config->n_sources; i++) {
        const struct stat *then = &config->sources[i].stat;
        struct stat now;
        if (stat(config->sources[i].path, &now) < 0) {
            continue; /* it is being replaced */
        }
        outdated |= now.st_dev != then->st_dev || now.st_ino != then->st_ino ||
                    now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
                    now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
        int64_t words[] = {(int64_t)now.st_ino, now.st_size, now.st_mtim.tv_sec,
                           now.st_mtim.tv_nsec};
        *ret_stamp = *ret_stamp << 7 ^ *ret_stamp >> 57 ^ hash_bytes(words, sizeof(words));
    }
    return outdated;
}
