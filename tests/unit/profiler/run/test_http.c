#include "profiler/run/http.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static void test_answers(void) {
    static const struct {
        const char *text;
        bool ended;
        int result, status;
        bool complete;
        const char *body;
    } cases[] = {
        {"", false, 0, 0, false, ""},
        {"", true, -EBADMSG, 0, false, ""},
        {"HTTP/1.1 20", false, 0, 0, false, ""},
        {OK "Content-Length: 5\r\n\r\nhello", false, 0, 200, true, "hello"},
        {OK "content-length:5\r\n\r\nhel", false, 0, 200, false, "hel"},
        {OK "content-length: 5\r\n\r\nhel", true, -EBADMSG, 200, false, "hel"},
        {OK "Content-Length: 2\r\n\r\nhello", false, 0, 200, true, "he"},
        {OK "Content-Length: -2\r\n\r\n", false, -EBADMSG, 200, false, ""},
        {OK "\r\nhello", false, 0, 200, false, "hello"},
        {OK "\r\nhello", true, 0, 200, true, "hello"},
        {"HTTP/1.1 204 No Content\r\n\r\n", false, 0, 204, true, ""},
        {"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", false, 0, 404, true, ""},
        {CHUNKED, false, 0, 200, false, ""},
        {CHUNKED "5\r\nhello\r\n0\r\n\r\n", false, 0, 200, true, "hello"},
        {CHUNKED "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n", false, 0, 200, true,
         "hello"},
        {CHUNKED "5\r\nhel", false, 0, 200, false, "hel"},
        {CHUNKED "5\r\nhello\r\n", true, -EBADMSG, 200, false, "hello"},
        {CHUNKED "A\r\n0123456789\r\n0\r\n", false, 0, 200, true, "0123456789"},
        {CHUNKED "x\r\nhello", false, -EBADMSG, 200, false, ""},
        {CHUNKED "ffffffffffffffff\r\nhello", false, -EBADMSG, 200, false, ""},
        {"FTP/1.1 200 OK\r\n\r\n", false, -EBADMSG, 0, false, ""},
        {"HTTP/1.1 999 Odd\r\n\r\n", false, -EBADMSG, 0, false, ""},
        {"HTTP/1.1 2\r\n\r\n", false, -EBADMSG, 0, false, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_http_answer answer CLEANUP_RUN_HTTP_ANSWER = {0};
        const char *text = cases[i].text;
        int r = run_http_parse(text, strlen(text), cases[i].ended, &answer);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].status, answer.status, text);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].complete, answer.complete, text);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].body, buf_str(&answer.body), text);
    }
}

static void test_nobody_there(void) {
    struct run_http_answer answer CLEANUP_RUN_HTTP_ANSWER = {0};
    struct error err;
    TEST_ASSERT_EQUAL_INT(-ENOENT,
                          run_http_call("/nonexistent.sock", "GET", "/", NULL, 100, &answer, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "/nonexistent.sock"));
}
