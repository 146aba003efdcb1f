#include "tests/fakes/web_peer.h"

#include <assert.h>
#include <microhttpd.h>
#include <pthread.h>
#include <string.h>

struct web_peer {
    struct MHD_Daemon *daemon;
    struct web_peer_answer answer;
    pthread_mutex_t lock;           /* of what follows: a client may go before its answer */
    struct MHD_Connection *waiting; /* for an answer that never comes */
    bool is_ending;
    struct buf url, heard;
};

static enum MHD_Result add_pair(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value) {
    (void)kind;
    buf_printf(context, "%s: %s\n", name, value);
    return MHD_YES;
}

/* The address as it was sent, with its parameters. */
static void *begin(void *context, const char *target, struct MHD_Connection *connection) {
    (void)connection;
    struct web_peer *peer = context;
    buf_reset(&peer->heard);
    buf_add_str(&peer->heard, target);
    return NULL;
}

static bool leave_waiting(struct web_peer *peer, struct MHD_Connection *connection) {
    pthread_mutex_lock(&peer->lock);
    bool is_left = !peer->is_ending;
    if (is_left) {
        peer->waiting = connection;
        MHD_suspend_connection(connection);
    }
    pthread_mutex_unlock(&peer->lock);
    return is_left;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **slot) {
    (void)url;
    (void)version;
    static char seen;
    struct web_peer *peer = context;
    if (*slot == NULL) {
        *slot = &seen;
        char *target = buf_take(&peer->heard);
        buf_printf(&peer->heard, "%s %s\n", method, target);
        free(target);
        MHD_get_connection_values(connection, MHD_HEADER_KIND, add_pair, &peer->heard);
        buf_add_char(&peer->heard, '\n');
        return MHD_YES;
    }
    if (*upload_size > 0) {
        buf_add(&peer->heard, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (peer->answer.never && leave_waiting(peer, connection)) {
        return MHD_YES;
    }
    const char *body = peer->answer.body != NULL ? peer->answer.body : "";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(body), (void *)body, MHD_RESPMEM_MUST_COPY);
    if (peer->answer.location != NULL) {
        MHD_add_response_header(response, "Location", peer->answer.location);
    }
    enum MHD_Result result = MHD_queue_response(connection, peer->answer.status, response);
    MHD_destroy_response(response);
    return result;
}

struct web_peer *web_peer_create(void) {
    struct web_peer *peer = calloc(1, sizeof(*peer));
    assert(peer != NULL);
    pthread_mutex_init(&peer->lock, NULL);
    peer->daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         handle, peer, MHD_OPTION_URI_LOG_CALLBACK, begin, peer, MHD_OPTION_END);
    assert(peer->daemon != NULL);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(peer->daemon, MHD_DAEMON_INFO_BIND_PORT);
    buf_printf(&peer->url, "http://127.0.0.1:%u", (unsigned)info->port);
    return peer;
}

void web_peer_destroy(struct web_peer *peer) {
    pthread_mutex_lock(&peer->lock);
    peer->is_ending = true;
    if (peer->waiting != NULL) {
        MHD_resume_connection(peer->waiting);
    }
    pthread_mutex_unlock(&peer->lock);
    MHD_stop_daemon(peer->daemon);
    pthread_mutex_destroy(&peer->lock);
    buf_finish(&peer->url);
    buf_finish(&peer->heard);
    free(peer);
}

const char *web_peer_url(const struct web_peer *peer) {
    return buf_str(&peer->url);
}

void web_peer_say(struct web_peer *peer, struct web_peer_answer answer) {
    peer->answer = answer;
}

const char *web_peer_heard(const struct web_peer *peer) {
    return buf_str(&peer->heard);
}
