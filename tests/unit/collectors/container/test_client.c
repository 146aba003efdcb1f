#include "collectors/container/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define SECOND CLOCK_NS_PER_SEC

static const char *const wanted[] = {NULL};
static char path[64];
static int listener;
static struct container_client *client;
static int64_t now_ns;
static long long asked_since; /* by the request taken last */

void setUp(void) {
    snprintf(path, sizeof(path), "/tmp/test_container_client.%d", (int)getpid());
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(listener, (struct sockaddr *)&address, sizeof(address)));
    TEST_ASSERT_EQUAL_INT(0, listen(listener, 8));
    now_ns = 1000 * SECOND;
    client = NULL;
}

void tearDown(void) {
    container_client_destroy(client);
    close(listener);
    unlink(path);
}

static void start(void) {
    client = container_client_create(path, wanted);
    container_client_step(client, now_ns);
}

/* The next connection, or -1; its request must begin with `expected`. */
static int take(const char *expected) {
    struct pollfd pending = {.fd = listener, .events = POLLIN};
    if (poll(&pending, 1, 0) != 1) {
        return -1;
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char request[512];
    ssize_t n = recv(fd, request, sizeof(request) - 1, 0);
    TEST_ASSERT_TRUE(n > 0);
    request[n] = '\0';
    TEST_ASSERT_EQUAL_STRING_LEN(expected, request, strlen(expected));
    TEST_ASSERT_NOT_NULL(strstr(request, " HTTP/1.0\r\n"));
    const char *since = strstr(request, "&since=");
    asked_since = since != NULL ? atoll(since + strlen("&since=")) : 0;
    return fd;
}

static void say(int fd, const char *text) {
    TEST_ASSERT_EQUAL_INT(strlen(text), send(fd, text, strlen(text), MSG_NOSIGNAL));
}

static const char *name_of(const char *id) {
    const struct container_info *info = container_client_find(client, id);
    return info != NULL && info->name != NULL ? info->name : "?";
}

#define OK "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"

static void test_list_and_events(void) {
    start();
    int events = take("GET /events?");
    int list = take("GET /containers/json ");
    TEST_ASSERT_TRUE(events >= 0 && list >= 0);
    say(list, "HTTP/1.0 200 OK\r\nX: y\r\n\r"); /* in pieces */
    container_client_step(client, now_ns);
    say(list, "\n[{\"Id\":\"a\",\"Names\":[\"/web\"]}");
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("?", name_of("a"));
    say(list, "]");
    close(list);
    unsigned before = container_client_generation(client);
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("web", name_of("a"));
    TEST_ASSERT_NOT_EQUAL(before, container_client_generation(client));

    say(events, OK "{\"Action\":\"start\",\"Actor\":{\"ID\":\"b\",\"Attributes\":{\"name\":");
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("?", name_of("b"));
    say(events, "\"cam\"}}}\nnonsense\n{\"Action\":\"rename\",\"Actor\":{\"ID\":\"a\","
                "\"Attributes\":{\"name\":\"www\"}}}\n");
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("cam", name_of("b"));
    TEST_ASSERT_EQUAL_STRING("www", name_of("a"));
    say(events, "{\"Action\":\"destroy\",\"Actor\":{\"ID\":\"b\"}}\n");
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("?", name_of("b"));

    /* While events are heard, nobody asks for the list again. */
    now_ns += 100 * SECOND;
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_INT(-1, take(""));
    close(events);
    container_client_step(client, now_ns);
    now_ns += 2 * SECOND;
    container_client_step(client, now_ns);
    events = take("GET /events?");
    list = take("GET /containers/json ");
    TEST_ASSERT_TRUE(events >= 0 && list >= 0);
    close(events);
    close(list);
}

/* A container may start after the list was made and before events are heard. */
static void test_events_begin_before_the_list(void) {
    long long began = time(NULL);
    start();
    int events = take("GET /events?");
    TEST_ASSERT_TRUE(asked_since > 0 && asked_since < began);
    TEST_ASSERT_TRUE(asked_since > began - 10);
    close(events);
}

/* A list that was made before a container started does not take its name away. */
static void test_events_overtake_the_list(void) {
    start();
    int events = take("GET /events?");
    int list = take("GET /containers/json ");
    say(events,
        OK "{\"Action\":\"start\",\"Actor\":{\"ID\":\"b\",\"Attributes\":{\"name\":\"cam\"}}}\n");
    container_client_step(client, now_ns);
    say(list, OK "[{\"Id\":\"a\",\"Names\":[\"/web\"]}]");
    close(list);
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_STRING("web", name_of("a"));
    TEST_ASSERT_EQUAL_STRING("cam", name_of("b"));
    close(events);
}

static void test_silence_is_given_up(void) {
    start();
    int events = take("GET /events?");
    int list = take("GET /containers/json ");
    for (int i = 0; i < 100; i++) {
        now_ns += SECOND / 20;
        container_client_step(client, now_ns);
    }
    TEST_ASSERT_EQUAL_INT(-1, take(""));
    now_ns += 10 * SECOND;
    container_client_step(client, now_ns);
    char byte;
    TEST_ASSERT_EQUAL_INT(0, recv(list, &byte, 1, 0));
    now_ns += 2 * SECOND;
    container_client_step(client, now_ns);
    int again = take("GET /containers/json ");
    TEST_ASSERT_TRUE(again >= 0);
    close(again);
    close(events);
    close(list);
}

static void test_garbage(void) {
    static const char *const answers[] = {
        "",
        "nonsense",
        "HTTP/1.0 500 oops\r\n\r\n",
        OK "{}",
        OK "[{\"Id\":",
        "HTTP/1.0 x\r\n\r\n",
        "HTTP/1.0\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        start();
        int events = take("GET /events?");
        int list = take("GET /containers/json ");
        say(list, answers[i]);
        say(events, answers[i]);
        close(list);
        close(events);
        container_client_step(client, now_ns);
        TEST_ASSERT_EQUAL_STRING("?", name_of("a"));
        container_client_destroy(TAKE(client));
    }
}

static void test_a_socket_that_appears_later(void) {
    char hidden[80];
    snprintf(hidden, sizeof(hidden), "%s.hidden", path);
    TEST_ASSERT_EQUAL_INT(0, rename(path, hidden));
    start();
    TEST_ASSERT_EQUAL_INT(0, rename(hidden, path));
    container_client_step(client, now_ns);
    TEST_ASSERT_EQUAL_INT(-1, take("")); /* not before a second has passed */
    now_ns += SECOND;
    container_client_step(client, now_ns);
    int events = take("GET /events?");
    TEST_ASSERT_TRUE(events >= 0);
    close(events);
}
