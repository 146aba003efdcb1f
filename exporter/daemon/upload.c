#include "exporter/daemon/upload.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/gzip.h"
#include "exporter/core/list.h"
#include "exporter/daemon/daemon.h"
#include "exporter/http/access.h"
#include "exporter/net/network.h"
#include "exporter/push/claim.h"

/* Bodies up to this size are read on the loop, which takes less than a millisecond. */
enum { SMALL_BODY = 16 << 10 };

static struct push_store *store_of(const struct http_upload *upload) {
    return daemon_of(upload->request)->push_store;
}

/* ---- refusals ---- */

static void log_refused(const struct http_request *request, const struct push_owner *owner,
                        int code, const char *metric, const char *why) {
    const struct http_client *client = request->client;
    const struct daemon *daemon = request->context;
    struct buf source CLEANUP_BUF = {0};
    char address[INET6_ADDRSTRLEN] = "a unix socket";
    if (!client->is_unix) {
        network_format(&client->address, address);
    }
    const char *name = owner != NULL ? push_owner_view(daemon->push_store, owner).name : "client";
    buf_printf(&source, "%s from %s", name, address);
    push_log_refused(daemon->push_log, buf_str(&source), code, metric, why);
}

static void finish(struct http_upload *upload, int code, const struct error *err) {
    if (code < 0) {
        const struct push_batch *batch = &upload->batch;
        const struct push_update *update =
            upload->failed < batch->n_updates ? &batch->updates[upload->failed] : NULL;
        log_refused(upload->request,
                    update != NULL && update->owner != NULL ? update->owner : upload->owner, code,
                    update != NULL ? update->name : upload->metric, err->text);
    }
    upload->finish(upload, code, err);
}

/* The same for a push that was rejected before it was counted. */
static void refuse(struct http_upload *upload) {
    push_store_count_refused(store_of(upload), upload->code);
    finish(upload, upload->code, &upload->error);
    upload->destroy(upload);
}

void http_upload_refused(struct http_request *request, int code, const char *why) {
    push_store_count_refused(daemon_of(request)->push_store, code);
    log_refused(request, NULL, code, NULL, why);
}

bool http_upload_may_push(struct http_request *request) {
    struct error err;
    if (http_access_check(request, &err) == 0) {
        return true;
    }
    http_upload_refused(request, -EACCES, err.text);
    http_reply_text(request, MHD_HTTP_FORBIDDEN, "%s", err.text);
    return false;
}

/* ---- owners ---- */

/* All loopback addresses are one: every process of this machine can use each of them. */
static struct push_claim claim_of(const struct http_client *client) {
    struct push_claim claim = {.kind = PUSH_CLAIM_HTTP};
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    if (!client->is_unix) {
        claim.address = network_is_loopback(&client->address) ? in6addr_loopback : client->address;
    } else if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0) {
        claim.has_uid = true;
        claim.uid = credentials.uid;
    }
    return claim;
}

int http_push_owner(const struct http_request *request, const struct push_identity *identity,
                    struct push_owner **ret_owner, struct error *err) {
    struct push_store *store = daemon_of(request)->push_store;
    struct push_owner *owner = NULL;
    struct push_claim claim = claim_of(request->client);
    int r = push_claim_check(store, identity, &claim, err);
    if (r == 0) {
        r = push_store_owner(store, identity, &owner, err);
        if (r < 0) {
            return r;
        }
        r = push_claim(store, owner, &claim, false, err);
    }
    if (r < 0) {
        push_store_count_refused(store, r);
        push_owner_unref(store, owner);
        return r;
    }
    *ret_owner = owner;
    return 0;
}

int http_push_check_rate(struct push_store *store, struct push_owner *owner, struct error *err) {
    size_t max = push_store_limits(store)->max_line_rate;
    if (max == 0 ||
        push_allowance_wait_ns(push_owner_allowance(owner), max, clock_monotonic_ns()) == 0) {
        return 0;
    }
    push_store_count_refused(store, -EAGAIN);
    return error_set(err, -EAGAIN, "%s: more than %zu metrics in a second (push.max-line-rate)",
                     push_owner_view(store, owner).name, max);
}

void http_push_spend_rate(const struct push_store *store, struct push_owner *owner,
                          size_t n_updates) {
    size_t max = push_store_limits(store)->max_line_rate;
    if (max > 0) {
        push_allowance_spend(push_owner_allowance(owner), max, n_updates);
    }
}

/* ---- the body ---- */

/* Whether the body is packed; -EPROTONOSUPPORT where we cannot undo it. */
static int find_encoding(const struct http_request *request, bool *ret_packed, struct error *err) {
    const char *encoding = http_header(request, MHD_HTTP_HEADER_CONTENT_ENCODING);
    bool plain = encoding == NULL || encoding[0] == '\0' || strcasecmp(encoding, "identity") == 0;
    *ret_packed = !plain;
    if (!plain && strcasecmp(encoding, "gzip") != 0) {
        return error_set(err, -EPROTONOSUPPORT,
                         "Content-Encoding \"%s\" is not understood, only gzip is", encoding);
    }
    return 0;
}

static int unpack(struct buf *body, size_t max, struct error *err) {
    static const char magic[] = "\x1f\x8b";
    struct buf plain CLEANUP_BUF = {0};
    if (body->len < strlen(magic) || memcmp(body->data, magic, strlen(magic)) != 0) {
        return error_set(err, -EINVAL, "Content-Encoding is gzip, but the body is not");
    }
    int r = gzip_unpack(body->data, body->len, max, &plain, err);
    if (r == -EFBIG) {
        return error_set(err, r, "%s (web.max-body-size)", err->text);
    }
    if (r == 0) {
        struct buf packed = *body;
        *body = plain;
        plain = packed;
    }
    return r;
}

static void read_body(struct http_upload *upload) {
    struct buf *body = &upload->request->body;
    struct error *err = &upload->error;
    int r = upload->packed ? unpack(body, upload->max_body, err) : 0;
    if (r == 0) {
        r = upload->read(upload, err);
    }
    upload->code = r == -EINVAL ? -EBADMSG : r;
}

/* Counts and logs what becomes of it, but does not free it. */
static void apply(struct http_upload *upload) {
    struct error *err = &upload->error;
    int r = upload->code;
    if (r < 0) {
        push_store_count_refused(store_of(upload), r);
    } else {
        r = upload->prepare(upload, err);
    }
    if (r == 0) {
        r = push_store_apply(store_of(upload), upload->owner, &upload->batch, &upload->failed, err);
    }
    if (r == -EFBIG) {
        error_set(err, r, "%s: push it in parts", err->text);
    }
    finish(upload, r, err);
}

/* ---- large ones ---- */

/* Read one after the other, so that no more than one takes memory for its content. */

static void read_run(struct worker_job *job) {
    read_body(CONTAINER_OF(job, struct http_upload, job));
}

static void read_done(struct worker_job *job);

static void read_first(struct daemon *daemon) {
    struct http_upload *upload = daemon->uploads;
    if (upload != NULL) {
        upload->job = (struct worker_job){.run = read_run, .done = read_done};
        worker_submit(daemon->page_worker, &upload->job);
    }
}

static void enqueue(struct http_upload *upload) {
    struct daemon *daemon = upload->request->context;
    *LIST_LINK(&daemon->uploads, NULL, next) = upload;
    if (daemon->uploads == upload) {
        read_first(daemon);
    }
}

static void destroy_run(struct worker_job *job) {
    struct http_upload *upload = CONTAINER_OF(job, struct http_upload, job);
    buf_finish(&upload->spent_body);
    upload->destroy(upload);
}

/* The worker frees what it has read before it reads the next. */
static void read_done(struct worker_job *job) {
    struct http_upload *upload = CONTAINER_OF(job, struct http_upload, job);
    struct daemon *daemon = upload->request->context;
    daemon->uploads = upload->next;
    apply(upload);
    upload->spent_body = upload->request->body;
    upload->request->body = (struct buf){0};
    upload->job = (struct worker_job){.run = destroy_run};
    worker_submit(daemon->page_worker, &upload->job);
    read_first(daemon);
}

/* ---- both ---- */

void http_upload_start(struct http_upload *upload) {
    struct http_request *request = upload->request;
    upload->failed = SIZE_MAX;
    upload->max_body =
        (size_t)settings_int(daemon_of(request)->config->settings, "web.max-body-size");
    upload->max_memory = push_memory_limit(upload->max_body);
    if (upload->code == 0) {
        upload->code = find_encoding(request, &upload->packed, &upload->error);
    }
    if (upload->code < 0) {
        refuse(upload);
        return;
    }
    /* What is packed may become large. */
    bool small = request->body.len <= SMALL_BODY && !upload->packed;
    if ((!small || loop_turn_is_long(daemon_of(request)->loop)) && http_hold_upload(request)) {
        enqueue(upload);
    } else if (small) {
        read_body(upload);
        apply(upload);
        upload->destroy(upload);
    } else {
        upload->code =
            error_set(&upload->error, -EBUSY, "too many pushes at a time; try again later");
        refuse(upload);
    }
}
