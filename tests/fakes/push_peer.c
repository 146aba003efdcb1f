#include "tests/fakes/push_peer.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/core/clock.h"

enum { MAX_TEXT = 1 << 20, GIVE_UP_MS = 60000 };

void push_peer_listen(struct push_peer *peer) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, peer->path);
    unlink(peer->path);
    peer->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = bind(peer->listen_fd, (const struct sockaddr *)&address, sizeof(address));
    assert(r == 0);
    r = listen(peer->listen_fd, 8);
    assert(r == 0);
    (void)r;
}

void push_peer_unlisten(struct push_peer *peer) {
    close(peer->listen_fd);
    peer->listen_fd = -1;
    unlink(peer->path);
}

void push_peer_open(struct push_peer *peer) {
    *peer = (struct push_peer){.path = "/tmp/push_peer.XXXXXX"};
    char *directory = mkdtemp(peer->path);
    assert(directory != NULL);
    (void)directory;
    strcat(peer->path, "/push.sock");
    for (size_t i = 0; i < PUSH_PEER_MAX_CLIENTS; i++) {
        peer->clients[i].fd = -1;
    }
    peer->last = json_object();
    peer->sums = json_object();
    peer->lines = json_array();
    push_peer_listen(peer);
}

static void client_close(struct push_peer *peer, size_t i) {
    close(peer->clients[i].fd);
    free(peer->clients[i].text);
    json_decref(peer->clients[i].hello);
    json_decref(peer->clients[i].declared);
    memset(&peer->clients[i], 0, sizeof(peer->clients[i]));
    peer->clients[i].fd = -1;
}

void push_peer_close(struct push_peer *peer) {
    for (size_t i = 0; i < PUSH_PEER_MAX_CLIENTS; i++) {
        if (peer->clients[i].fd >= 0) {
            client_close(peer, i);
        }
    }
    if (peer->listen_fd >= 0) {
        push_peer_unlisten(peer);
    }
    *strrchr(peer->path, '/') = '\0';
    rmdir(peer->path);
    json_decref(peer->last);
    json_decref(peer->sums);
    json_decref(peer->lines);
}

pid_t push_peer_fork(struct push_peer *peer, void (*plugin)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    close(peer->listen_fd);
    setenv("WAAP_PUSH_SOCKET", peer->path, 1);
    json_decref(peer->last);
    json_decref(peer->sums);
    json_decref(peer->lines);
    plugin();
    exit(0);
}

void push_peer_send(struct push_peer *peer, int fd, const char *text) {
    size_t len = strlen(text);
    size_t step = peer->piece > 0 ? peer->piece : len;
    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        if (send(fd, text + at, n, MSG_NOSIGNAL) < 0) {
            return;
        }
    }
}

/* Adds what `total` has grown by since the last one of the same start; histograms member by member.
 */
static void apply_total(struct push_peer *peer, const char *start, const char *series,
                        json_t *total) {
    if (json_is_object(total)) {
        char name[512];
        snprintf(name, sizeof(name), "%s_count", series);
        apply_total(peer, start, name, json_object_get(total, "count"));
        snprintf(name, sizeof(name), "%s_sum", series);
        apply_total(peer, start, name, json_object_get(total, "sum"));
        json_t *counts = json_object_get(total, "counts");
        for (size_t i = 0; i < json_array_size(counts); i++) {
            snprintf(name, sizeof(name), "%s_bucket_%zu", series, i);
            apply_total(peer, start, name, json_array_get(counts, i));
        }
        return;
    }
    if (json_object_get(peer->last, start) == NULL) {
        json_object_set_new(peer->last, start, json_object());
    }
    json_t *totals = json_object_get(peer->last, start);
    double sum = json_number_value(json_object_get(peer->sums, series)) + json_number_value(total) -
                 json_number_value(json_object_get(totals, series));
    json_object_set_new(peer->sums, series, json_real(sum));
    json_object_set(totals, series, total);
}

/* Every connection hears of a metric's type before its values. */
static void check_declared(struct push_peer *peer, size_t i, json_t *line) {
    const char *metric = json_string_value(json_object_get(line, "metric"));
    json_t *type = json_object_get(line, "type");
    if (type != NULL) {
        json_object_set(peer->clients[i].declared, metric, type);
    } else if (json_object_get(peer->clients[i].declared, metric) == NULL) {
        fprintf(stderr, "push_peer: %s is not declared\n", metric);
        abort();
    }
}

static void apply_metric(struct push_peer *peer, size_t i, json_t *line) {
    check_declared(peer, i, line);
    json_t *labels = json_object_get(line, "labels");
    char *rendered = labels != NULL ? json_dumps(labels, JSON_COMPACT) : NULL;
    char series[256];
    snprintf(series, sizeof(series), "%s%s", json_string_value(json_object_get(line, "metric")),
             rendered != NULL ? rendered : "");
    free(rendered);
    const char *start = json_string_value(json_object_get(peer->clients[i].hello, "start"));
    json_t *set = json_object_get(line, "set");
    if (set != NULL) {
        json_object_set(peer->sums, series, set);
    } else {
        apply_total(peer, start, series, json_object_get(line, "total"));
    }
}

static void take_line(struct push_peer *peer, size_t i, const char *text) {
    json_t *line = json_loads(text, 0, NULL);
    if (line == NULL) {
        fprintf(stderr, "push_peer: not JSON: %s\n", text);
        abort();
    }
    json_array_append_new(peer->lines, line);
    json_t *hello = json_object_get(line, "hello");
    if (hello != NULL) {
        json_decref(peer->clients[i].hello);
        peer->clients[i].hello = json_incref(hello);
        peer->n_hellos++;
        push_peer_send(peer, peer->clients[i].fd, peer->answer != NULL ? peer->answer : "");
    }
    assert(peer->clients[i].hello != NULL);
    if (json_object_get(line, "metric") != NULL) {
        apply_metric(peer, i, line);
    }
    if (peer->on_line != NULL) {
        peer->on_line(peer, peer->clients[i].fd, line);
    }
    json_t *seq = json_object_get(line, "seq");
    if (seq != NULL && !peer->never_acks) {
        char ack[64];
        snprintf(ack, sizeof(ack), "{\"ack\": %lld}\n", (long long)json_integer_value(seq));
        push_peer_send(peer, peer->clients[i].fd, ack);
    }
}

static void take_bytes(struct push_peer *peer, size_t i, const char *bytes, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (bytes[k] != '\n') {
            assert(peer->clients[i].len < MAX_TEXT - 1);
            peer->clients[i].text[peer->clients[i].len++] = bytes[k];
            continue;
        }
        peer->clients[i].text[peer->clients[i].len] = '\0';
        peer->clients[i].len = 0;
        take_line(peer, i, peer->clients[i].text);
    }
}

static void client_read(struct push_peer *peer, size_t i) {
    char bytes[16384];
    size_t size = peer->piece > 0 && peer->piece < sizeof(bytes) ? peer->piece : sizeof(bytes);
    ssize_t n = recv(peer->clients[i].fd, bytes, size, 0);
    if (n <= 0) {
        client_close(peer, i);
        return;
    }
    peer->n_bytes += (size_t)n;
    take_bytes(peer, i, bytes, (size_t)n);
    if (peer->end_after > 0 && peer->n_bytes >= peer->end_after) {
        peer->n_bytes = 0;
        peer->end_after = peer->n_ends == 1 ? 0 : peer->end_after;
        peer->n_ends -= peer->n_ends > 0;
        client_close(peer, i);
        push_peer_unlisten(peer);
        push_peer_listen(peer);
    }
}

static void client_accept(struct push_peer *peer) {
    int fd = accept4(peer->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < PUSH_PEER_MAX_CLIENTS; i++) {
        if (peer->clients[i].fd < 0) {
            peer->clients[i].fd = fd;
            peer->clients[i].text = malloc(MAX_TEXT);
            peer->clients[i].declared = json_object();
            return;
        }
    }
    close(fd);
}

/* One turn; returns whether anything happened. */
static bool serve_once(struct push_peer *peer, int wait_ms) {
    struct pollfd fds[PUSH_PEER_MAX_CLIENTS + 1];
    for (size_t i = 0; i < PUSH_PEER_MAX_CLIENTS; i++) {
        int fd = peer->never_reads ? -1 : peer->clients[i].fd;
        fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    fds[PUSH_PEER_MAX_CLIENTS] = (struct pollfd){.fd = peer->listen_fd, .events = POLLIN};
    if (poll(fds, PUSH_PEER_MAX_CLIENTS + 1, wait_ms) <= 0) {
        return false;
    }
    for (size_t i = 0; i < PUSH_PEER_MAX_CLIENTS; i++) {
        if (fds[i].revents != 0) {
            client_read(peer, i);
        }
    }
    if (fds[PUSH_PEER_MAX_CLIENTS].revents != 0 &&
        fds[PUSH_PEER_MAX_CLIENTS].fd == peer->listen_fd) {
        client_accept(peer);
    }
    return true;
}

int push_peer_serve(struct push_peer *peer, pid_t pid) {
    int64_t end_ns = clock_monotonic_ns() + GIVE_UP_MS * CLOCK_NS_PER_MS;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_monotonic_ns() > end_ns) {
            fprintf(stderr, "push_peer: the plugin does not end\n");
            abort();
        }
        serve_once(peer, 5);
    }
    while (serve_once(peer, 0)) {
    }
    return status;
}

double push_peer_sum(const struct push_peer *peer, const char *series) {
    json_t *sum = json_object_get(peer->sums, series);
    return sum == NULL ? -1 : json_number_value(sum);
}

json_t *push_peer_find(const struct push_peer *peer, const char *key, const char *value) {
    for (size_t i = 0; i < json_array_size(peer->lines); i++) {
        json_t *line = json_array_get(peer->lines, i);
        const char *text = json_string_value(json_object_get(line, key));
        if (text != NULL && strcmp(text, value) == 0) {
            return line;
        }
    }
    return NULL;
}
