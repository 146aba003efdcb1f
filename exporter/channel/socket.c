#include "exporter/channel/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/channel/session.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/net/listen.h"

/* Stands for the sockets that systemd hands over, all together. */
#define PASSED "systemd"

/* How often what is not open is tried again. */
#define RETRY_NS (5 * CLOCK_NS_PER_SEC)

/* One turn of the loop reads about TURN_BYTES in all; every LINES_AT_ONCE its time is checked. */
enum {
    TURN_BYTES = 256 * 1024,
    MIN_READ = 4 * 1024,
    MAX_READ = 64 * 1024,
    KEPT_BYTES = 4 * 1024,
    LINES_AT_ONCE = 4,
};

/* A connection waits for its rate at least MIN_WAIT_NS, to take many lines in one turn, and at most
 * MAX_WAIT_NS, as a reload may change the rate. */
#define MIN_WAIT_NS (20 * CLOCK_NS_PER_MS)
#define MAX_WAIT_NS CLOCK_NS_PER_SEC

/* One path to listen on. */
struct place {
    char *address; /* "unix:/path", or PASSED */
    struct http_listeners *listeners;
    bool open;
    bool keep; /* while the settings are read */
    struct place *next;
};

/* One connection. */
struct link {
    struct loop_source source;
    struct push_socket *owner;
    struct push_session session;
    struct push_lines lines;
    bool watched; /* by the loop: not before the peer is identified, nor while held */
    bool held;    /* until its rate, or the turn, lets its next line be taken */
    struct link *next_held;
    uint32_t events; /* that the loop watches for */
    struct link *next;
};

struct push_socket {
    struct loop *loop;
    struct push_session_env env;
    struct push_peers *peers;
    struct config *config;
    struct place *places;
    struct loop_timer retry; /* of places that are not open */
    struct link *links;
    size_t n_links;
    size_t max_links;
    size_t max_peer_links;
    size_t max_line;
    size_t max_rate; /* lines per second of one connection, and of one plugin; 0: no limit */
    struct link *held, **held_end; /* a queue: the longest waiting first */
    size_t n_held;
    struct loop_timer resume;
    struct buf in; /* the bytes being read, of any connection */
    struct loop_timer check;
    unsigned n_lines;
    uint64_t n_refused;
    uint64_t n_cut;
};

/* ---- connections ---- */

/* Takes the link that `at` refers to out of the queue of those that are held. */
static void release(struct push_socket *socket, struct link **at) {
    struct link *link = *at;
    *at = TAKE(link->next_held);
    socket->held_end = *at == NULL ? at : socket->held_end;
    socket->n_held--;
    link->held = false;
}

static void enqueue(struct push_socket *socket, struct link *link) {
    *socket->held_end = link;
    socket->held_end = &link->next_held;
    socket->n_held++;
    link->held = true;
}

static void link_destroy(struct link *link) {
    struct push_socket *owner = link->owner;
    if (link->watched) {
        loop_remove(owner->loop, &link->source);
    }
    if (link->held) {
        struct link **at = &owner->held;
        while (*at != link) {
            at = &(*at)->next_held;
        }
        release(owner, at);
    }
    struct link **link_at = &owner->links;
    while (*link_at != link) {
        link_at = &(*link_at)->next;
    }
    *link_at = link->next;
    owner->n_links--;
    close(link->source.fd);
    push_session_finish(&link->session);
    push_peers_forget(owner->peers, &link->session.peer);
    push_lines_finish(&link->lines);
    free(link);
}

/* Sends what fits; false: the connection is broken. Lines of a client that has left still count. */
static bool flush(struct link *link) {
    struct buf *out = &link->session.out;
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n =
            send(link->source.fd, out->data + sent, out->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        bool has_left = n < 0 && (errno == EPIPE || errno == ECONNRESET);
        if (n < 0 && !has_left && errno != EINTR) {
            if (errno != EAGAIN) {
                return false;
            }
            break;
        }
        sent = has_left ? out->len : sent + (n > 0 ? (size_t)n : 0);
    }
    if (sent > 0) {
        memmove(out->data, out->data + sent, out->len - sent);
        buf_truncate(out, out->len - sent);
    }
    if (out->len == 0 && out->cap > KEPT_BYTES) {
        buf_finish(out);
    }
    uint32_t events = (link->lines.ended ? 0 : EPOLLIN) | (out->len > 0 ? EPOLLOUT : 0);
    if (link->watched && events != link->events) {
        link->events = events;
        loop_change(link->owner->loop, &link->source, events);
    }
    return true;
}

/* Sends the replies to lines, and closes the connection if it is over. */
static void settle(struct link *link) {
    struct push_session *session = &link->session;
    bool useful = flush(link);
    if (useful && session->must_end != PUSH_SESSION_OPEN) {
        link->owner->n_cut += session->must_end == PUSH_SESSION_NOT_READING;
        useful = false;
    }
    if (!useful || (link->lines.ended && !link->held && session->out.len == 0)) {
        link_destroy(link);
    }
}

/* A knob was set. A broken connection is only shut down here: callers may still use it. */
static void session_answered(struct push_session *session) {
    struct link *link = CONTAINER_OF(session, struct link, session);
    if (!flush(link)) {
        shutdown(link->source.fd, SHUT_RDWR);
    }
}

/* ---- reading ---- */

static bool take_line(struct push_lines *lines, char *text, size_t len) {
    struct link *link = CONTAINER_OF(lines, struct link, lines);
    struct push_socket *socket = link->owner;
    struct loop_timer *resume = &socket->resume;
    if (++socket->n_lines % LINES_AT_ONCE == 0 && loop_turn_is_long(socket->loop)) {
        resume->due_ns = 0;
        return false;
    }
    int64_t wait_ns = push_session_wait_ns(&link->session, socket->max_rate);
    if (wait_ns > 0) {
        wait_ns = wait_ns < MIN_WAIT_NS ? MIN_WAIT_NS : wait_ns;
        wait_ns = wait_ns > MAX_WAIT_NS ? MAX_WAIT_NS : wait_ns;
        int64_t due_ns = clock_monotonic_ns() + wait_ns;
        resume->due_ns = due_ns < resume->due_ns ? due_ns : resume->due_ns;
        return false;
    }
    push_session_line(&link->session, text, len);
    return true;
}

static void refuse_line(struct push_lines *lines) {
    struct link *link = CONTAINER_OF(lines, struct link, lines);
    struct error err;
    error_set(&err, -E2BIG, "line is longer than %zu bytes (push.max-line-size)", lines->max_line);
    push_session_refuse(&link->session, -E2BIG, err.text);
}

/* Many connections get fewer bytes each, so that a busy one does not delay the others or scrapes.
 */
static size_t share(const struct push_socket *socket) {
    size_t bytes = TURN_BYTES / (socket->n_links > 0 ? socket->n_links : 1);
    return bytes < MIN_READ ? MIN_READ : bytes > MAX_READ ? MAX_READ : bytes;
}

/* Reads once. */
static void receive(struct link *link) {
    struct buf *in = &link->owner->in;
    size_t room = share(link->owner);
    buf_reset(in);
    char *to = buf_reserve(in, room);
    link->lines.max_line = link->owner->max_line;
    ssize_t n = recv(link->source.fd, to, room, MSG_DONTWAIT);
    if (n > 0) {
        push_lines_add(&link->lines, to, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        push_lines_end(&link->lines);
    }
}

/* Stops reading until the waiting lines are taken; the peer's end fills up meanwhile. A watched
 * connection would be reported again and again once the peer has left. */
static void hold(struct link *link) {
    loop_remove(link->owner->loop, &link->source);
    link->watched = false;
    enqueue(link->owner, link);
}

static void link_ready(struct loop_source *source, uint32_t events) {
    struct link *link = CONTAINER_OF(source, struct link, source);
    if (loop_turn_is_long(link->owner->loop)) {
        return; /* the loop calls again: the bytes stay in the socket */
    }
    if (!link->lines.ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        receive(link);
        if (link->lines.held) {
            hold(link);
        }
    } else if (link->lines.ended && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        link_destroy(link); /* the peer reads no replies either */
        return;
    }
    settle(link);
}

/* The peer is identified, or its rate allows more: the loop watches the connection. */
static bool link_begin(struct link *link) {
    struct error err;
    if (loop_add(link->owner->loop, &link->source, EPOLLIN, &err) < 0) {
        log_warn("push: %s", err.text);
        link_destroy(link);
        return false;
    }
    link->watched = true;
    link->events = EPOLLIN;
    return true;
}

/* Takes waiting lines while the turn lasts. A connection that was served goes to the end of the
 * queue: the connections of one plugin share its rate. */
static void resume_fire(struct loop_timer *timer) {
    struct push_socket *socket = CONTAINER_OF(timer, struct push_socket, resume);
    struct link **at = &socket->held;
    size_t n_bytes = 0;
    timer->due_ns = LOOP_NEVER;
    for (size_t n = socket->n_held; n > 0 && *at != NULL; n--) {
        if (n_bytes >= TURN_BYTES || (n_bytes > 0 && loop_turn_is_long(socket->loop))) {
            timer->due_ns = 0;
            return;
        }
        struct link *link = *at;
        size_t n_taken = push_lines_resume(&link->lines);
        if (n_taken == 0 && link->lines.held) {
            at = &link->next_held;
            continue;
        }
        n_bytes += n_taken;
        release(socket, at);
        if (link->lines.held) {
            enqueue(socket, link);
        }
        if (link->lines.held || link_begin(link)) {
            settle(link);
        }
    }
}

/* ---- new connections ---- */

static void refuse(struct push_socket *socket, int fd, const char *why) {
    struct buf answer CLEANUP_BUF = {0};
    socket->n_refused++;
    json_open(&answer, NULL, '{');
    json_put_string(&answer, "error", why);
    buf_add_str(&answer, "}\n");
    ssize_t ignored = send(fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ignored;
}

/* Whether the peer has as many connections as one may have. */
static bool has_its_share(const struct link *link) {
    size_t n = 0;
    for (const struct link *other = link->owner->links; other != NULL; other = other->next) {
        n += push_peer_is_same(&other->session.peer, &link->session.peer);
    }
    return n > link->owner->max_peer_links;
}

static void peer_named(struct push_peer *peer) {
    link_begin(CONTAINER_OF(peer, struct link, session.peer));
}

static struct link *link_create(struct push_socket *socket, int fd) {
    struct link *link = mem_zalloc(1, sizeof(*link));
    link->source = (struct loop_source){.fd = fd, .ready = link_ready};
    link->owner = socket;
    link->lines = (struct push_lines){.take = take_line, .too_long = refuse_line};
    push_session_init(&link->session, &socket->env);
    link->session.answered = session_answered;
    link->session.peer.named = peer_named;
    link->next = socket->links;
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

/* ---- listening ---- */

/* Makes the directory of the socket, but none above it. */
static void make_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash != NULL && slash > path) {
        char *directory CLEANUP_FREE = mem_strndup(path, (size_t)(slash - path));
        mkdir(directory, 0755);
    }
}

static int open_place(struct place *place, const struct config *config, struct error *err) {
    const struct settings *settings = config->settings;
    bool passed = strcmp(place->address, PASSED) == 0;
    const struct http_listen_config listen_config = {
        .name = "push",
        .addresses = (const char *const[]){place->address, NULL},
        .passed = passed,
        .mode = settings_string(settings, "push.socket-mode"),
        .group = settings_string(settings, "push.socket-group"),
        .group_option = "push.socket-group",
        .names = config->names,
    };
    if (!passed) {
        make_directory(place->address + strlen("unix:"));
    }
    int r = http_listeners_listen(place->listeners, &listen_config, err);
    place->open = r == 0;
    return r;
}

static void log_closed(const struct error *err) {
    log_warn("push: %s; plugins cannot connect there (see --push.socket)", err->text);
}

/* Another process may have released a path, and our socket may have been removed. */
static void retry_fire(struct loop_timer *timer) {
    struct push_socket *socket = CONTAINER_OF(timer, struct push_socket, retry);
    timer->due_ns = clock_monotonic_ns() + RETRY_NS;
    for (struct place *place = socket->places; place != NULL; place = place->next) {
        struct error err;
        bool was_open = place->open;
        if (was_open && http_listeners_are_there(place->listeners)) {
            continue;
        }
        if (was_open) {
            log_warn("push: %s has been removed; creating it again", place->address);
        }
        if (open_place(place, socket->config, &err) < 0 && was_open) {
            log_closed(&err);
        }
    }
}

void push_socket_lookup(const struct settings *settings, struct listen_names *names) {
    listen_names_add_group(names, settings_string(settings, "push.socket-group"));
}

static void use_place(struct push_socket *socket, const char *address) {
    struct error err;
    struct place *place = socket->places;
    while (place != NULL && strcmp(place->address, address) != 0) {
        place = place->next;
    }
    if (place == NULL) {
        place = mem_zalloc(1, sizeof(*place));
        place->address = mem_strdup(address);
        place->listeners = http_listeners_create(socket->loop, accepted, socket);
        place->next = socket->places;
        socket->places = place;
    }
    place->keep = true;
    if (open_place(place, socket->config, &err) < 0) {
        log_closed(&err);
    }
}

/* Closes the places that are not marked to be kept, and removes the marks. */
static void close_places(struct push_socket *socket) {
    for (struct place **link = &socket->places; *link != NULL;) {
        struct place *place = *link;
        if (place->keep) {
            place->keep = false;
            link = &place->next;
        } else {
            *link = place->next;
            http_listeners_destroy(place->listeners);
            free(place->address);
            free(place);
        }
    }
}

static void listen_configure(struct push_socket *socket) {
    int fds[LISTEN_PASSED_MAX];
    bool passed = listen_passed_find("push", fds) > 0;
    if (passed) {
        use_place(socket, PASSED);
    }
    const char *const *paths = settings_list(socket->config->settings, "push.socket");
    for (; !passed && *paths != NULL; paths++) {
        struct buf address CLEANUP_BUF = {0};
        buf_printf(&address, "unix:%s", *paths);
        use_place(socket, buf_str(&address));
    }
    socket->retry.due_ns = clock_monotonic_ns() + RETRY_NS;
    close_places(socket);
}

static size_t listen_room(const struct settings *settings) {
    enum { FDS_KEPT = 128 }; /* for everything but connections */
    rlim_t wanted = (rlim_t)settings_int(settings, "push.max-connections");
    rlim_t others = (rlim_t)settings_int(settings, "web.max-connections") + FDS_KEPT;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted + others) {
        return (size_t)wanted;
    }
    limit.rlim_cur = limit.rlim_max < wanted + others ? limit.rlim_max : wanted + others;
    setrlimit(RLIMIT_NOFILE, &limit);
    rlim_t left = limit.rlim_cur > others ? limit.rlim_cur - others : 0;
    if (left >= wanted) {
        return (size_t)wanted;
    }
    log_warn("push: room for %zu connections only: the process may have %zu descriptors",
             (size_t)left, (size_t)limit.rlim_cur);
    return (size_t)left;
}

/* ---- life ---- */

struct push_socket *push_socket_create(struct loop *loop, struct push_store *store,
                                       struct knobs *knobs, struct push_log *log) {
    struct push_socket *socket = mem_zalloc(1, sizeof(*socket));
    socket->loop = loop;
    socket->env = (struct push_session_env){
        .store = store,
        .knobs = knobs,
        .reader = push_json_create(),
        .log = log,
    };
    socket->check = (struct loop_timer){.due_ns = 0, .fire = check_fire};
    socket->resume = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = resume_fire};
    socket->retry = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = retry_fire};
    socket->held_end = &socket->held;
    loop_timer_add(loop, &socket->check);
    loop_timer_add(loop, &socket->resume);
    loop_timer_add(loop, &socket->retry);
    socket->peers = push_peers_create(loop);
    return socket;
}

void push_socket_configure(struct push_socket *socket, struct config *config) {
    const struct settings *settings = config->settings;
    struct config *old = socket->config;
    socket->config = config_ref(config);
    config_unref(old);
    socket->max_links = listen_room(settings);
    socket->max_peer_links = (size_t)settings_int(settings, "push.max-connections-per-peer");
    socket->max_line = (size_t)settings_int(settings, "push.max-line-size");
    socket->env.reader->arena.max = push_memory_limit(socket->max_line);
    socket->max_rate = (size_t)settings_int(settings, "push.max-line-rate");
    push_peers_configure(socket->peers, config);
    listen_configure(socket);
}

void push_socket_destroy(struct push_socket *socket) {
    if (socket == NULL) {
        return;
    }
    close_places(socket);
    config_unref(socket->config);
    loop_timer_remove(socket->loop, &socket->check);
    loop_timer_remove(socket->loop, &socket->resume);
    loop_timer_remove(socket->loop, &socket->retry);
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
