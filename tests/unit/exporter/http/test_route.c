#include "exporter/http/route.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/net/network.h"

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
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, route_names_gateway(text, &address),
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
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].expected, route_names_gateway(rows[i].text, &address),
                                  rows[i].address);
    }
}

static void test_lines_cut_short(void) {
    static const char *const rows[] = {
        "", "\n", "\n\n", "eth0", "eth0\t00000000", "eth0 0 \n", HEAD, "eth0\t00000000\n010011AC"};
    struct in6_addr v4 = address_of("172.17.0.1");
    struct in6_addr v6 = address_of("fe80::ab");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_FALSE_MESSAGE(route_names_gateway(rows[i], &v4), rows[i]);
        TEST_ASSERT_FALSE_MESSAGE(route_names_gateway(rows[i], &v6), rows[i]);
    }
}

static void test_of_this_machine(void) {
    struct in6_addr address = address_of("127.0.0.1");
    struct error err = {0};
    bool is_gateway = true;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, route_is_gateway(&address, &is_gateway, &err), err.text);
    TEST_ASSERT_FALSE(is_gateway);
}
