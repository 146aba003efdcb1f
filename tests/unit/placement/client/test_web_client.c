#include "placement/client/web_client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unity.h>

#include "tests/fakes/web_peer.h"
#include "tests/unit/waiting.h"

static struct web_peer *peer;
static struct web_client *client;
static struct error error;
static struct buf body;
static unsigned status;

void setUp(void) {
    peer = web_peer_create();
    error.text[0] = '\0';
}

void tearDown(void) {
    web_client_destroy(TAKE(client));
    web_peer_destroy(peer);
    buf_finish(&body);
}

static void open_client(struct web_endpoint endpoint) {
    if (endpoint.url == NULL) {
        endpoint.url = web_peer_url(peer);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, web_client_create(&endpoint, &client, &error), error.text);
}

static int call(struct web_request request) {
    return web_client_call(client, &request, &status, &body, &error);
}

static void expect_heard(const char *words) {
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(web_peer_heard(peer), words), web_peer_heard(peer));
}

static void test_addresses(void) {
    static const struct {
        const char *url;
        bool good;
    } cases[] = {
        {"http://127.0.0.1:9090", true},
        {"https://mimir.example/prometheus/", true},
        {"http://[::1]:9090/", true},
        {"", false},
        {"127.0.0.1:9090", false},
        {"file:///etc/passwd", false},
        {"ftp://a", false},
        {"http://", false},
        {"http://user:secret@a", false},
        {"http://user@a", false},
        {"http://a?x=1", false},
        {"http://a#x", false},
        {"http://a b", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = web_url_check(cases[i].url, &error);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].good ? 0 : -EINVAL, r, cases[i].url);
        TEST_ASSERT_NULL_MESSAGE(strstr(error.text, "secret"), error.text);
    }
}

static void test_get_below_a_prefix(void) {
    struct buf url CLEANUP_BUF = {0};
    buf_printf(&url, "%s/select/0/prometheus/", web_peer_url(peer));
    open_client((struct web_endpoint){.url = buf_str(&url)});
    web_peer_say(peer, (struct web_peer_answer){.status = 200, .body = "hello"});
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, call((struct web_request){.path = "/x?y=1"}), error.text);
    TEST_ASSERT_EQUAL_UINT(200, status);
    TEST_ASSERT_EQUAL_STRING("hello", buf_str(&body));
    expect_heard("GET /select/0/prometheus/x?y=1\n");
    TEST_ASSERT_NULL(strstr(web_peer_heard(peer), "Authorization"));
}

static void test_put_then_get_then_post(void) {
    open_client((struct web_endpoint){0});
    web_peer_say(peer, (struct web_peer_answer){.status = 200});
    struct web_request put = {.method = "PUT",
                              .path = "/knob",
                              .body = "{\"value\":1}",
                              .content_type = "application/json"};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, call(put), error.text);
    expect_heard("PUT /knob\n");
    expect_heard("Content-Type: application/json\n");
    expect_heard("\n\n{\"value\":1}");
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/knob"}));
    expect_heard("GET /knob\n");
    TEST_ASSERT_NULL(strstr(web_peer_heard(peer), "value"));
    put.method = "POST";
    TEST_ASSERT_EQUAL_INT(0, call(put));
    expect_heard("POST /knob\n");
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

static void test_secrets_are_read_again(void) {
    char path[] = "/tmp/test_web_client.XXXXXX";
    int fd CLEANUP_CLOSE = mkstemp(path);
    TEST_ASSERT_TRUE(fd >= 0);
    write_file(path, "first\n");
    web_peer_say(peer, (struct web_peer_answer){.status = 200});
    open_client((struct web_endpoint){.bearer_token_file = path});
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/"}));
    expect_heard("Authorization: Bearer first\n");
    write_file(path, "second");
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/"}));
    expect_heard("Authorization: Bearer second\n");
    unlink(path);
    TEST_ASSERT_EQUAL_INT(-ENOENT, call((struct web_request){.path = "/"}));
    TEST_ASSERT_NOT_NULL(strstr(error.text, path));
}

static void test_password_and_headers(void) {
    static const char *const headers[] = {"X-Scope-OrgID: edge", "X-Other: 1", NULL};
    web_peer_say(peer, (struct web_peer_answer){.status = 200});
    open_client((struct web_endpoint){.user = "a", .password = "b", .headers = headers});
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/", .accept = "text/plain"}));
    expect_heard("Authorization: Basic YTpi\n");
    expect_heard("X-Scope-OrgID: edge\n");
    expect_heard("X-Other: 1\n");
    expect_heard("Accept: text/plain\n");
}

static void test_redirects_are_not_followed(void) {
    web_peer_say(peer, (struct web_peer_answer){.status = 302, .location = "http://127.0.0.1:1/"});
    open_client((struct web_endpoint){.user = "a", .password = "b"});
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/"}));
    TEST_ASSERT_EQUAL_UINT(302, status);
}

static void test_too_large(void) {
    web_peer_say(peer, (struct web_peer_answer){.status = 200, .body = "12345678901"});
    open_client((struct web_endpoint){.max_bytes = 10});
    TEST_ASSERT_EQUAL_INT(-EFBIG, call((struct web_request){.path = "/big"}));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "/big: the answer is larger than 10 bytes"),
                                 error.text);
    web_peer_say(peer, (struct web_peer_answer){.status = 200, .body = "1234567890"});
    TEST_ASSERT_EQUAL_INT(0, call((struct web_request){.path = "/fits"}));
}

static void test_silence_has_an_end(void) {
    web_peer_say(peer, (struct web_peer_answer){.never = true});
    open_client((struct web_endpoint){.timeout_ms = 50});
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, call((struct web_request){.path = "/slow"}));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "/slow: "), error.text);
}

static void *abort_soon(void *context) {
    pace_ms(20);
    web_client_abort(context);
    return NULL;
}

static void test_a_call_can_be_aborted(void) {
    web_peer_say(peer, (struct web_peer_answer){.never = true});
    open_client((struct web_endpoint){.timeout_ms = 600000});
    pthread_t thread;
    pthread_create(&thread, NULL, abort_soon, client);
    TEST_ASSERT_EQUAL_INT(-EIO, call((struct web_request){.path = "/slow"}));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "aborted"), error.text);
    pthread_join(thread, NULL);
}

static void test_nobody_there(void) {
    open_client((struct web_endpoint){.url = "http://127.0.0.1:1"});
    TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, call((struct web_request){.path = "/x"}));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "GET http://127.0.0.1:1/x: "), error.text);
}

static void test_escaping(void) {
    struct buf out CLEANUP_BUF = {0};
    web_add_escaped(&out, "a-Z_0.~ /?&=+%\"\n\xc3\xa4");
    TEST_ASSERT_EQUAL_STRING("a-Z_0.~%20%2F%3F%26%3D%2B%25%22%0A%C3%A4", buf_str(&out));
}
