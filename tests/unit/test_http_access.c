#include "exporter/http_access.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/network.h"

static const char *const networks[] = {"172.17.0.0/16", "2001:db8::/32", NULL};
static const char *const users[] = {"pusher", NULL};
static const char *const none[] = {NULL};

void setUp(void) {
}

void tearDown(void) {
}

static int judge(const char *address, struct http_access_peer peer, bool listed,
                 struct error *err) {
    struct network network;
    peer.is_unix = address == NULL;
    if (address != NULL) {
        TEST_ASSERT_EQUAL_INT(0, network_parse(address, &network, NULL));
        peer.address = network.address;
    }
    return http_access_judge(&peer, listed ? networks : none, listed ? users : none, err);
}

static void test_rules(void) {
    static const struct {
        const char *address; /* NULL: a Unix socket */
        struct http_access_peer peer;
        bool listed;
        int expected;
    } rows[] = {
        {NULL, {0}, false, 0},
        {"127.0.0.1", {0}, false, 0},
        {"::1", {0}, false, 0},
        {"172.17.0.2", {0}, false, -EPERM},
        {"172.17.0.2", {0}, true, 0},
        {"172.18.0.2", {0}, true, -EPERM},
        {"2001:db8::7", {0}, true, 0},
        {"8.8.8.8", {.user = "pusher"}, true, 0},
        {"8.8.8.8", {.user = "reader"}, true, -EPERM},
        {"8.8.8.8", {.user = "pusher"}, false, -EPERM},
        /* Behind a proxy on this machine everybody looks like this machine. */
        {"127.0.0.1", {.forwarded = true}, true, -EPERM},
        {NULL, {.forwarded = true}, true, -EPERM},
        {"127.0.0.1", {.forwarded = true, .user = "pusher"}, true, 0},
        /* So does a browser on it that shows somebody's page. */
        {"127.0.0.1", {.origin = "http://evil.example", .host = "localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "null", .host = "localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost:9090", .host = "localhost:9090"}, true, 0},
        {"127.0.0.1", {.origin = "http://127.0.0.1:9090", .host = "127.0.0.1:9090"}, true, 0},
        {"::1", {.origin = "http://[::1]:9090", .host = "[::1]:9090"}, true, 0},
        {NULL, {.origin = "http://LocalHost", .host = "LocalHost"}, true, 0},
        /* Or one whose name leads to this machine by now. */
        {"127.0.0.1", {.origin = "http://evil.example", .host = "evil.example"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost.evil", .host = "localhost.evil"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://127.0.0.1.evil", .host = "127.0.0.1.evil"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://me", .host = "me", .user = "pusher"}, true, 0},
        {"172.17.0.2", {.origin = "http://me", .host = "me"}, true, 0},
        {"8.8.8.8", {.origin = "http://evil.example", .host = "x", .user = "pusher"}, true, -EPERM},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = {0};
        int r = judge(rows[i].address, rows[i].peer, rows[i].listed, &err);
        char message[32];
        snprintf(message, sizeof(message), "row %zu", i);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].expected, r, message);
        TEST_ASSERT_EQUAL(r != 0, err.text[0] != '\0');
    }
}

static void test_says_how_to_allow_it(void) {
    struct error err;
    judge("172.17.0.2", (struct http_access_peer){0}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=172.17.0.2"));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.user=NAME"));
    judge("2001:db8::7", (struct http_access_peer){0}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=2001:db8::7"));
    judge("127.0.0.1", (struct http_access_peer){.forwarded = true}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=127.0.0.1"));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_rules);
    RUN_TEST(test_says_how_to_allow_it);
    return UNITY_END();
}
