#include "exporter/http/gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

enum { MAX = 8 };

static struct http_gate gate;
static int far_ends[64];
static size_t n_far_ends;

void setUp(void) {
    gate = (struct http_gate){.max_clients = MAX, .header_timeout_ns = CLOCK_NS_PER_SEC};
    n_far_ends = 0;
}

void tearDown(void) {
    while (gate.oldest != NULL) {
        close(gate.oldest->fd);
        http_gate_leave(&gate, gate.oldest);
    }
    for (size_t i = 0; i < n_far_ends; i++) {
        close(far_ends[i]);
    }
    TEST_ASSERT_EQUAL_size_t(0, gate.n_clients);
    TEST_ASSERT_NULL(gate.youngest);
}

static struct http_client *enter(enum http_client_class class) {
    int pair[2];
    TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    far_ends[n_far_ends++] = pair[1];
    struct http_client *client = http_gate_enter(&gate, pair[0]);
    TEST_ASSERT_NOT_NULL(client);
    client->class = class;
    return client;
}

static bool is_shut_down(const struct http_client *client) {
    char byte;
    return recv(client->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void check_gone(const struct http_client *client) {
    TEST_ASSERT_TRUE(client->leaving);
    TEST_ASSERT_TRUE(is_shut_down(client));
}

static void test_nobody_goes_while_there_is_room(void) {
    for (int i = 0; i < MAX; i++) {
        enter(HTTP_CLIENT_NEW);
    }
    for (const struct http_client *c = gate.oldest; c != NULL; c = c->younger) {
        TEST_ASSERT_FALSE(c->leaving);
        TEST_ASSERT_FALSE(is_shut_down(c));
    }
    TEST_ASSERT_EQUAL_UINT64(0, gate.n_evicted);
    TEST_ASSERT_EQUAL_size_t(MAX, gate.n_clients);
}

static void test_clients_are_found_by_their_descriptor(void) {
    struct http_client *first = enter(HTTP_CLIENT_NEW);
    struct http_client *second = enter(HTTP_CLIENT_NEW);
    int fd = first->fd;
    TEST_ASSERT_EQUAL_PTR(first, http_gate_find(&gate, fd));
    TEST_ASSERT_EQUAL_PTR(second, http_gate_find(&gate, second->fd));
    http_gate_leave(&gate, first);
    TEST_ASSERT_NULL(http_gate_find(&gate, fd));
    close(fd);
}

static void test_the_oldest_newcomer_goes_first(void) {
    struct http_client *busy = enter(HTTP_CLIENT_BUSY);
    struct http_client *idle = enter(HTTP_CLIENT_IDLE);
    struct http_client *clients[MAX - 2];
    for (int i = 0; i < MAX - 2; i++) {
        clients[i] = enter(HTTP_CLIENT_NEW);
    }
    enter(HTTP_CLIENT_NEW);
    check_gone(clients[0]);
    enter(HTTP_CLIENT_NEW);
    check_gone(clients[1]);
    TEST_ASSERT_FALSE(busy->leaving || idle->leaving || clients[2]->leaving);
    TEST_ASSERT_EQUAL_UINT64(2, gate.n_evicted);
}

static void test_then_the_idle_one_that_waited_longest(void) {
    struct http_client *busy = enter(HTTP_CLIENT_BUSY);
    struct http_client *first = enter(HTTP_CLIENT_BUSY);
    struct http_client *second = enter(HTTP_CLIENT_BUSY);
    for (int i = 3; i < MAX; i++) {
        enter(HTTP_CLIENT_HELD);
    }
    http_gate_answered(&gate, second);
    http_gate_answered(&gate, first);
    enter(HTTP_CLIENT_HELD);
    check_gone(second);
    enter(HTTP_CLIENT_HELD);
    check_gone(first);
    TEST_ASSERT_FALSE(busy->leaving);
    enter(HTTP_CLIENT_HELD);
    check_gone(busy);
}

static void test_a_few_newcomers_get_to_ask(void) {
    struct http_client *busy[MAX - 1];
    for (int i = 0; i < MAX - 1; i++) {
        busy[i] = enter(HTTP_CLIENT_BUSY);
    }
    struct http_client *scrape = enter(HTTP_CLIENT_NEW);
    struct http_client *other = enter(HTTP_CLIENT_NEW);
    check_gone(busy[0]);
    TEST_ASSERT_FALSE(scrape->leaving);
    enter(HTTP_CLIENT_NEW); /* a quarter of eight is two */
    check_gone(scrape);
    TEST_ASSERT_FALSE(busy[1]->leaving || other->leaving);
}

static void test_the_held_stay_whatever_comes(void) {
    for (int i = 0; i < MAX; i++) {
        enter(HTTP_CLIENT_HELD);
    }
    enter(HTTP_CLIENT_NEW);
    TEST_ASSERT_EQUAL_UINT64(0, gate.n_evicted);
    for (const struct http_client *c = gate.oldest; c != NULL; c = c->younger) {
        TEST_ASSERT_FALSE(c->leaving);
    }
}

static int connect_from(const char *address, int listener, int *ret_far_end) {
    struct sockaddr_in name;
    socklen_t len = sizeof(name);
    struct sockaddr_in from = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &from.sin_addr);
    *ret_far_end = socket(AF_INET, SOCK_STREAM, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(*ret_far_end, (struct sockaddr *)&from, sizeof(from)));
    TEST_ASSERT_EQUAL_INT(0, getsockname(listener, (struct sockaddr *)&name, &len));
    TEST_ASSERT_EQUAL_INT(0, connect(*ret_far_end, (struct sockaddr *)&name, len));
    return accept(listener, NULL, NULL);
}

static void test_limit_per_address(void) {
    int listener CLEANUP_CLOSE = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    TEST_ASSERT_EQUAL_INT(0, bind(listener, (struct sockaddr *)&any, sizeof(any)));
    TEST_ASSERT_EQUAL_INT(0, listen(listener, 10));
    gate.max_per_address = 2;
    struct http_client *first =
        http_gate_enter(&gate, connect_from("127.0.0.2", listener, &far_ends[n_far_ends++]));
    TEST_ASSERT_NOT_NULL(first);
    int fd = connect_from("127.0.0.2", listener, &far_ends[n_far_ends++]);
    TEST_ASSERT_NOT_NULL(http_gate_enter(&gate, fd));
    fd = connect_from("127.0.0.3", listener, &far_ends[n_far_ends++]);
    TEST_ASSERT_NOT_NULL(http_gate_enter(&gate, fd));
    fd = connect_from("127.0.0.2", listener, &far_ends[n_far_ends++]);
    TEST_ASSERT_NULL(http_gate_enter(&gate, fd));
    TEST_ASSERT_EQUAL_UINT64(1, gate.n_evicted);
    first->leaving = true; /* as good as gone */
    TEST_ASSERT_NOT_NULL(http_gate_enter(&gate, fd));
    enter(HTTP_CLIENT_NEW); /* Unix sockets have no address to count by */
    enter(HTTP_CLIENT_NEW);
    enter(HTTP_CLIENT_NEW);
}

static void test_sweep_sends_dawdlers_away(void) {
    int64_t now_ns = clock_monotonic_ns();
    TEST_ASSERT_EQUAL_INT64(INT64_MAX, http_gate_sweep(&gate, now_ns));
    struct http_client *slow = enter(HTTP_CLIENT_NEW);
    struct http_client *slower = enter(HTTP_CLIENT_IDLE);
    struct http_client *quiet = enter(HTTP_CLIENT_IDLE);
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(now_ns + CLOCK_NS_PER_SEC, slow->due_ns);
    slow->due_ns = now_ns + CLOCK_NS_PER_SEC;
    slower->due_ns = now_ns + CLOCK_NS_PER_SEC / 2;
    quiet->due_ns = INT64_MAX;
    TEST_ASSERT_EQUAL_INT64(now_ns + CLOCK_NS_PER_SEC / 2, http_gate_sweep(&gate, now_ns));
    TEST_ASSERT_EQUAL_INT64(now_ns + CLOCK_NS_PER_SEC,
                            http_gate_sweep(&gate, now_ns + CLOCK_NS_PER_SEC / 2));
    check_gone(slower);
    TEST_ASSERT_FALSE(slow->leaving);
    TEST_ASSERT_EQUAL_INT64(INT64_MAX, http_gate_sweep(&gate, now_ns + CLOCK_NS_PER_SEC));
    check_gone(slow);
    TEST_ASSERT_FALSE(quiet->leaving);
    TEST_ASSERT_EQUAL_UINT64(2, gate.n_evicted);
}

static void test_sweep_sees_who_has_left(void) {
    int64_t now_ns = clock_monotonic_ns();
    struct http_client *gone = enter(HTTP_CLIENT_BUSY);
    struct http_client *here = enter(HTTP_CLIENT_BUSY);
    struct http_client *unread = enter(HTTP_CLIENT_BUSY);
    struct http_client *unseen = enter(HTTP_CLIENT_BUSY);
    for (struct http_client *c = gate.oldest; c != NULL; c = c->younger) {
        c->due_ns = INT64_MAX;
        c->look_ns = c != unseen ? now_ns + 1 : INT64_MAX;
    }
    TEST_ASSERT_EQUAL_INT64(4, write(far_ends[2], "more", 4));
    shutdown(far_ends[0], SHUT_WR);
    shutdown(far_ends[2], SHUT_WR);
    shutdown(far_ends[3], SHUT_WR);
    TEST_ASSERT_EQUAL_INT64(now_ns + 1, http_gate_sweep(&gate, now_ns));
    TEST_ASSERT_FALSE(gone->leaving);
    TEST_ASSERT_EQUAL_INT64(INT64_MAX, http_gate_sweep(&gate, now_ns + 1));
    check_gone(gone);
    TEST_ASSERT_FALSE(here->leaving || unread->leaving || unseen->leaving);
    TEST_ASSERT_EQUAL_UINT64(0, gate.n_evicted);
}
