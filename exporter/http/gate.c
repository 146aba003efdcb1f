#include "exporter/http/gate.h"

#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/net/network.h"

static struct in6_addr peer_address(int fd, bool *ret_is_unix) {
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);
    struct in6_addr address = {0};
    if (getpeername(fd, (struct sockaddr *)&name, &len) < 0) {
        return address;
    }
    *ret_is_unix = name.ss_family == AF_UNIX;
    if (name.ss_family == AF_INET6) {
        address = ((const struct sockaddr_in6 *)&name)->sin6_addr;
    } else if (name.ss_family == AF_INET) {
        address.s6_addr[10] = 0xff;
        address.s6_addr[11] = 0xff;
        memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)&name)->sin_addr, 4);
    }
    return address;
}

static bool is_at_limit(const struct http_gate *gate, const struct in6_addr *address) {
    static const struct in6_addr none;
    if (gate->max_per_address == 0 || memcmp(address, &none, sizeof(none)) == 0) {
        return false;
    }
    size_t n = 0;
    for (const struct http_client *c = gate->oldest; c != NULL; c = c->younger) {
        n += !c->leaving && network_is_same_peer(&c->address, address);
    }
    return n >= gate->max_per_address;
}

/* libmicrohttpd sees the end of the stream and cleans up. */
static void hang_up(struct http_client *client) {
    client->leaving = true;
    shutdown(client->fd, SHUT_RDWR);
}

void http_gate_evict(struct http_gate *gate, struct http_client *client) {
    gate->n_evicted++;
    hang_up(client);
}

/* libmicrohttpd 0.9.75 accepts no response while a body arrives, and sends none itself. */
static void send_timeout(const struct http_client *client) {
    static const char reply[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                                "Content-Type: text/plain; charset=utf-8\r\n\r\n"
                                "the body of the request arrives too slowly\n";
    if (client->tls != NULL) {
        gnutls_record_send(client->tls, reply, strlen(reply));
    } else {
        send(client->fd, reply, strlen(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* After a short read libmicrohttpd does not read again before the next event, but the last bytes of
 * a client and the end of its stream may be one event. */
static bool has_left(const struct http_client *client) {
    char byte;
    return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void make_room(struct http_gate *gate) {
    size_t n_staying = 0;
    size_t n_new = 0;
    for (const struct http_client *c = gate->oldest; c != NULL; c = c->younger) {
        n_staying += !c->leaving;
        n_new += !c->leaving && c->class == HTTP_CLIENT_NEW;
    }
    if (n_staying < gate->max_clients) {
        return;
    }
    bool spare_new = n_new < gate->max_clients / 4;
    struct http_client *victim = NULL;
    int victim_worth = HTTP_CLIENT_HELD;
    for (struct http_client *c = gate->oldest; c != NULL; c = c->younger) {
        int worth = spare_new && c->class == HTTP_CLIENT_NEW ? HTTP_CLIENT_BUSY : (int)c->class;
        if (!c->leaving && worth < victim_worth) {
            victim = c;
            victim_worth = worth;
        }
    }
    if (victim != NULL) {
        http_gate_evict(gate, victim);
    }
}

static void append(struct http_gate *gate, struct http_client *client) {
    client->older = gate->youngest;
    client->younger = NULL;
    *(gate->youngest != NULL ? &gate->youngest->younger : &gate->oldest) = client;
    gate->youngest = client;
}

static void take_out(struct http_gate *gate, const struct http_client *client) {
    *(client->older != NULL ? &client->older->younger : &gate->oldest) = client->younger;
    *(client->younger != NULL ? &client->younger->older : &gate->youngest) = client->older;
}

struct http_client *http_gate_enter(struct http_gate *gate, int fd) {
    bool is_unix = false;
    struct in6_addr address = peer_address(fd, &is_unix);
    if (is_at_limit(gate, &address)) {
        gate->n_evicted++;
        return NULL;
    }
    make_room(gate);
    struct http_client *client = mem_alloc(sizeof(*client));
    *client = (struct http_client){
        .fd = fd,
        .class = HTTP_CLIENT_NEW,
        .due_ns = clock_monotonic_ns() + gate->header_timeout_ns,
        .look_ns = INT64_MAX,
        .address = address,
        .is_unix = is_unix,
    };
    append(gate, client);
    gate->n_clients++;
    return client;
}

struct http_client *http_gate_find(const struct http_gate *gate, int fd) {
    struct http_client *client = gate->youngest;
    while (client != NULL && client->fd != fd) {
        client = client->older;
    }
    return client;
}

void http_gate_answered(struct http_gate *gate, struct http_client *client) {
    client->class = HTTP_CLIENT_IDLE;
    take_out(gate, client);
    append(gate, client);
}

void http_gate_leave(struct http_gate *gate, struct http_client *client) {
    take_out(gate, client);
    gate->n_clients--;
    free(client);
}

int64_t http_gate_sweep(struct http_gate *gate, int64_t now_ns) {
    int64_t next_ns = INT64_MAX;
    for (struct http_client *c = gate->oldest; c != NULL; c = c->younger) {
        if (c->leaving) {
            continue;
        }
        bool look = c->look_ns <= now_ns;
        if (c->due_ns <= now_ns) {
            if (c->sends_body) {
                send_timeout(c);
            }
            http_gate_evict(gate, c);
            continue;
        }
        if (look && has_left(c)) {
            hang_up(c);
            continue;
        }
        c->look_ns = look ? INT64_MAX : c->look_ns;
        next_ns = c->due_ns < next_ns ? c->due_ns : next_ns;
        next_ns = c->look_ns < next_ns ? c->look_ns : next_ns;
    }
    return next_ns;
}
