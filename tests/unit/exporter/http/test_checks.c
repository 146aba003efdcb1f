#include "exporter/http/checks.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

enum { MAX = 8, MAX_OF_ONE = 6 };

static struct http_checks checks;
static struct http_check pool[64];
static size_t n_pool;

void setUp(void) {
    checks = (struct http_checks){.max = MAX};
    n_pool = 0;
}

static struct in6_addr address_of(const char *text) {
    struct in6_addr address;
    TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, text, &address));
    return address;
}

static struct http_check *make(const char *address) {
    struct http_check *check = &pool[n_pool++];
    *check = (struct http_check){.address = address_of(address)};
    return check;
}

static struct http_check *add(const char *address) {
    struct http_check *check = make(address);
    TEST_ASSERT_NULL(http_checks_add(&checks, check));
    return check;
}

static void fail(const char *text, int64_t at_ns) {
    struct in6_addr address = address_of(text);
    http_checks_note_failure(&checks, &address, at_ns);
}

static void expect(const struct http_check *check) {
    TEST_ASSERT_EQUAL_PTR(check, http_checks_take(&checks));
}

static void test_a_few_go_in_order(void) {
    struct http_check *a = add("::1");
    struct http_check *b = add("::1");
    expect(a);
    struct http_check *c = add("::1");
    expect(b);
    expect(c);
    expect(NULL);
    TEST_ASSERT_EQUAL_size_t(0, checks.n_waiting);
}

static void test_of_many_a_newcomer_waits_for_four(void) {
    checks.max = 40;
    for (int i = 0; i < 20; i++) {
        add("::1");
    }
    const struct http_check *newcomer = add("::1");
    for (int i = 1; i < HTTP_CHECKS_TURN; i++) {
        TEST_ASSERT_NOT_EQUAL(newcomer, http_checks_take(&checks));
        add("::1");
    }
    expect(newcomer);
}

static void test_wrong_passwords_go_to_the_back(void) {
    struct http_check *never = add("::ffff:10.0.0.1");
    fail("::ffff:10.0.0.2", 20);
    fail("::ffff:10.0.0.3", 10);
    struct http_check *late = add("::ffff:10.0.0.2");
    struct http_check *early = add("::ffff:10.0.0.3");
    expect(never);
    expect(early);
    expect(late);
}

static void test_addresses_that_guess_are_served_in_turn(void) {
    static const char *const addresses[] = {"::ffff:10.0.0.1", "::ffff:10.0.0.2"};
    for (int i = 0; i < 6; i++) {
        add(addresses[i < 4 ? 0 : 1]);
    }
    int n_second = 0;
    for (int64_t now_ns = 1; now_ns <= 4; now_ns++) {
        struct in6_addr address = http_checks_take(&checks)->address;
        n_second += address.s6_addr[15] == 2;
        http_checks_note_failure(&checks, &address, now_ns);
    }
    TEST_ASSERT_EQUAL_INT(2, n_second);
}

static void test_one_address_has_a_share(void) {
    struct http_check *oldest = add("2001:db8::1");
    for (int i = 1; i < MAX_OF_ONE; i++) {
        add("2001:db8::2"); /* of the same /64 */
    }
    TEST_ASSERT_EQUAL_PTR(oldest, http_checks_add(&checks, make("2001:db8::3")));
    add("2001:db8:0:1::1");
    TEST_ASSERT_EQUAL_size_t(MAX_OF_ONE + 1, checks.n_waiting);
}

static void test_the_last_in_order_makes_room(void) {
    fail("::ffff:10.0.0.2", 1);
    struct http_check *older = add("::ffff:10.0.0.2");
    struct http_check *guess = add("::ffff:10.0.0.2");
    for (int i = 0; i < 4; i++) {
        add("::ffff:10.0.0.1");
    }
    add("::ffff:10.0.0.3");
    add("::ffff:10.0.0.4");
    TEST_ASSERT_EQUAL_PTR(older, http_checks_add(&checks, make("::ffff:10.0.0.5")));
    TEST_ASSERT_EQUAL_PTR(guess, http_checks_add(&checks, make("::ffff:10.0.0.6")));
    struct http_check *newcomer = make("::ffff:10.0.0.2");
    TEST_ASSERT_EQUAL_PTR(newcomer, http_checks_add(&checks, newcomer));
    TEST_ASSERT_EQUAL_size_t(MAX, checks.n_waiting);
}

static void test_more_addresses_than_are_remembered(void) {
    for (int i = 0; i < 2 * HTTP_CHECKS_MAX_FAILURES; i++) {
        char text[INET6_ADDRSTRLEN];
        snprintf(text, sizeof(text), "::ffff:10.0.%d.%d", i / 256, i % 256);
        fail(text, i + 1);
    }
    struct http_check *recent = add("::ffff:10.0.1.255");
    struct http_check *forgotten = add("::ffff:10.0.0.0");
    struct http_check *oldest = add("::ffff:10.0.1.0");
    expect(forgotten);
    expect(oldest);
    expect(recent);
}
