#include "exporter/http/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/http/server.h"

enum { KIB = 1024, SMALL = 64 * KIB, MAX_BODY = 400 * KIB, MAX_BODIES = 500 * KIB };

static struct http_server server;
static struct http_request one, other;
static char piece[MAX_BODY];

void setUp(void) {
    server = (struct http_server){.max_body = MAX_BODY, .max_bodies = MAX_BODIES};
    one = other = (struct http_request){.server = &server};
    memset(piece, 'x', sizeof(piece));
}

void tearDown(void) {
    http_body_drop(&one);
    http_body_drop(&other);
    TEST_ASSERT_EQUAL_size_t(0, server.bodies_room);
}

static int announce(struct http_request *request, size_t len) {
    struct error err;
    return http_body_announce(request, len, &err);
}

static int add(struct http_request *request, size_t len) {
    struct error err = {0};
    size_t before = request->body.len;
    int r = http_body_add(request, piece, len, &err);
    TEST_ASSERT_EQUAL_size_t(before + (r == 0 ? len : 0), request->body.len);
    TEST_ASSERT_EQUAL(r < 0, strstr(err.text, "--web.max-bodies-size") != NULL);
    return r;
}

static void test_a_known_length_takes_no_more_than_that(void) {
    TEST_ASSERT_EQUAL_INT(0, announce(&one, 300 * KIB));
    for (int i = 0; i < 300; i++) {
        TEST_ASSERT_EQUAL_INT(0, add(&one, KIB));
    }
    TEST_ASSERT_EQUAL_size_t(300 * KIB + 1, one.body.cap);
    TEST_ASSERT_EQUAL_size_t(300 * KIB, strlen(one.body.data));
    TEST_ASSERT_EQUAL_INT(-EBUSY, announce(&other, 201 * KIB));
    TEST_ASSERT_EQUAL_INT(0, announce(&other, 200 * KIB));
    TEST_ASSERT_EQUAL_INT(0, add(&other, 200 * KIB));
    http_body_drop(&other);
    TEST_ASSERT_EQUAL_size_t(300 * KIB, server.bodies_room);
}

static void test_what_is_announced_takes_no_room_before_it_arrives(void) {
    TEST_ASSERT_EQUAL_INT(0, announce(&one, 300 * KIB));
    TEST_ASSERT_EQUAL_INT(0, add(&one, SMALL));
    TEST_ASSERT_EQUAL_size_t(0, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(0, announce(&other, 300 * KIB));
    TEST_ASSERT_EQUAL_INT(0, add(&other, 300 * KIB));
    TEST_ASSERT_EQUAL_size_t(300 * KIB, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(0, add(&one, KIB));
    TEST_ASSERT_EQUAL_size_t((300 + 130) * KIB, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(-EBUSY, add(&one, 100 * KIB));
}

static void test_an_unknown_length_is_counted_as_it_grows(void) {
    TEST_ASSERT_EQUAL_INT(0, add(&one, SMALL));
    TEST_ASSERT_EQUAL_size_t(0, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(0, add(&one, 36 * KIB));
    TEST_ASSERT_EQUAL_size_t(200 * KIB, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(0, add(&one, 150 * KIB));
    TEST_ASSERT_EQUAL_size_t(MAX_BODY, server.bodies_room);
    TEST_ASSERT_EQUAL_INT(0, add(&one, 150 * KIB));
    TEST_ASSERT_EQUAL_size_t(MAX_BODY + 1, one.body.cap);
    TEST_ASSERT_EQUAL_INT(0, add(&other, SMALL));
    TEST_ASSERT_EQUAL_INT(-EBUSY, add(&other, KIB));
}

static void test_small_ones_always_pass(void) {
    TEST_ASSERT_EQUAL_INT(0, add(&one, MAX_BODY));
    server.max_bodies = MAX_BODY;
    TEST_ASSERT_EQUAL_INT(-EBUSY, announce(&other, SMALL + 1));
    TEST_ASSERT_EQUAL_INT(0, announce(&other, SMALL));
    TEST_ASSERT_EQUAL_INT(0, add(&other, SMALL));
}

/* A reload may lower the limit below what is held. */
static void test_a_limit_that_shrinks(void) {
    TEST_ASSERT_EQUAL_INT(0, add(&one, MAX_BODY));
    server.max_bodies = 100 * KIB;
    TEST_ASSERT_EQUAL_INT(-EBUSY, announce(&other, 80 * KIB));
    http_body_drop(&one);
    TEST_ASSERT_EQUAL_INT(0, announce(&other, 80 * KIB));
}

static const int64_t start_ns = 1000 * CLOCK_NS_PER_SEC;
static const struct web_config_rate_limit limit = {.interval_ms = 100, .burst = 3};

static int64_t at_ms(int64_t ms) {
    return start_ns + ms * CLOCK_NS_PER_MS;
}

/* How many of `n` requests at that moment are let in. */
static int burst(int64_t *due_ns, int n, int64_t ms) {
    int allowed = 0;
    for (int i = 0; i < n; i++) {
        allowed += http_rate_allow(due_ns, limit, at_ms(ms));
    }
    return allowed;
}

static void test_a_burst_and_then_one_per_interval(void) {
    int64_t due_ns = 0;
    TEST_ASSERT_EQUAL_INT(3, burst(&due_ns, 10, 0));
    TEST_ASSERT_EQUAL_INT(0, burst(&due_ns, 1, 99));
    TEST_ASSERT_EQUAL_INT(1, burst(&due_ns, 10, 100));
    TEST_ASSERT_EQUAL_INT(0, burst(&due_ns, 10, 199));
    TEST_ASSERT_EQUAL_INT(2, burst(&due_ns, 10, 300));
}

static void test_quiet_time_saves_no_more_than_a_burst(void) {
    int64_t due_ns = 0;
    TEST_ASSERT_EQUAL_INT(3, burst(&due_ns, 3, 0));
    TEST_ASSERT_EQUAL_INT(3, burst(&due_ns, 10, 1000000));
}

static void test_refusals_do_not_count(void) {
    int64_t due_ns = 0;
    burst(&due_ns, 1000, 0);
    TEST_ASSERT_EQUAL_INT(1, burst(&due_ns, 10, 100));
}

static void test_no_limit(void) {
    int64_t due_ns = 0;
    for (int i = 0; i < 1000; i++) {
        TEST_ASSERT_TRUE(http_rate_allow(&due_ns, (struct web_config_rate_limit){0}, start_ns));
    }
}

static void test_the_largest_limits_do_not_overflow(void) {
    int64_t due_ns = 0;
    struct web_config_rate_limit most = {.interval_ms = 60 * 60 * 1000, .burst = 1000000};
    TEST_ASSERT_TRUE(http_rate_allow(&due_ns, most, INT64_C(1) << 62));
    TEST_ASSERT_TRUE(http_rate_allow(&due_ns, most, INT64_C(1) << 62));
}
