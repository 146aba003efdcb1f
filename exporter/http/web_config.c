#include "exporter/http/web_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/file.h"
#include "exporter/core/hash.h"
#include "exporter/http/web_settings.h"

enum {
    MAX_FILE = 1 << 20,
    MAX_FILES = 4, /* itself, certificate, key, client CA */
    MAX_HEADERS = WEB_HEADER_LAST - WEB_HEADER_FIRST + 1,
};

/* A file that was read, and what it was at that moment. */
struct source {
    char *path;
    struct stat stat;
};

struct web_config {
    atomic_uint refs;
    struct source sources[MAX_FILES];
    size_t n_sources;
    struct tls_context *tls;
    struct users *users;
    struct web_config_header headers[MAX_HEADERS]; /* values are ours */
    size_t n_headers;
    struct web_config_rate_limit rate_limit;
};

/* One loading. */
struct loader {
    const char *path;
    struct web_settings settings;
    struct web_config *config;
    struct problems *problems;
};

static void complain(struct loader *loader, enum web_key key, const char *text) {
    web_settings_complain(&loader->settings, loader->path, key, loader->problems, text);
}

/* A private key may be in it. */
static void wipe(struct buf *buf) {
    if (buf->data != NULL) {
        explicit_bzero(buf->data, buf->cap);
    }
    buf_finish(buf);
}

/* `name` as seen from the directory of the file at `path`. */
static char *resolve(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    if (name[0] == '/' || slash == NULL) {
        return strdup(name);
    }
    struct buf joined = {0};
    buf_add(&joined, path, (size_t)(slash - path) + 1);
    buf_add_str(&joined, name);
    return buf_take(&joined);
}

/* Not blocking: a pipe in the place of a file is an error, not a wait. */
static int read_file(struct web_config *config, const char *path, struct buf *out,
                     struct error *err) {
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct source *source = &config->sources[config->n_sources];
    if (fd < 0 || fstat(fd, &source->stat) < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    source->path = strdup(path);
    if (source->path == NULL) {
        return error_set(err, -ENOMEM, "open %s: out of memory", path);
    }
    config->n_sources++;
    return file_reread(fd, path, MAX_FILE, out, err);
}

/* ---- TLS ---- */

struct pem {
    enum web_key inline_key;
    enum web_key file_key;
    int (*set)(struct tls_context *tls, const char *pem, size_t len, struct error *err);
};

/* 1: set, 0: not given, or a negative errno after a complaint. */
static int load_pem(struct loader *loader, const struct pem *pem) {
    const struct yaml_node *text = loader->settings.nodes[pem->inline_key];
    const struct yaml_node *file = loader->settings.nodes[pem->file_key];
    struct buf content CLEANUP(wipe) = {0};
    struct error err = {0};
    int r = 0;
    if (text == NULL && file == NULL) {
        return 0;
    }
    if (text != NULL) {
        buf_add_str(&content, text->text);
    } else {
        char *path CLEANUP_FREE = resolve(loader->path, file->text);
        r = path == NULL ? error_set(&err, -ENOMEM, "out of memory")
                         : read_file(loader->config, path, &content, &err);
    }
    if (r == 0) {
        r = pem->set(loader->config->tls, buf_str(&content), content.len, &err);
    }
    if (r < 0) {
        complain(loader, text != NULL ? pem->inline_key : pem->file_key, err.text);
    }
    return r < 0 ? r : 1;
}

static int set_clients(struct loader *loader) {
    const struct yaml_node *list = loader->settings.nodes[WEB_TLS_CLIENT_ALLOWED_SANS];
    size_t n_sans = list != NULL ? list->n_items : 0;
    const char **sans CLEANUP_FREE = calloc(n_sans + 1, sizeof(*sans));
    for (size_t i = 0; sans != NULL && i < n_sans; i++) {
        sans[i] = list->items[i].text;
    }
    int r = sans == NULL ? -ENOMEM
                         : tls_context_set_clients(loader->config->tls,
                                                   loader->settings.client_auth, sans, n_sans);
    if (r < 0) {
        complain(loader, WEB_TLS, "out of memory");
    }
    return r;
}

static int set_policy(struct loader *loader) {
    const struct web_settings *settings = &loader->settings;
    struct error err = {0};
    int r = tls_context_set_policy(loader->config->tls, &settings->policy, &err);
    if (r < 0) {
        bool listed = settings->nodes[WEB_TLS_CIPHER_SUITES] != NULL;
        complain(loader, listed ? WEB_TLS_CIPHER_SUITES : WEB_TLS, err.text);
    }
    return r;
}

/* Mistakes in the files show together with those in the text; the rest is done where the text is
 * good. */
static int load_tls(struct loader *loader, bool text_ok) {
    static const struct pem certificate = {WEB_TLS_CERT, WEB_TLS_CERT_FILE,
                                           tls_context_set_certificate};
    static const struct pem key = {WEB_TLS_KEY, WEB_TLS_KEY_FILE, tls_context_set_key};
    static const struct pem client_ca = {WEB_TLS_CLIENT_CA, WEB_TLS_CLIENT_CA_FILE,
                                         tls_context_set_client_ca};
    loader->config->tls = tls_context_create();
    if (loader->config->tls == NULL) {
        complain(loader, WEB_TLS, "out of memory");
        return -ENOMEM;
    }
    int client_r = load_pem(loader, &client_ca);
    int r = load_pem(loader, &certificate);
    if (r == 1) { /* the key is judged by it */
        r = load_pem(loader, &key);
    }
    if (client_r < 0 || r < 0 || !text_ok) {
        return -EINVAL;
    }
    r = set_clients(loader);
    return r < 0 ? r : set_policy(loader);
}

/* ---- the rest ---- */

static int load_users(struct loader *loader) {
    const struct yaml_node *list = loader->settings.nodes[WEB_BASIC_AUTH_USERS];
    if (list == NULL || list->n_items == 0) {
        return 0;
    }
    loader->config->users = users_create();
    if (loader->config->users == NULL) {
        complain(loader, WEB_BASIC_AUTH_USERS, "out of memory");
        return -ENOMEM;
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

static int load_headers(struct loader *loader) {
    struct web_config *config = loader->config;
    for (enum web_key key = WEB_HEADER_FIRST; key <= WEB_HEADER_LAST; key++) {
        const struct yaml_node *node = loader->settings.nodes[key];
        char *value = node != NULL ? strdup(node->text) : NULL;
        if (node != NULL && value == NULL) {
            complain(loader, key, "out of memory");
            return -ENOMEM;
        }
        if (value != NULL) {
            config->headers[config->n_headers++] =
                (struct web_config_header){.name = web_settings_key_name(key), .value = value};
        }
    }
    return 0;
}

static int load_all(struct loader *loader, const struct buf *text) {
    const struct web_settings *settings = &loader->settings;
    int text_r = web_settings_parse(loader->path, buf_str(text), text->len, &loader->settings,
                                    loader->problems);
    int users_r = load_users(loader);
    int tls_r = settings->nodes[WEB_TLS] != NULL ? load_tls(loader, text_r == 0) : 0;
    int headers_r = load_headers(loader);
    loader->config->rate_limit = (struct web_config_rate_limit){
        .interval_ms = settings->numbers[WEB_RATE_LIMIT_INTERVAL],
        .burst = settings->numbers[WEB_RATE_LIMIT_BURST],
    };
    return text_r < 0 || users_r < 0 || tls_r < 0 || headers_r < 0 ? -EINVAL : 0;
}

int web_config_load(const char *path, struct web_config **ret_config, struct problems *problems) {
    struct web_config *config CLEANUP_WEB_CONFIG = calloc(1, sizeof(*config));
    struct buf text CLEANUP(wipe) = {0};
    struct error err = {0};
    if (config == NULL) {
        problems_add(problems, path, 0, 0, "out of memory");
        return -ENOMEM;
    }
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
        free((char *)config->headers[i].value);
    }
    for (size_t i = 0; i < config->n_sources; i++) {
        free(config->sources[i].path);
    }
    free(config);
}

const struct tls_context *web_config_tls(const struct web_config *config) {
    return config->tls;
}

struct users *web_config_users(const struct web_config *config) {
    return config->users;
}

const struct web_config_header *web_config_headers(const struct web_config *config, size_t *ret_n) {
    *ret_n = config->n_headers;
    return config->headers;
}

struct web_config_rate_limit web_config_rate_limit(const struct web_config *config) {
    return config->rate_limit;
}

bool web_config_outdated(const struct web_config *config, uint64_t *ret_stamp) {
    bool outdated = false;
    *ret_stamp = 0;
    for (size_t i = 0; i < config->n_sources; i++) {
        const struct stat *then = &config->sources[i].stat;
        struct stat now;
        if (stat(config->sources[i].path, &now) < 0) {
            continue; /* being replaced: the other one will come */
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
