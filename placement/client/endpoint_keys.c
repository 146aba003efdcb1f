#include "placement/client/endpoint_keys.h"

#include <string.h>

enum { SECOND_MS = 1000, MAX_TIMEOUT_MS = 10 * 60 * SECOND_MS };

#define TEXT(key, field)                                                                           \
    {                                                                                              \
        key, yaml_key_text, offsetof(struct web_endpoint, field), {                                \
            0                                                                                      \
        }                                                                                          \
    }
#define PATH(key, field)                                                                           \
    {                                                                                              \
        key, endpoint_keys_path, offsetof(struct web_endpoint, field), {                           \
            0                                                                                      \
        }                                                                                          \
    }

void endpoint_keys_path(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    const char *text = NULL;
    yaml_key_text(reader, key, node, &text);
    const char *slash = strrchr(reader->file, '/');
    if (text == NULL || text[0] == '/' || slash == NULL) {
        *(const char **)to = text;
        return;
    }
    struct buf path CLEANUP_BUF = {0};
    buf_add(&path, reader->file, (size_t)(slash - reader->file) + 1);
    buf_add_str(&path, text);
    *(const char **)to = arena_copy(reader->arena, buf_str(&path), path.len + 1);
}

static void read_bool(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    int64_t truth = 0;
    yaml_key_number(reader, key, node, &truth);
    *(bool *)to = truth != 0;
}

static void read_url(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to) {
    const char *text = NULL;
    struct error err;
    yaml_key_text(reader, key, node, &text);
    if (text != NULL && web_url_check(text, &err) < 0) {
        yaml_key_complain(reader, node, "%s", err.text);
    }
    *(const char **)to = text;
}

/* "name: value" for each. */
static void read_headers(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)key;
    if (node->kind != YAML_KIND_MAPPING) {
        yaml_key_complain(reader, node, "expected names and values, got %s",
                          yaml_node_kind_name(node));
        return;
    }
    const char **headers = arena_take(reader->arena, (node->n_items + 1) * sizeof(*headers));
    size_t n = 0;
    for (size_t i = 0; headers != NULL && i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        struct buf line CLEANUP_BUF = {0};
        if (item->kind != YAML_KIND_SCALAR || strpbrk(item->key, ": \r\n") != NULL ||
            strpbrk(item->text, "\r\n") != NULL) {
            yaml_key_complain(reader, item, "%s: not a header", item->key);
            continue;
        }
        buf_printf(&line, "%s: %s", item->key, item->text);
        headers[n++] = arena_copy(reader->arena, buf_str(&line), line.len + 1);
    }
    if (headers != NULL) {
        headers[n] = NULL;
    }
    *(const char *const **)to = headers;
}

static const struct yaml_key basic_keys[] = {
    TEXT("password", password),
    PATH("password_file", password_file),
    TEXT("username", user),
    {0},
};

static const struct yaml_key tls_keys[] = {
    PATH("ca_file", ca_file),
    PATH("cert_file", cert_file),
    {"insecure_skip_verify",
     read_bool,
     offsetof(struct web_endpoint, insecure),
     {.type = OPTION_BOOL}},
    PATH("key_file", key_file),
    {0},
};

static void read_basic(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    const struct web_endpoint *endpoint = to;
    yaml_key_read_all(reader, basic_keys, node, to);
    if (endpoint->user == NULL) {
        yaml_key_complain(reader, node, "expected a username");
    }
    if (endpoint->password != NULL && endpoint->password_file != NULL) {
        yaml_key_complain(reader, node, "expected either password or password_file");
    }
}

static void read_tls(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to) {
    (void)key;
    const struct web_endpoint *endpoint = to;
    yaml_key_read_all(reader, tls_keys, node, to);
    if ((endpoint->cert_file == NULL) != (endpoint->key_file == NULL)) {
        yaml_key_complain(reader, node, "expected both cert_file and key_file, or none");
    }
}

static const struct yaml_key keys[] = {
    {"basic_auth", read_basic, 0, {0}},
    TEXT("bearer_token", bearer_token),
    PATH("bearer_token_file", bearer_token_file),
    {"headers", read_headers, offsetof(struct web_endpoint, headers), {0}},
    {"timeout",
     yaml_key_number,
     offsetof(struct web_endpoint, timeout_ms),
     {.type = OPTION_DURATION, .min = 1, .max = MAX_TIMEOUT_MS}},
    {"tls", read_tls, 0, {0}},
    {"url", read_url, offsetof(struct web_endpoint, url), {0}},
    {0},
};

void endpoint_keys_read(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    const struct web_endpoint *endpoint = to;
    yaml_key_read_all(reader, keys, node, to);
    bool bearer = endpoint->bearer_token != NULL || endpoint->bearer_token_file != NULL;
    if (bearer && endpoint->user != NULL) {
        yaml_key_complain(reader, node, "expected either basic_auth or a bearer token");
    }
    if (endpoint->bearer_token != NULL && endpoint->bearer_token_file != NULL) {
        yaml_key_complain(reader, node, "expected either bearer_token or bearer_token_file");
    }
}
