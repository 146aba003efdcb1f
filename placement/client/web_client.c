#include "placement/client/web_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/tls_start.h"

enum {
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_MAX_BYTES = 16 << 20,
    MAX_CONNECT_MS = 5000,
    MAX_SECRET_BYTES = 64 << 10,
};

struct web_client {
    struct web_endpoint endpoint;
    CURL *curl;
    char *base;     /* the address without a slash at its end */
    char *no_proxy; /* hosts that are asked directly */
    struct curl_slist *headers;
    atomic_bool aborted;
    struct buf *body; /* of the call under way */
    bool too_large;
    char words[CURL_ERROR_SIZE];
};

static bool is_given(const char *text) {
    return text != NULL && text[0] != '\0';
}

/* ---- addresses ---- */

static bool has_part(CURLU *parts, CURLUPart part) {
    char *text = NULL;
    bool has = curl_url_get(parts, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

int web_url_check(const char *url, struct error *err) {
    CURLU *parts = curl_url();
    bool is_http = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
    int r = 0;
    if (!is_http || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK) {
        r = error_set(err, -EINVAL, "expected an address such as http://127.0.0.1:9091, got \"%s\"",
                      url);
    } else if (has_part(parts, CURLUPART_USER)) {
        r = error_set(err, -EINVAL, "an address may not hold a user or a password");
    } else if (has_part(parts, CURLUPART_QUERY) || has_part(parts, CURLUPART_FRAGMENT)) {
        r = error_set(err, -EINVAL, "expected an address without ? and #, got \"%s\"", url);
    }
    curl_url_cleanup(parts);
    return r;
}

void web_add_escaped(struct buf *out, const char *text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL) {
            buf_add_char(out, *text);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
        }
    }
}

/* ---- what libcurl calls ---- */

static size_t take_body(char *data, size_t size, size_t n, void *context) {
    struct web_client *client = context;
    size_t len = size * n;
    client->too_large = client->body->len + len > client->endpoint.max_bytes;
    if (client->too_large) {
        return 0;
    }
    buf_add(client->body, data, len);
    return len;
}

static int note_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                         curl_off_t up) {
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    const struct web_client *client = context;
    return atomic_load(&client->aborted);
}

/* ---- setting up ---- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void start_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_text(CURL *curl, CURLoption option, const char *text) {
    if (is_given(text)) {
        curl_easy_setopt(curl, option, text);
    }
}

static void set_tls(CURL *curl, const struct web_endpoint *endpoint) {
    set_text(curl, CURLOPT_CAINFO, endpoint->ca_file);
    set_text(curl, CURLOPT_SSLCERT, endpoint->cert_file);
    set_text(curl, CURLOPT_SSLKEY, endpoint->key_file);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, endpoint->insecure ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, endpoint->insecure ? 0L : 2L);
}

/* A proxy of the environment is for other machines, not for this one. */
static char *direct_hosts(void) {
    const char *others = getenv("no_proxy") != NULL ? getenv("no_proxy") : getenv("NO_PROXY");
    struct buf hosts CLEANUP_BUF = {0};
    buf_printf(&hosts, "localhost,127.0.0.1,::1%s%s", is_given(others) ? "," : "",
               is_given(others) ? others : "");
    return buf_take(&hosts);
}

static void set_once(struct web_client *client) {
    CURL *curl = client->curl;
    const struct web_endpoint *endpoint = &client->endpoint;
    int64_t connect_ms =
        endpoint->timeout_ms < MAX_CONNECT_MS ? endpoint->timeout_ms : MAX_CONNECT_MS;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, client->no_proxy);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)endpoint->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->words);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, note_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "waap");
    set_tls(curl, endpoint);
}

int web_client_create(const struct web_endpoint *endpoint, struct web_client **ret_client,
                      struct error *err) {
    pthread_once(&curl_once, start_curl);
    int r = web_url_check(endpoint->url, err);
    if (r < 0) {
        return r;
    }
    struct web_client *client CLEANUP_WEB_CLIENT = mem_zalloc(1, sizeof(*client));
    client->endpoint = *endpoint;
    if (strncasecmp(endpoint->url, "https:", strlen("https:")) == 0) {
        tls_start(); /* libcurl assumes that GnuTLS is initialised */
    }
    if (client->endpoint.timeout_ms == 0) {
        client->endpoint.timeout_ms = DEFAULT_TIMEOUT_MS;
    }
    if (client->endpoint.max_bytes == 0) {
        client->endpoint.max_bytes = DEFAULT_MAX_BYTES;
    }
    client->curl = curl_easy_init();
    if (client->curl == NULL) {
        return error_set(err, -ENOMEM, "libcurl cannot be initialised");
    }
    client->base = mem_strdup(endpoint->url);
    client->no_proxy = direct_hosts();
    for (size_t len = strlen(client->base); len > 0 && client->base[len - 1] == '/'; len--) {
        client->base[len - 1] = '\0';
    }
    set_once(client);
    *ret_client = TAKE(client);
    return 0;
}

void web_client_destroy(struct web_client *client) {
    if (client == NULL) {
        return;
    }
    curl_slist_free_all(client->headers);
    curl_easy_cleanup(client->curl);
    free(client->no_proxy);
    free(client->base);
    free(client);
}

void web_client_abort(struct web_client *client) {
    atomic_store(&client->aborted, true);
}

/* ---- one call ---- */

/* A secret from a file, whose final newline does not count, or from the configuration. */
static int read_secret(const char *text, const char *file, struct buf *out, struct error *err) {
    if (!is_given(file)) {
        buf_add_str(out, text != NULL ? text : "");
        return 0;
    }
    int r = file_read_stored(file, MAX_SECRET_BYTES, out, err);
    if (r == 0) {
        buf_truncate(out, strcspn(buf_str(out), "\r\n"));
    }
    return r;
}

static void finish_secret(struct buf *secret) {
    if (secret->data != NULL) {
        explicit_bzero(secret->data, secret->cap);
    }
    buf_finish(secret);
}

static int set_login(struct web_client *client, struct error *err) {
    const struct web_endpoint *endpoint = &client->endpoint;
    struct buf secret CLEANUP(finish_secret) = {0};
    int r = 0;
    if (is_given(endpoint->bearer_token) || is_given(endpoint->bearer_token_file)) {
        r = read_secret(endpoint->bearer_token, endpoint->bearer_token_file, &secret, err);
        curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(client->curl, CURLOPT_XOAUTH2_BEARER, buf_str(&secret));
    } else if (is_given(endpoint->user)) {
        r = read_secret(endpoint->password, endpoint->password_file, &secret, err);
        curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(client->curl, CURLOPT_USERNAME, endpoint->user);
        curl_easy_setopt(client->curl, CURLOPT_PASSWORD, buf_str(&secret));
    }
    return r;
}

static void add_header(struct web_client *client, const char *name, const char *value) {
    struct buf line CLEANUP_BUF = {0};
    buf_printf(&line, "%s%s", name, value);
    struct curl_slist *longer = curl_slist_append(client->headers, buf_str(&line));
    if (longer == NULL) {
        mem_out();
    }
    client->headers = longer;
}

static void set_headers(struct web_client *client, const struct web_request *request) {
    curl_slist_free_all(TAKE(client->headers));
    /* Waiting for "100 Continue" costs a second if a server does not know it. */
    add_header(client, "Expect:", "");
    if (request->accept != NULL) {
        add_header(client, "Accept: ", request->accept);
    }
    if (request->body != NULL) {
        add_header(client, "Content-Type: ", request->content_type);
    }
    const char *const *header = client->endpoint.headers;
    for (; header != NULL && *header != NULL; header++) {
        add_header(client, *header, "");
    }
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers);
}

static const char *method_of(const struct web_request *request) {
    return request->method != NULL ? request->method : "GET";
}

static void set_request(struct web_client *client, const struct web_request *request,
                        const char *url) {
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    if (request->body != NULL) {
        curl_easy_setopt(client->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)strlen(request->body));
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, request->body);
    } else {
        curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method_of(request));
}

static int word_failure(const struct web_client *client, const struct web_request *request,
                        CURLcode code, struct error *err) {
    const char *words = client->words[0] != '\0' ? client->words : curl_easy_strerror(code);
    int r = code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT
            : code == CURLE_COULDNT_CONNECT  ? -ECONNREFUSED
                                             : -EIO;
    if (client->too_large) {
        return error_set(err, -EFBIG, "%s %s%s: the answer is larger than %zu bytes",
                         method_of(request), client->base, request->path,
                         client->endpoint.max_bytes);
    }
    return error_set(err, r, "%s %s%s: %s", method_of(request), client->base, request->path,
                     atomic_load(&client->aborted) ? "aborted" : words);
}

int web_client_call(struct web_client *client, const struct web_request *request,
                    unsigned *ret_status, struct buf *ret_body, struct error *err) {
    struct buf url CLEANUP_BUF = {0};
    buf_printf(&url, "%s%s", client->base, request->path);
    buf_reset(ret_body);
    int r = set_login(client, err);
    if (r < 0) {
        return r;
    }
    set_headers(client, request);
    set_request(client, request, buf_str(&url));
    client->body = ret_body;
    client->words[0] = '\0';
    client->too_large = false;
    CURLcode code = curl_easy_perform(client->curl);
    if (code != CURLE_OK) {
        return word_failure(client, request, code, err);
    }
    long status = 0;
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    *ret_status = (unsigned)status;
    return 0;
}

int web_client_ask(struct web_client *client, const struct web_request *request,
                   int (*parse)(void *context, struct buf *body, struct error *err), void *context,
                   struct error *err) {
    enum { HTTP_OK = 200, HTTP_NOT_FOUND = 404 };
    struct buf body CLEANUP_BUF = {0};
    struct error first_line, reason;
    unsigned status = 0;
    int r = web_client_call(client, request, &status, &body, err);
    if (r < 0) {
        return r;
    }
    error_set(&first_line, 0, "%.400s", buf_str(&body));
    r = parse(context, &body, &reason);
    if (status == HTTP_OK && r == 0) {
        return 0;
    }
    const char *words = r == -EREMOTEIO || status == HTTP_OK ? reason.text : first_line.text;
    r = status == HTTP_NOT_FOUND ? -ENOENT : r < 0 && status == HTTP_OK ? r : -EREMOTEIO;
    int len = (int)strcspn(words, "\r\n");
    return error_set(err, r, "%s %s%s: HTTP %u%s%.*s", method_of(request), client->base,
                     request->path, status, len > 0 ? ": " : "", len < 400 ? len : 400, words);
}

/* ---- endpoints in YAML files ---- */

enum { SECOND_MS = 1000, MAX_TIMEOUT_MS = 10 * 60 * SECOND_MS };

#define TEXT(key, field) YAML_KEY_TEXT(key, struct web_endpoint, field)
#define PATH(key, field)                                                                           \
    {                                                                                              \
        key, web_endpoint_read_path, offsetof(struct web_endpoint, field), {                       \
            0                                                                                      \
        }                                                                                          \
    }

void web_endpoint_read_path(struct yaml_reader *reader, const struct yaml_key *key,
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
    for (size_t i = 0; i < node->n_items; i++) {
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
    headers[n] = NULL;
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

static const struct yaml_key endpoint_keys[] = {
    {"basic_auth", read_basic, 0, {0}},
    TEXT("bearer_token", bearer_token),
    PATH("bearer_token_file", bearer_token_file),
    {"headers", read_headers, offsetof(struct web_endpoint, headers), {0}},
    {"timeout", yaml_key_number, offsetof(struct web_endpoint, timeout_ms),
     YAML_KEY_DURATION(1, MAX_TIMEOUT_MS)},
    {"tls", read_tls, 0, {0}},
    {"url", read_url, offsetof(struct web_endpoint, url), {0}},
    {0},
};

void web_endpoint_read(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    const struct web_endpoint *endpoint = to;
    yaml_key_read_all(reader, endpoint_keys, node, to);
    bool bearer = endpoint->bearer_token != NULL || endpoint->bearer_token_file != NULL;
    if (bearer && endpoint->user != NULL) {
        yaml_key_complain(reader, node, "expected either basic_auth or a bearer token");
    }
    if (endpoint->bearer_token != NULL && endpoint->bearer_token_file != NULL) {
        yaml_key_complain(reader, node, "expected either bearer_token or bearer_token_file");
    }
}
