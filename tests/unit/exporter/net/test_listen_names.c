#include "exporter/net/listen_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

static struct listen_names *names;
static struct error err;

void setUp(void) {
    err.text[0] = '\0';
    names = listen_names_create();
}

void tearDown(void) {
    listen_names_destroy(names);
}

static void test_hosts(void) {
    static const struct {
        const char *address;
        const char *host; /* NULL: there is none */
        int port;
    } rows[] = {
        {"127.0.0.1:9100", "127.0.0.1", 9100},
        {"[::1]:80", "::1", 80},
        {"127.0.0.2:0", "127.0.0.2", 0},
        {"unix:/run/x", NULL, 0},
        {"nonsense", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        listen_names_add_host(names, rows[i].address);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct addrinfo *infos = NULL;
        int r = listen_names_host(names, rows[i].address, &infos, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].host != NULL ? 0 : -EADDRNOTAVAIL, r,
                                      rows[i].address);
        if (rows[i].host == NULL) {
            TEST_ASSERT_NOT_NULL(strstr(err.text, rows[i].address));
            continue;
        }
        char host[64];
        char port[8];
        TEST_ASSERT_EQUAL_INT(0, getnameinfo(infos->ai_addr, infos->ai_addrlen, host, sizeof(host),
                                             port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV));
        TEST_ASSERT_EQUAL_STRING(rows[i].host, host);
        TEST_ASSERT_EQUAL_INT(rows[i].port, atoi(port));
    }
}

static void test_an_unknown_host_fails_where_it_is_needed(void) {
    /* Longer than a part of a name can be, so that no name server is asked. */
    static const char address[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80";
    const struct addrinfo *infos = NULL;
    listen_names_add_host(names, address);
    TEST_ASSERT_EQUAL_INT(-EADDRNOTAVAIL, listen_names_host(names, address, &infos, &err));
    TEST_ASSERT_EQUAL_STRING_LEN("listen on aaa", err.text, 13);
    TEST_ASSERT_NULL(infos);
}

static void test_nothing_is_asked_for_twice(void) {
    const struct addrinfo *first = NULL;
    const struct addrinfo *second = NULL;
    listen_names_add_host(names, "127.0.0.1:1");
    listen_names_host(names, "127.0.0.1:1", &first, &err);
    listen_names_add_host(names, "127.0.0.1:1");
    listen_names_host(names, "127.0.0.1:1", &second, &err);
    TEST_ASSERT_NOT_NULL(first);
    TEST_ASSERT_EQUAL_PTR(first, second);
}

static void test_groups(void) {
    gid_t gid = 12345;
    listen_names_add_group(names, "");
    listen_names_add_group(names, "no such group");
    TEST_ASSERT_EQUAL_INT(-ENOENT, listen_names_group(names, "", &gid));
    TEST_ASSERT_EQUAL_INT(-ENOENT, listen_names_group(names, "no such group", &gid));
    TEST_ASSERT_EQUAL_INT(-ENOENT, listen_names_group(names, "root", &gid));
    TEST_ASSERT_EQUAL_INT(12345, gid);
    listen_names_add_group(names, "root");
    TEST_ASSERT_EQUAL_INT(0, listen_names_group(names, "root", &gid));
    TEST_ASSERT_EQUAL_INT(0, gid);
}
