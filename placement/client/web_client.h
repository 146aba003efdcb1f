#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/settings/yaml.h"

/* Requests to one server over HTTP or HTTPS, by libcurl. */

/* The address and the credentials of a server. Texts are borrowed for the life of the client; NULL
 * and "" both mean none. */
struct web_endpoint {
    const char *url; /* "http://127.0.0.1:9091", "https://mimir.example/prometheus" */
    const char *bearer_token, *bearer_token_file; /* files are read again for every request */
    const char *user, *password, *password_file;
    const char *ca_file;              /* instead of the system's */
    const char *cert_file, *key_file; /* of our own */
    bool insecure;                    /* take any certificate */
    const char *const *headers;       /* "X-Scope-OrgID: a", NULL-terminated */
    int64_t timeout_ms;               /* of a whole request; 0: 10 s */
    size_t max_bytes;                 /* of an answer; 0: 16 MiB */
};

struct web_request {
    const char *method;       /* NULL: GET */
    const char *path;         /* behind the path of the address: "/api/v1/query" */
    const char *body;         /* NULL: none */
    const char *content_type; /* of the body */
    const char *accept;       /* NULL: anything */
};

struct web_client;

/* -EINVAL with the reason if this is not the address of a server. */
int web_url_check(const char *url, struct error *err);

/* No connection is made before the first call. The caller destroys it. */
int web_client_create(const struct web_endpoint *endpoint, struct web_client **ret_client,
                      struct error *err);
void web_client_destroy(struct web_client *client); /* accepts NULL */

static inline void web_client_cleanup(struct web_client **client) {
    web_client_destroy(*client);
}
#define CLEANUP_WEB_CLIENT CLEANUP(web_client_cleanup)

/* Sends a request and waits for the whole answer; redirects are not followed. Returns 0 with any
 * status code, or a negative errno with an error that names the address. One call at a time; the
 * connection is kept for the next. */
int web_client_call(struct web_client *client, const struct web_request *request,
                    unsigned *ret_status, struct buf *ret_body, struct error *err);

/* Makes the current call, if any, and all further calls fail soon; from any thread. */
void web_client_abort(struct web_client *client);

/* Calls, and has the answer parsed; `parse` may take the body away. A negative errno with an error
 * such as "GET http://…: HTTP 400: no such page" if it fails, or the status is not 200: then the
 * words are those of a parser that returns -EREMOTEIO, else the first line of the body, as a proxy
 * may answer with a page of its own. Status 404 is -ENOENT. */
int web_client_ask(struct web_client *client, const struct web_request *request,
                   int (*parse)(void *context, struct buf *body, struct error *err), void *context,
                   struct error *err);

/* Appends a text with the escapes that a path or form needs. */
void web_add_escaped(struct buf *out, const char *text);

/* Reads a mapping of a YAML file into the struct web_endpoint at `to`: url, timeout, headers,
 * bearer_token, bearer_token_file, basic_auth, tls. Files are named from the folder of the YAML
 * file. For tables of keys. */
void web_endpoint_read(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to);

/* A path, from the folder of the YAML file: const char *. */
void web_endpoint_read_path(struct yaml_reader *reader, const struct yaml_key *key,
                            const struct yaml_node *node, void *to);
