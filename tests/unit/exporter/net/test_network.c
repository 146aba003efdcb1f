#include "exporter/net/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static struct in6_addr address_of(const char *text) {
    struct network network;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, network_parse(text, &network, NULL), text);
    TEST_ASSERT_EQUAL_UINT(128, network.n_bits);
    return network.address;
}

static void test_contains(void) {
    static const struct {
        const char *network;
        const char *address;
        bool expected;
    } rows[] = {
        {"10.0.0.0/8", "10.255.1.2", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.9.9.9/8", "10.0.0.1", true},
        {"172.17.0.0/16", "172.17.3.4", true},
        {"172.17.0.0/16", "172.18.0.0", false},
        {"192.168.1.128/25", "192.168.1.255", true},
        {"192.168.1.128/25", "192.168.1.127", false},
        {"192.168.1.5", "192.168.1.5", true},
        {"192.168.1.5", "192.168.1.4", false},
        {"192.168.1.5/31", "192.168.1.4", true},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "8.8.8.8", true},
        {"::/0", "2001:db8::1", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"::ffff:10.0.0.0/104", "10.1.1.1", true},
        {"fe80::1", "fe80::1", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct network network;
        struct in6_addr address = address_of(rows[i].address);
        TEST_ASSERT_EQUAL_INT(0, network_parse(rows[i].network, &network, NULL));
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, network_contains(&network, &address),
                                  rows[i].network);
    }
}

static void test_bad(void) {
    static const char *const rows[] = {
        "",
        "/8",
        "10.0.0/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/x",
        "10.0.0.0/-1",
        "::1/129",
        "10.0.0.0/8/8",
        "::g",
        "localhost",
        "10.0.0.0 /8",
        "[::1]/128",
        "10.0.0.0/000008",
        "1.2.3.4.5",
        "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, network_check(rows[i], &err), rows[i]);
        TEST_ASSERT_NOT_EQUAL_CHAR('\0', err.text[0]);
    }
}

static void test_one_address(void) {
    static const struct {
        const char *text;
        bool expected;
    } rows[] = {
        {"172.17.0.1", true},  {"172.17.0.1/32", true},   {"172.17.0.1/31", false},
        {"2001:db8::1", true}, {"2001:db8::1/128", true}, {"2001:db8::1/127", false},
        {"0.0.0.0/0", false},  {"::ffff:10.0.0.1", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct network network;
        TEST_ASSERT_EQUAL_INT(0, network_parse(rows[i].text, &network, NULL));
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, network_is_address(&network), rows[i].text);
    }
}

static void test_loopback(void) {
    static const struct {
        const char *address;
        bool expected;
    } rows[] = {
        {"127.0.0.1", true}, {"127.9.9.9", true}, {"::1", true},          {"128.0.0.1", false},
        {"::", false},       {"0.0.0.0", false},  {"::127.0.0.1", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct in6_addr address = address_of(rows[i].address);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, network_is_loopback(&address), rows[i].address);
    }
}
