#include "exporter/net/http_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#define OK "HTTP/1.1 200 OK\r\n"

enum { TIMEOUT_MS = 20000 };

static char path[64];
static int listener;

void setUp(void) {
    snprintf(path, sizeof(path), "/tmp/test_http_client.%d", (int)getpid());
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(listener, (struct sockaddr *)&address, sizeof(address)));
    TEST_ASSERT_EQUAL_INT(0, listen(listener, 8));
}

void tearDown(void) {
    close(listener);
    unlink(path);
}

static char asked[256];

/* Answers one request with `text`. */
static void *answer(void *text) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t n = recv(fd, asked, sizeof(asked) - 1, 0);
    asked[n > 0 ? n : 0] = '\0';
    send(fd, text, strlen(text), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static int call(const char *text, const char *method, const char *body,
                struct http_client *client) {
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, answer, (char *)text));
    int r = http_client_call(client, path, method, "/x", body, 100, TIMEOUT_MS);
    pthread_join(thread, NULL);
    return r;
}

static void test_answers(void) {
    static const struct {
        const char *text;
        int result, status;
        const char *body;
    } cases[] = {
        {OK "\r\nhello", 0, 200, "hello"},
        {OK "Content-Length: 5\r\n\r\nhello", 0, 200, "hello"},
        {OK "\r\n", 0, 200, ""},
        {"HTTP/1.0 204 No Content\r\n\r\n", 0, 204, ""},
        {"HTTP/1.0 404 Not Found\r\n\r\n{}", 0, 404, "{}"},
        {"", -EPROTO, 0, NULL},
        {OK, -EPROTO, 0, NULL},
        {"nonsense\r\n\r\n", -EPROTO, 0, NULL},
        {"FTP/1.1 200 OK\r\n\r\n", -EPROTO, 0, NULL},
        {"HTTP/1.1 999 Odd\r\n\r\n", -EPROTO, 999, NULL},
        {"HTTP/1.1 2\r\n\r\n", -EPROTO, 2, NULL},
        {OK "\r\n0123456789012345678901234567890123456789012345678901234567890123456789"
            "0123456789012345678901234567890123456789",
         -EFBIG, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_client client CLEANUP_HTTP_CLIENT = HTTP_CLIENT_NONE;
        const char *text = cases[i].text;
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, call(text, "GET", NULL, &client), text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].status, client.status, text);
        if (cases[i].body != NULL) {
            TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].body, buf_str(&client.answer), text);
        }
    }
}

static void test_requests(void) {
    struct http_client client CLEANUP_HTTP_CLIENT = HTTP_CLIENT_NONE;
    TEST_ASSERT_EQUAL_INT(0, call(OK "\r\n", "GET", NULL, &client));
    TEST_ASSERT_EQUAL_STRING("GET /x HTTP/1.0\r\nHost: localhost\r\n\r\n", asked);
    TEST_ASSERT_EQUAL_INT(0, call(OK "\r\n", "DELETE", NULL, &client));
    TEST_ASSERT_EQUAL_STRING("DELETE /x HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
                             asked);
    TEST_ASSERT_EQUAL_INT(0, call(OK "\r\n", "POST", "{}", &client));
    TEST_ASSERT_EQUAL_STRING("POST /x HTTP/1.0\r\nHost: localhost\r\n"
                             "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                             asked);
}

static void test_no_answer(void) {
    struct http_client client CLEANUP_HTTP_CLIENT = HTTP_CLIENT_NONE;
    TEST_ASSERT_EQUAL_INT(
        -ENOENT, http_client_call(&client, "/nonexistent.sock", "GET", "/", NULL, 100, 100));
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, http_client_call(&client, path, "GET", "/", NULL, 100, 20));
}
