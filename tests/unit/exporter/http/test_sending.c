#include "exporter/http/sending.h"

#include <unity.h>

#include "exporter/core/container_of.h"
#include "exporter/http/server.h"

enum { MIB = 1 << 20, N = 6 };

static struct http_server server;
static struct http_client clients[N];
static struct http_request requests[N];
static struct http_sending answers[N];

void setUp(void) {
    server = (struct http_server){.sendings.max_bytes = 10 * MIB};
    for (size_t i = 0; i < N; i++) {
        clients[i] = (struct http_client){.fd = -1};
        clients[i].address =
            (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff, [15] = (uint8_t)i}};
        requests[i] = (struct http_request){.server = &server, .client = &clients[i]};
        answers[i] = (struct http_sending){.len = 4 * MIB};
    }
}

void tearDown(void) {
    for (size_t i = 0; i < N; i++) {
        http_sending_end(&requests[i]);
    }
    TEST_ASSERT_EQUAL_size_t(0, server.sendings.n_bytes);
    TEST_ASSERT_NULL(server.sendings.oldest);
    TEST_ASSERT_NULL(server.sendings.youngest);
}

/* Which clients were disconnected, as bits. */
static unsigned cut(void) {
    unsigned bits = 0;
    unsigned n = 0;
    for (size_t i = 0; i < N; i++) {
        bits |= (unsigned)clients[i].leaving << i;
        n += clients[i].leaving;
    }
    TEST_ASSERT_EQUAL_UINT64(n, server.sendings.n_cut);
    return bits;
}

static void test_the_oldest_is_cut(void) {
    http_sending_begin(&requests[0], &answers[0]);
    http_sending_begin(&requests[1], &answers[1]);
    TEST_ASSERT_EQUAL_HEX(0, cut());
    http_sending_begin(&requests[2], &answers[2]);
    TEST_ASSERT_EQUAL_HEX(1, cut());
    TEST_ASSERT_EQUAL_size_t(8 * MIB, server.sendings.n_bytes);
    http_sending_end(&requests[1]);
    http_sending_begin(&requests[3], &answers[3]);
    TEST_ASSERT_EQUAL_HEX(1, cut());
}

static void test_an_answer_with_many_readers_counts_once(void) {
    for (size_t i = 0; i < 5; i++) {
        http_sending_begin(&requests[i], &answers[0]);
    }
    TEST_ASSERT_EQUAL_size_t(4 * MIB, server.sendings.n_bytes);
    http_sending_end(&requests[2]);
    answers[5].len = 8 * MIB;
    http_sending_begin(&requests[5], &answers[5]);
    TEST_ASSERT_EQUAL_HEX(1 << 0 | 1 << 1 | 1 << 3 | 1 << 4, cut());
}

static void test_the_readers_own_address_is_cut_first(void) {
    clients[2].address = clients[3].address = clients[1].address;
    http_sending_begin(&requests[0], &answers[0]);
    http_sending_begin(&requests[1], &answers[1]);
    http_sending_begin(&requests[2], &answers[2]);
    http_sending_begin(&requests[3], &answers[3]);
    TEST_ASSERT_EQUAL_HEX(1 << 1 | 1 << 2, cut());
}

static void test_an_answer_shared_with_other_addresses_is_not_their_own(void) {
    clients[3].address = clients[1].address;
    http_sending_begin(&requests[0], &answers[0]);
    http_sending_begin(&requests[1], &answers[1]);
    http_sending_begin(&requests[2], &answers[1]);
    http_sending_begin(&requests[3], &answers[3]);
    TEST_ASSERT_EQUAL_HEX(1 << 0, cut());
}

static void test_one_larger_than_the_limit_is_sent(void) {
    answers[1].len = 40 * MIB;
    answers[2].len = HTTP_SENDING_SMALL;
    http_sending_begin(&requests[0], &answers[0]);
    http_sending_begin(&requests[1], &answers[1]);
    TEST_ASSERT_EQUAL_HEX(1 << 0, cut());
    http_sending_begin(&requests[2], &answers[2]); /* small ones are not counted */
    TEST_ASSERT_EQUAL_HEX(1 << 0, cut());
    http_sending_begin(&requests[3], &answers[3]);
    TEST_ASSERT_EQUAL_HEX(1 << 0 | 1 << 1, cut());
}
