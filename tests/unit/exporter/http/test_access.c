#include "exporter/http/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "exporter/net/network.h"

static const char *const networks[] = {"172.17.0.0/16", "172.17.0.9", "2001:db8::/32", NULL};
static const char *const users[] = {"pusher", NULL};
static const char *const names[] = {"node7.lan", NULL};
static const char *const none[] = {NULL};

static int judge(const char *address, struct http_access_peer peer, bool listed,
                 struct error *err) {
    struct network network;
    peer.is_unix = address == NULL;
    if (address != NULL) {
        TEST_ASSERT_EQUAL_INT(0, network_parse(address, &network, NULL));
        peer.address = network.address;
    }
    peer.is_browser |= peer.origin != NULL;
    struct http_access_rules rules = {
        .allow_local = true,
        .networks = listed ? networks : none,
        .users = listed ? users : none,
        .names = listed ? names : none,
        .hostname = "node7",
    };
    return http_access_judge(&peer, &rules, err);
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
        /* A gateway forwards for strangers: its network does not let it in. */
        {"172.17.0.1", {.is_gateway = true}, true, -EPERM},
        {"2001:db8::1", {.is_gateway = true}, true, -EPERM},
        {"172.17.0.9", {.is_gateway = true}, true, 0},
        {"172.17.0.1", {.is_gateway = true, .user = "pusher"}, true, 0},
        {"172.17.0.1", {.is_gateway = true, .user = "reader"}, true, -EPERM},
        /* Behind a proxy on this machine everybody looks like this machine. */
        {"127.0.0.1", {.forwarded = true}, true, -EPERM},
        {NULL, {.forwarded = true}, true, -EPERM},
        {"127.0.0.1", {.forwarded = true, .user = "pusher"}, true, 0},
        /* And behind one in a network like this network. */
        {"172.17.0.2", {.forwarded = true}, true, -EPERM},
        {"172.17.0.9", {.forwarded = true}, true, 0},
        {"172.17.0.2", {.forwarded = true, .user = "pusher"}, true, 0},
        /* So does a browser on it that shows somebody's page. */
        {"127.0.0.1", {.origin = "http://evil.example", .host = "localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "null", .host = "localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost:9090"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost:9090", .host = "localhost:9090"}, true, 0},
        {"127.0.0.1", {.origin = "http://127.0.0.1:9090", .host = "127.0.0.1:9090"}, true, 0},
        {"::1", {.origin = "http://[::1]:9090", .host = "[::1]:9090"}, true, 0},
        {"::1", {.origin = "http://LocalHost", .host = "LocalHost"}, true, 0},
        {"::1", {.origin = "http://Node7:9090", .host = "Node7:9090"}, true, 0},
        /* Or one whose name leads to this machine by now. */
        {"127.0.0.1", {.origin = "http://evil.example", .host = "evil.example"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://localhost.evil", .host = "localhost.evil"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://127.0.0.1.evil", .host = "127.0.0.1.evil"}, true, -EPERM},
        {"127.0.0.1", {.origin = "http://me", .host = "me", .user = "pusher"}, true, 0},
        {"172.17.0.2", {.origin = "http://evil.example", .host = "evil.example"}, true, -EPERM},
        {"172.17.0.2", {.origin = "http://node7.evil", .host = "node7.evil"}, true, -EPERM},
        {"172.17.0.2", {.origin = "http://", .host = ""}, true, -EPERM},
        {"172.17.0.2", {.is_browser = true, .host = "evil.example"}, true, -EPERM},
        {"172.17.0.2", {.is_browser = true}, true, -EPERM},
        {"172.17.0.2", {.host = "evil.example"}, true, 0}, /* no browser */
        {"172.17.0.2", {.origin = "http://172.17.0.1", .host = "172.17.0.1"}, true, 0},
        {"172.17.0.2", {.origin = "http://node7", .host = "node7"}, true, 0},
        {"172.17.0.2", {.origin = "https://node7.lan:9", .host = "node7.lan:9"}, true, 0},
        {"127.0.0.1", {.origin = "https://node7.lan:9", .host = "node7.lan:9"}, false, -EPERM},
        /* A socket's permissions and a password keep strangers' pages out. */
        {NULL, {.origin = "http://me", .host = "me"}, true, 0},
        {"172.17.0.2", {.origin = "http://me", .host = "me", .user = "reader"}, true, 0},
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

static void test_this_machine_may_be_left_out(void) {
    struct http_access_rules rules = {
        .networks = networks, .users = users, .names = none, .hostname = ""};
    struct http_access_peer peer = {.is_unix = true};
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, http_access_judge(&peer, &rules, &err));
    peer = (struct http_access_peer){.address = IN6ADDR_LOOPBACK_INIT};
    TEST_ASSERT_EQUAL_INT(-EPERM, http_access_judge(&peer, &rules, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=::1"));
    peer.user = "pusher";
    TEST_ASSERT_EQUAL_INT(0, http_access_judge(&peer, &rules, &err));
}

static void test_says_how_to_allow_it(void) {
    struct error err;
    judge("172.17.0.2", (struct http_access_peer){0}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=172.17.0.2"));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.user=NAME"));
    judge("172.17.0.1", (struct http_access_peer){.is_gateway = true}, true, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "it is a gateway"));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=172.17.0.1 to trust"));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.user=NAME"));
    judge("2001:db8::7", (struct http_access_peer){0}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=2001:db8::7"));
    judge("::1", (struct http_access_peer){.origin = "http://a.b:1", .host = "a.b:1"}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--web.hostname=a.b"));
    judge("172.17.0.2", (struct http_access_peer){.forwarded = true}, true, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=172.17.0.2 to trust it"));
    judge("127.0.0.1", (struct http_access_peer){.forwarded = true}, false, &err);
    TEST_ASSERT_NOT_NULL(strstr(err.text, "--push.allow=127.0.0.1"));
}

/* ---- gateways ---- */

#define HEAD                                                                                       \
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT   \n"
#define ON_LINK "eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0   \n"
#define NONE "00000000000000000000000000000000"
#define HOST "20010db8000000000000000000000007"
#define ROUTER "fe8000000000000000000000000000ab"
#define REST "00000400 00000001 00000000 00000003     eth0\n"

static struct in6_addr address_of(const char *text) {
    struct network network;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, network_parse(text, &network, NULL), text);
    return network.address;
}

/* The kernel writes an IPv4 address as a number in the machine's byte order. */
static const char *table_v4(const char *destination, const char *gateway) {
    static char text[1024];
    snprintf(text, sizeof(text), HEAD ON_LINK "eth1\t%08X\t%08X\t0003\t0\t0\t0\t0\t0\t0\t0   \n",
             (unsigned)inet_addr(destination), (unsigned)inet_addr(gateway));
    return text;
}

static void test_ipv4(void) {
    static const struct {
        const char *destination;
        const char *gateway;
        const char *address;
        bool expected;
    } rows[] = {
        {"0.0.0.0", "172.17.0.1", "172.17.0.1", true},
        {"0.0.0.0", "172.17.0.1", "172.17.0.2", false},
        {"0.0.0.0", "172.17.0.1", "1.0.17.172", false},
        {"0.0.0.0", "172.17.0.171", "172.17.0.171", true},
        {"10.0.0.0", "172.17.0.1", "172.17.0.1", true},    /* of any route */
        {"172.17.0.9", "172.17.0.1", "172.17.0.9", false}, /* a destination */
        {"0.0.0.0", "172.17.0.1", "::172.17.0.1", false},  /* not the same address */
        {"0.0.0.0", "172.17.0.1", "::ffff:172.17.0.1", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct in6_addr address = address_of(rows[i].address);
        const char *text = table_v4(rows[i].destination, rows[i].gateway);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, http_access_names_gateway(text, &address),
                                  rows[i].address);
    }
}

static void test_ipv6(void) {
    static const struct {
        const char *text;
        const char *address;
        bool expected;
    } rows[] = {
        {NONE " 00 " NONE " 00 " ROUTER " " REST, "fe80::ab", true},
        {HOST " 80 " NONE " 00 " NONE " " REST NONE " 00 " NONE " 00 " ROUTER " " REST, "fe80::ab",
         true},
        {NONE " 00 " NONE " 00 " ROUTER " " REST, "fe80::ac", false},
        {HOST " 80 " NONE " 00 " ROUTER " " REST, "2001:db8::7", false},
        {NONE " 00 " HOST " 80 " ROUTER " " REST, "2001:db8::7", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct in6_addr address = address_of(rows[i].address);
        TEST_ASSERT_EQUAL_MESSAGE(
            rows[i].expected, http_access_names_gateway(rows[i].text, &address), rows[i].address);
    }
}

static void test_lines_cut_short(void) {
    static const char *const rows[] = {
        "", "\n", "\n\n", "eth0", "eth0\t00000000", "eth0 0 \n", HEAD, "eth0\t00000000\n010011AC"};
    struct in6_addr v4 = address_of("172.17.0.1");
    struct in6_addr v6 = address_of("fe80::ab");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_FALSE_MESSAGE(http_access_names_gateway(rows[i], &v4), rows[i]);
        TEST_ASSERT_FALSE_MESSAGE(http_access_names_gateway(rows[i], &v6), rows[i]);
    }
}

static void test_of_this_machine(void) {
    struct in6_addr address = address_of("127.0.0.1");
    struct error err = {0};
    bool is_gateway = true;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, http_access_is_gateway(&address, &is_gateway, &err), err.text);
    TEST_ASSERT_FALSE(is_gateway);
}
