#include "exporter/net/address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_good(void) {
    static const struct {
        const char *text;
        struct http_address want;
    } rows[] = {
        {":9090", {.port = "9090"}},
        {":0", {.port = "0"}},
        {":65535", {.port = "65535"}},
        {"127.0.0.1:9090", {.host = "127.0.0.1", .port = "9090"}},
        {"localhost:80", {.host = "localhost", .port = "80"}},
        {"[::1]:9090", {.host = "::1", .port = "9090"}},
        {"[::]:9090", {.host = "::", .port = "9090"}},
        {"[fe80::1%eth0]:1", {.host = "fe80::1%eth0", .port = "1"}},
        {"[]:9090", {.port = "9090"}},
        {"unix:/run/waap/http.sock", {.is_unix = true, .path = "/run/waap/http.sock"}},
        {"unix:/a:b", {.is_unix = true, .path = "/a:b"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_address address;
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, http_address_parse(rows[i].text, &address, &err),
                                      rows[i].text);
        TEST_ASSERT_EQUAL_STRING(rows[i].want.host, address.host);
        TEST_ASSERT_EQUAL_STRING(rows[i].want.port, address.port);
        TEST_ASSERT_EQUAL_STRING(rows[i].want.path, address.path);
        TEST_ASSERT_EQUAL(rows[i].want.is_unix, address.is_unix);
        TEST_ASSERT_EQUAL_INT(0, http_address_check(rows[i].text, &err));
    }
}

static void test_bad(void) {
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "expected host:port"},
        {"9090", "expected host:port"},
        {"localhost", "expected host:port"},
        {"[::1]", "expected host:port"},
        {"[::1:9090", "expected host:port"},
        {"[::1]9090", "expected host:port"},
        {"::1:9090", "needs brackets"},
        {"1:2:3", "needs brackets"},
        {":", "expected a port"},
        {"host:", "expected a port"},
        {":http", "expected a port"},
        {":65536", "expected a port"},
        {":99999999999999999999", "expected a port"},
        {":-1", "expected a port"},
        {":+1", "expected a port"},
        {": 1", "expected a port"},
        {":1 ", "expected a port"},
        {":1x", "expected a port"},
        {"unix:", "absolute path"},
        {"unix:run/waap", "absolute path"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_address address;
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, http_address_parse(rows[i].text, &address, &err),
                                      rows[i].text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, rows[i].words), err.text);
    }
}

static void test_lengths(void) {
    char text[512];
    struct http_address address;
    struct error err;
    snprintf(text, sizeof(text), "unix:/%0106d", 0);
    TEST_ASSERT_EQUAL_INT(0, http_address_parse(text, &address, &err));
    TEST_ASSERT_EQUAL_size_t(107, strlen(address.path));
    snprintf(text, sizeof(text), "unix:/%0107d", 0);
    TEST_ASSERT_EQUAL_INT(-EINVAL, http_address_parse(text, &address, &err));
    snprintf(text, sizeof(text), "%0255d:1", 0);
    TEST_ASSERT_EQUAL_INT(0, http_address_parse(text, &address, &err));
    snprintf(text, sizeof(text), "%0256d:1", 0);
    TEST_ASSERT_EQUAL_INT(-EINVAL, http_address_parse(text, &address, &err));
}
