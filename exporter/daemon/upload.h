#pragma once

#include "exporter/http/request.h"
#include "exporter/push/store.h"

/* A push over HTTP, from the body of its request to the store. A small body is read at once, a
 * large one on a worker. Embedded in the handler's own struct. */
struct http_upload {
    struct http_request *request;

    /* Reads the request's body, which is unpacked. Perhaps on a worker: it may use the request, the
     * upload and the struct around it only. */
    int (*read)(struct http_upload *upload, struct error *err);

    /* On the loop: sets `owner` and `batch`. It counts its own rejections. */
    int (*prepare)(struct http_upload *upload, struct error *err);

    /* On the loop: replies and releases the owners. */
    void (*finish)(struct http_upload *upload, int code, const struct error *err);

    /* Frees the upload. Perhaps on a worker, because freeing much memory takes long: the request
     * may have ended. */
    void (*destroy)(struct http_upload *upload);

    size_t max_memory; /* for the content of the body, beside the body */
    struct push_owner *owner;
    const char *metric; /* at which reading failed; NULL: not known */
    struct push_batch batch;
    size_t failed; /* the update that was refused; batch.n_updates or more: none alone */
    int code;      /* set before the start, it refuses the upload with `error` */
    struct error error;

    /* Not for handlers. */
    bool packed;
    size_t max_body;
    struct buf spent_body; /* of the request, once it was answered */
    struct worker_job job;
    struct http_upload *next; /* waits for this one */
};

/* Whether the client may push; if not, it has got a reply, and that is counted and logged. */
bool http_upload_may_push(struct http_request *request);

/* Counts and logs a push whose body is rejected. */
void http_upload_refused(struct http_request *request, int code, const char *why);

/* Takes the upload, filled in up to `destroy`, to its end. */
void http_upload_start(struct http_upload *upload);

/* Finds and claims the owner of that identity for the client of the request, as push_store_owner
 * and push_claim do. Rejections are counted. */
int http_push_owner(const struct http_request *request, const struct push_identity *identity,
                    struct push_owner **ret_owner, struct error *err);

/* Whether the owner may push now, and that it has pushed so much. A request is one body, however
 * long: what it has beyond the rate is owed by the next ones. -EAGAIN, counted. */
int http_push_check_rate(struct push_store *store, struct push_owner *owner, struct error *err);
void http_push_spend_rate(const struct push_store *store, struct push_owner *owner,
                          size_t n_updates);
