#include "placement/client/promql.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "tests/fakes/web_peer.h"

static struct web_peer *peer;
static struct web_client *client;
static struct promql_answer answer;
static struct error error;

void setUp(void) {
    peer = web_peer_create();
    struct web_endpoint endpoint = {.url = web_peer_url(peer)};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, web_client_create(&endpoint, &client, &error), error.text);
}

void tearDown(void) {
    promql_answer_finish(&answer);
    web_client_destroy(client);
    web_peer_destroy(peer);
}

static void test_query(void) {
    web_peer_say(peer, (struct web_peer_answer){
                           .status = 200,
                           .body = "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\","
                                   "\"result\":[1,\"2\"]}}"});
    int r = promql_query(client, "rate(x{a=\"b\"}[1m]) > 2 + 1", &answer, &error);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, error.text);
    TEST_ASSERT_EQUAL_DOUBLE(2, answer.series[0].points[0].value);
    const char *heard = web_peer_heard(peer);
    TEST_ASSERT_EQUAL_STRING_LEN("POST /api/v1/query\n", heard, strlen("POST /api/v1/query\n"));
    TEST_ASSERT_NOT_NULL(strstr(heard, "Content-Type: application/x-www-form-urlencoded\n"));
    TEST_ASSERT_EQUAL_STRING("query=rate%28x%7Ba%3D%22b%22%7D%5B1m%5D%29%20%3E%202%20%2B%201",
                             strstr(heard, "\n\n") + 2);
}

static void test_refusals(void) {
    static const struct {
        struct web_peer_answer answer;
        const char *words;
    } cases[] = {
        {{400, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}"},
         "/api/v1/query: HTTP 400: bad_data: parse error"},
        {{503, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"too slow\"}"},
         "/api/v1/query: HTTP 503: timeout: too slow"},
        {{502, "<html>bad gateway\n</html>"}, "/api/v1/query: HTTP 502: <html>bad gateway"},
        {{401, ""}, "/api/v1/query: HTTP 401"},
        {{302, "", "http://127.0.0.1:1/"}, "/api/v1/query: HTTP 302"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        web_peer_say(peer, cases[i].answer);
        TEST_ASSERT_EQUAL_INT(-EREMOTEIO, promql_query(client, "x", &answer, &error));
        TEST_ASSERT_EQUAL_STRING_LEN("POST http://127.0.0.1:", error.text, 22);
        TEST_ASSERT_EQUAL_STRING(cases[i].words, strstr(error.text, "/api"));
    }
}

static void test_pages_that_are_no_answer(void) {
    web_peer_say(peer, (struct web_peer_answer){.status = 200, .body = "<html>"});
    TEST_ASSERT_EQUAL_INT(-EBADMSG, promql_query(client, "x", &answer, &error));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "HTTP 200: line 1, column 1"), error.text);
}
