#include "exporter/push_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/core/log.h"
#include "exporter/push_listen.h"
#include "exporter/push_session.h"

/* One turn of the loop reads about TURN_BYTES from all together: some milliseconds of work. */
enum {
    TURN_BYTES = 256 * 1024,
    MIN_READ = 4 * 1024,
    MAX_READ = 64 * 1024,
    KEPT_BYTES = 4 * 1024,
};

/* One connection. */
struct link {
    struct loop_source source;
    struct push_socket *owner;
    struct push_session session;
    struct buf rest;                 /* the beginning of a line whose end has not come */
    bool watched;                    /* by the loop: not before we know who it is */
    bool skipping;                   /* the rest of a line that is too long */
    bool ended;                      /* it will say no more */
    uint32_t events;                 /* that the loop watches for */
    struct push_allowance allowance; /* of lines, where there is a limit */
    struct link *next, *previous;
};

struct push_socket {
    struct loop *loop;
    struct push_session_env env;
    struct push_peers *peers;
    struct push_listen *listen;
    struct link *links;
    size_t n_links;
    size_t max_links;
    size_t max_peer_links;
    size_t max_line;
    size_t max_rate; /* lines per second of one connection, and of one plugin; 0: no limit */
    struct buf in;   /* what is being read, whoever sent it */
    struct loop_timer check;
    uint64_t n_refused;
    uint64_t n_cut;
};

/* ---- connections ---- */

static void link_destroy(struct link *link) {
    struct push_socket *owner = link->owner;
    if (link->watched) {
        loop_remove(owner->loop, &link->source);
    }
    *(link->previous != NULL ? &link->previous->next : &owner->links) = link->next;
    if (link->next != NULL) {
        link->next->previous = link->previous;
    }
    owner->n_links--;
    close(link->source.fd);
    push_session_finish(&link->session);
    push_peers_forget(owner->peers, &link->session.peer);
    buf_finish(&link->rest);
    free(link);
}

/* Sends what waits as far as there is room. False: the connection is of no use any more. */
static bool flush(struct link *link) {
    struct buf *out = &link->session.out;
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n =
            send(link->source.fd, out->data + sent, out->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR) {
            if (errno != EAGAIN) {
                return false;
            }
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    if (sent > 0) {
        memmove(out->data, out->data + sent, out->len - sent);
        buf_truncate(out, out->len - sent);
    }
    if (out->len == 0 && out->cap > KEPT_BYTES) {
        buf_finish(out);
    }
    uint32_t events = (link->ended ? 0 : EPOLLIN) | (out->len > 0 ? EPOLLOUT : 0);
    if (link->watched && events != link->events) {
        link->events = events;
        loop_change(link->owner->loop, &link->source, events);
    }
    return true;
}

static void cut(struct link *link) {
    const struct push_peer *peer = &link->session.peer;
    link->owner->n_cut++;
    log_warn("push: process %d of %s does not take its answers, disconnected", (int)peer->pid,
             peer->container != NULL ? peer->container : "this machine");
    link_destroy(link);
}

/* After anything was said: answers, and ends what is over. */
static void settle(struct link *link) {
    bool useful = flush(link);
    if (useful && (link->session.must_end || link->session.out.failed)) {
        cut(link);
    } else if (!useful || (link->ended && link->session.out.len == 0)) {
        link_destroy(link);
    }
}

/* A knob was turned. What has to end is only told so: others may be looking at it. */
static void session_answered(struct push_session *session) {
    struct link *link = CONTAINER_OF(session, struct link, session);
    if (!flush(link)) {
        shutdown(link->source.fd, SHUT_RDWR);
    }
}

/* ---- reading ---- */

/* Neither a plugin with many connections nor a connection with many names may send more. */
static bool within_rate(struct link *link, int64_t now_ns) {
    size_t max = link->owner->max_rate;
    struct push_owner *plugin = link->session.owner;
    if (max == 0) {
        return true;
    }
    return push_allowance_spend(&link->allowance, max, 1, now_ns) &&
           (plugin == NULL || push_allowance_spend(push_owner_allowance(plugin), max, 1, now_ns));
}

static void take_line(struct link *link, char *text, size_t len, int64_t now_ns) {
    struct error err;
    if (link->skipping) { /* its end: the next is another line */
        link->skipping = false;
    } else if (len > link->owner->max_line) {
        error_set(&err, -E2BIG, "line is longer than %zu bytes (push.max-line-size)",
                  link->owner->max_line);
        push_session_refuse(&link->session, -E2BIG, err.text);
    } else if (!within_rate(link, now_ns)) {
        error_set(&err, -EAGAIN, "more than %zu lines in a second (push.max-line-rate)",
                  link->owner->max_rate);
        push_session_refuse(&link->session, -EAGAIN, err.text);
    } else {
        push_session_line(&link->session, text, len);
    }
}

/* Takes the lines of what has come; the beginning of another is kept. */
static void take_lines(struct link *link, char *data, size_t len, size_t n_old) {
    int64_t now_ns = link->owner->max_rate > 0 ? clock_monotonic_ns() : 0;
    char *end = data + len;
    char *line = data;
    char *newline = memchr(data + n_old, '\n', len - n_old);
    while (newline != NULL) {
        take_line(link, line, (size_t)(newline - line), now_ns);
        line = newline + 1;
        newline = memchr(line, '\n', (size_t)(end - line));
    }
    size_t left = (size_t)(end - line);
    if (left > link->owner->max_line && !link->skipping) {
        take_line(link, line, left, now_ns);
        link->skipping = true;
    }
    left = link->skipping ? 0 : left;
    buf_reset(&link->rest);
    if (left > 0) {
        buf_add(&link->rest, line, left);
    } else if (link->rest.cap > KEPT_BYTES) {
        buf_finish(&link->rest);
    }
}

/* Fewer bytes each where there are many: one who writes all the time does not keep others, or
 * scrapes, waiting. */
static size_t share(const struct push_socket *socket) {
    size_t bytes = TURN_BYTES / (socket->n_links > 0 ? socket->n_links : 1);
    return bytes < MIN_READ ? MIN_READ : bytes > MAX_READ ? MAX_READ : bytes;
}

/* Reads once. */
static void receive(struct link *link) {
    struct buf *in = &link->owner->in;
    size_t room = share(link->owner);
    size_t n_old = link->rest.len;
    buf_reset(in);
    buf_add(in, link->rest.data, n_old);
    char *to = buf_reserve(in, room);
    if (to == NULL || link->rest.failed) {
        link->session.out.failed = true;
        return;
    }
    ssize_t n = recv(link->source.fd, to, room, MSG_DONTWAIT);
    if (n > 0) {
        take_lines(link, in->data, n_old + (size_t)n, n_old);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    link->ended = true;
    if (n_old > 0) { /* what it said last needs no newline */
        take_line(link, in->data, n_old, clock_monotonic_ns());
    }
}

static void link_ready(struct loop_source *source, uint32_t events) {
    struct link *link = CONTAINER_OF(source, struct link, source);
    if (push_store_is_applying(link->owner->env.store)) {
        return; /* it is called again: what is there to be read stays there */
    }
    if (!link->ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        receive(link);
    } else if (link->ended && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        link_destroy(link); /* it takes no answers either */
        return;
    }
    settle(link);
}

/* ---- who connects ---- */

static void refuse(struct push_socket *socket, int fd, const char *why) {
    struct buf answer CLEANUP_BUF = {0};
    socket->n_refused++;
    buf_add_str(&answer, "{\"error\":");
    json_add_string(&answer, why);
    buf_add_str(&answer, "}\n");
    if (!answer.failed) {
        ssize_t ignored = send(fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)ignored;
    }
}

static bool is_same(const struct push_peer *a, const struct push_peer *b) {
    if (a->container_id == NULL || b->container_id == NULL) {
        return a->container_id == b->container_id && a->uid == b->uid;
    }
    return strcmp(a->container_id, b->container_id) == 0;
}

/* Whether the peer has as many connections as one may have. */
static bool has_its_share(const struct link *link) {
    size_t n = 0;
    for (const struct link *other = link->owner->links; other != NULL; other = other->next) {
        n += is_same(&other->session.peer, &link->session.peer);
    }
    return n > link->owner->max_peer_links;
}

/* It is known who it is: the conversation begins. */
static void link_begin(struct link *link) {
    struct error err;
    if (loop_add(link->owner->loop, &link->source, EPOLLIN, &err) < 0) {
        log_warn("push: %s", err.text);
        link_destroy(link);
        return;
    }
    link->watched = true;
    link->events = EPOLLIN;
}

static void peer_named(struct push_peer *peer) {
    link_begin(CONTAINER_OF(peer, struct link, session.peer));
}

static struct link *link_create(struct push_socket *socket, int fd) {
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        return NULL;
    }
    link->source = (struct loop_source){.fd = fd, .ready = link_ready};
    link->owner = socket;
    push_session_init(&link->session, &socket->env);
    link->session.answered = session_answered;
    link->session.peer.named = peer_named;
    link->next = socket->links;
    if (link->next != NULL) {
        link->next->previous = link;
    }
    socket->links = link;
    socket->n_links++;
    return link;
}

static void accepted(int fd, void *context) {
    struct push_socket *socket = context;
    struct error err;
    if (socket->n_links >= socket->max_links) {
        refuse(socket, fd, "too many connections in all (push.max-connections)");
        close(fd);
        return;
    }
    struct link *link = link_create(socket, fd);
    if (link == NULL) {
        close(fd);
        return;
    }
    if (push_peers_identify(socket->peers, fd, &link->session.peer, &err) < 0) {
        log_warn("%s", err.text);
        link_destroy(link);
    } else if (has_its_share(link)) {
        refuse(socket, fd,
               "too many connections of this container or user "
               "(push.max-connections-per-peer)");
        link_destroy(link);
    } else if (!link->session.peer.waiting) {
        link_begin(link);
    }
}

static void check_fire(struct loop_timer *timer) {
    struct push_socket *socket = CONTAINER_OF(timer, struct push_socket, check);
    timer->due_ns = clock_monotonic_ns() + CLOCK_NS_PER_SEC;
    for (struct link *link = socket->links, *next; link != NULL; link = next) {
        next = link->next; /* settling may end it */
        push_session_check(&link->session);
        if (link->session.out.len > 0) {
            settle(link);
        }
    }
}

/* ---- life ---- */

int push_socket_create(struct loop *loop, struct push_store *store, struct params_table *params,
                       struct push_log *log, struct push_socket **ret_socket, struct error *err) {
    struct push_socket *socket = calloc(1, sizeof(*socket));
    if (socket == NULL) {
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    socket->loop = loop;
    socket->env = (struct push_session_env){
        .store = store,
        .params = params,
        .reader = push_json_create(),
        .log = log,
    };
    socket->check = (struct loop_timer){.due_ns = 0, .fire = check_fire};
    loop_timer_add(loop, &socket->check);
    socket->peers = push_peers_create(loop);
    socket->listen = push_listen_create(loop, accepted, socket);
    if (socket->env.reader == NULL || socket->peers == NULL || socket->listen == NULL) {
        push_socket_destroy(socket);
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    *ret_socket = socket;
    return 0;
}

void push_socket_configure(struct push_socket *socket, struct config *config) {
    const struct settings *settings = config->settings;
    socket->max_links = push_listen_room(settings);
    socket->max_peer_links = (size_t)settings_int(settings, "push.max-connections-per-peer");
    socket->max_line = (size_t)settings_int(settings, "push.max-line-size");
    socket->max_rate = (size_t)settings_int(settings, "push.max-line-rate");
    params_limit(socket->env.params, (size_t)settings_int(settings, "push.max-params"),
                 (size_t)settings_int(settings, "push.max-params-size-per-peer"));
    push_peers_configure(socket->peers, config);
    push_listen_configure(socket->listen, settings, config->names);
}

void push_socket_destroy(struct push_socket *socket) {
    if (socket == NULL) {
        return;
    }
    push_listen_destroy(socket->listen);
    loop_timer_remove(socket->loop, &socket->check);
    while (socket->links != NULL) {
        link_destroy(socket->links);
    }
    push_peers_destroy(socket->peers);
    push_json_destroy(socket->env.reader);
    buf_finish(&socket->in);
    free(socket);
}

struct push_socket_stats push_socket_stats(const struct push_socket *socket) {
    return (struct push_socket_stats){
        .n_connections = socket->n_links,
        .n_refused = socket->n_refused,
        .n_cut = socket->n_cut,
    };
}
