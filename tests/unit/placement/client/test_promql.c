#include "placement/client/promql.h"

#include <errno.h>
#include <math.h>
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
    TEST_ASSERT_EQUAL_DOUBLE(2, answer.series[0].value);
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

/* ---- answers ---- */

static int parse(const char *text) {
    promql_answer_finish(&answer);
    buf_add_str(&answer.text, text);
    error.text[0] = '\0';
    return promql_answer_parse(&answer, 3, &error);
}

static void test_vector(void) {
    TEST_ASSERT_EQUAL_INT(
        0, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                 "{\"metric\":{\"__name__\":\"up\",\"job\":\"a\\\"b\"},\"value\":[1700000000.123,"
                 "\"1\"]},"
                 "{\"metric\":{},\"value\":[1700000001,\"-2.5e-3\"]}]}}"));
    TEST_ASSERT_EQUAL_INT(PROMQL_VECTOR, answer.kind);
    TEST_ASSERT_EQUAL_size_t(2, answer.n_series);
    TEST_ASSERT_EQUAL_STRING("up", promql_series_label(&answer.series[0], "__name__"));
    TEST_ASSERT_EQUAL_STRING("a\"b", promql_series_label(&answer.series[0], "job"));
    TEST_ASSERT_NULL(promql_series_label(&answer.series[0], "instance"));
    TEST_ASSERT_EQUAL_DOUBLE(1, answer.series[0].value);
    TEST_ASSERT_EQUAL_size_t(0, answer.series[1].n_labels);
    TEST_ASSERT_EQUAL_DOUBLE(-2.5e-3, answer.series[1].value);
}

static void test_what_json_has_no_number_for(void) {
    TEST_ASSERT_EQUAL_INT(
        0, parse("{\"data\":{\"result\":[{\"value\":[1,\"NaN\"]},{\"value\":[1,\"+Inf\"]},"
                 "{\"value\":[1,\"-Inf\"]}],\"resultType\":\"vector\"},\"status\":\"success\"}"));
    TEST_ASSERT_TRUE(isnan(answer.series[0].value));
    TEST_ASSERT_TRUE(answer.series[1].value == INFINITY);
    TEST_ASSERT_TRUE(answer.series[2].value == -INFINITY);
}

static void test_scalar_and_string(void) {
    TEST_ASSERT_EQUAL_INT(0, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\","
                                   "\"result\":[12.5,\"42\"]}}"));
    TEST_ASSERT_EQUAL_INT(PROMQL_SCALAR, answer.kind);
    TEST_ASSERT_EQUAL_size_t(1, answer.n_series);
    TEST_ASSERT_EQUAL_DOUBLE(42, answer.series[0].value);

    TEST_ASSERT_EQUAL_INT(0, parse("{\"status\":\"success\",\"data\":{\"result\":[1,\"text\"],"
                                   "\"resultType\":\"string\"}}"));
    TEST_ASSERT_EQUAL_INT(PROMQL_STRING, answer.kind);
    TEST_ASSERT_EQUAL_size_t(0, answer.n_series);
}

static void test_matrix(void) {
    TEST_ASSERT_EQUAL_INT(
        0, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
                 "{\"metric\":{\"a\":\"1\"},\"values\":[[1,\"10\"],[2,\"20\"],[3,\"30\"],[4,\"40\"]"
                 ",[5,\"50\"]]}]}}"));
    TEST_ASSERT_EQUAL_INT(PROMQL_MATRIX, answer.kind);
    TEST_ASSERT_EQUAL_size_t(0, answer.n_series);
}

static void test_nothing_is_no_fault(void) {
    TEST_ASSERT_EQUAL_INT(
        0, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}\n"));
    TEST_ASSERT_EQUAL_size_t(0, answer.n_series);
}

static void test_native_histograms_are_counted(void) {
    TEST_ASSERT_EQUAL_INT(
        0, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                 "{\"metric\":{},\"histogram\":[1,{\"count\":\"3\",\"sum\":\"1\",\"buckets\":[[0,"
                 "\"1\",\"2\",\"3\"]]}]},"
                 "{\"metric\":{},\"value\":[1,\"7\"]}]}}"));
    TEST_ASSERT_EQUAL_size_t(1, answer.n_histograms);
    TEST_ASSERT_EQUAL_size_t(1, answer.n_series);
}

static void test_remarks(void) {
    TEST_ASSERT_EQUAL_INT(
        0,
        parse("{\"status\":\"success\",\"warnings\":[\"half of it\"],\"infos\":[\"not a counter\"],"
              "\"isPartial\":false,\"stats\":{\"x\":[1,{}]},"
              "\"data\":{\"resultType\":\"vector\",\"result\":[]}}"));
    TEST_ASSERT_EQUAL_STRING("half of it", answer.remark);
}

static void test_errors_of_the_server(void) {
    TEST_ASSERT_EQUAL_INT(-EREMOTEIO,
                          parse("{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:3: "
                                "parse error: unexpected end\"}"));
    TEST_ASSERT_EQUAL_STRING("bad_data: 1:3: parse error: unexpected end", error.text);
    TEST_ASSERT_EQUAL_INT(-EREMOTEIO, parse("{\"status\":\"error\",\"data\":null}"));
    TEST_ASSERT_EQUAL_STRING("error: no reason given", error.text);
}

static void test_what_is_no_answer(void) {
    static const char *const texts[] = {
        "",
        " ",
        "<html>",
        "[]",
        "{",
        "{}",
        "{\"status\":1}",
        "{\"status\":\"success\"}",
        "{\"status\":\"success\",\"data\":[]}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\"}}",
        "{\"status\":\"success\",\"data\":{\"result\":[]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"tensor\",\"result\":[]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[1,\"2\"]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"x\"]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,2]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,2]}]"
        "}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,"
        "\"\"]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[1,"
        "\"2x\"]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"value\":[\"1\","
        "\"2\"]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"values\":[[1,"
        "\"2\"]]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"value\":[1,"
        "\"2\"]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{"
        "\"a\":1}}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}} {}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EBADMSG, parse(texts[i]), texts[i]);
        TEST_ASSERT_TRUE_MESSAGE(error.text[0] != '\0', texts[i]);
    }
}

static void test_too_many_series(void) {
    TEST_ASSERT_EQUAL_INT(
        -E2BIG, parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                      "{\"value\":[1,\"1\"]},{\"value\":[1,\"1\"]},{\"value\":[1,\"1\"]},"
                      "{\"value\":[1,\"1\"]}]}}"));
    TEST_ASSERT_EQUAL_STRING("more than 3 series", error.text);
}
