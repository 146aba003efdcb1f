#include "collectors/container/cri.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "tests/unit/collectors/container/cri_text.h"

#define SECOND CLOCK_NS_PER_SEC

static const char *const wanted[] = {"job", NULL};
static char path[64], nowhere[80];
static int listener;
static struct cri_client *client;
static int64_t now_ns;

void setUp(void) {
    snprintf(path, sizeof(path), "/tmp/test_cri_client.%d", (int)getpid());
    snprintf(nowhere, sizeof(nowhere), "%s.nowhere", path);
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(listener, (struct sockaddr *)&address, sizeof(address)));
    TEST_ASSERT_EQUAL_INT(0, listen(listener, 8));
    now_ns = 1000 * SECOND;
    client = cri_client_create("", (const char *const[]){nowhere, path}, 2, wanted);
    TEST_ASSERT_NOT_NULL(client);
}

void tearDown(void) {
    cri_client_destroy(client);
    close(listener);
    unlink(path);
}

static void step(void) {
    cri_client_step(client, now_ns);
}

/* The next connection, or -1; its requests must be for that version of the service. */
static int take(const char *version) {
    struct pollfd pending = {.fd = listener, .events = POLLIN};
    if (poll(&pending, 1, 0) != 1) {
        return -1;
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char request[1024];
    ssize_t n = recv(fd, request, sizeof(request), 0);
    TEST_ASSERT_TRUE(n > 24);
    TEST_ASSERT_EQUAL_MEMORY(HTTP2_PREFACE, request, 24);
    char method[64];
    snprintf(method, sizeof(method), "/runtime.%s.RuntimeService/ListPodSandbox", version);
    TEST_ASSERT_NOT_NULL(memmem(request, (size_t)n, method, strlen(method)));
    return fd;
}

static void add_answer(struct buf *out, uint32_t stream, const struct buf *message) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_char(&text, 0);
    http2_u32_write(&text, (uint32_t)message->len);
    buf_add(&text, buf_str(message), message->len);
    http2_frame_write(out, &(struct http2_frame){.type = HTTP2_DATA,
                                                 .flags = HTTP2_END_STREAM,
                                                 .stream = stream,
                                                 .data = text.data,
                                                 .len = text.len});
}

static void answer(int fd, const struct buf *pods, const struct buf *containers) {
    struct buf out CLEANUP_BUF = {0};
    http2_frame_write(&out, &(struct http2_frame){.type = HTTP2_SETTINGS});
    add_answer(&out, 1, pods);
    add_answer(&out, 3, containers);
    TEST_ASSERT_EQUAL_INT(out.len, send(fd, out.data, out.len, MSG_NOSIGNAL));
    step();
    close(fd);
}

static void refuse(int fd) {
    struct buf out CLEANUP_BUF = {0};
    http2_frame_write(&out, &(struct http2_frame){.type = HTTP2_SETTINGS});
    for (uint32_t stream = 1; stream <= 3; stream += 2) {
        http2_frame_write(&out, &(struct http2_frame){.type = HTTP2_HEADERS,
                                                      .flags = HTTP2_END_STREAM,
                                                      .stream = stream});
    }
    TEST_ASSERT_EQUAL_INT(out.len, send(fd, out.data, out.len, MSG_NOSIGNAL));
    step();
    close(fd);
}

static void test_lists(void) {
    step();
    TEST_ASSERT_EQUAL_INT(-1, take("v1")); /* nobody has asked */
    cri_client_ask(client);
    step();
    struct buf pods CLEANUP_BUF = {0};
    struct buf containers CLEANUP_BUF = {0};
    cri_add_pod(&pods, "s2", "mic", "birds");
    cri_add_pod(&pods, "s1", "cam", "cars");
    cri_add_container(&containers, "c1", "s1", "app");
    cri_add_container(&containers, "a9", "gone", "orphan");
    unsigned before = cri_client_generation(client);
    answer(take("v1"), &pods, &containers);
    TEST_ASSERT_NOT_EQUAL(before, cri_client_generation(client));
    const struct container_info *info = cri_client_find(client, "c1");
    TEST_ASSERT_NOT_NULL(info);
    TEST_ASSERT_EQUAL_STRING("app", info->container);
    TEST_ASSERT_EQUAL_STRING("cam", info->pod);
    TEST_ASSERT_EQUAL_STRING("ses", info->namespace);
    TEST_ASSERT_EQUAL_STRING("waggle/app:1", info->image);
    TEST_ASSERT_EQUAL_STRING("cars", info->labels[0].value);
    TEST_ASSERT_FALSE(info->sandbox);
    TEST_ASSERT_TRUE(cri_client_find(client, "s2")->sandbox);
    TEST_ASSERT_NULL(cri_client_find(client, "a9")->pod);
    TEST_ASSERT_NULL(cri_client_find(client, "c2"));

    /* Asked at once, but not more than four times a second. */
    cri_client_ask(client);
    step();
    TEST_ASSERT_EQUAL_INT(-1, take("v1"));
    now_ns += SECOND / 4;
    step();
    buf_reset(&pods);
    answer(take("v1"), &pods, &pods);
    TEST_ASSERT_NULL(cri_client_find(client, "c1"));
}

static void test_an_older_runtime(void) {
    cri_client_ask(client);
    step();
    refuse(take("v1"));
    step();
    struct buf pods CLEANUP_BUF = {0};
    cri_add_pod(&pods, "s1", "cam", "cars");
    struct buf none CLEANUP_BUF = {0};
    answer(take("v1alpha2"), &pods, &none);
    TEST_ASSERT_NOT_NULL(cri_client_find(client, "s1"));
    now_ns += SECOND;
    cri_client_ask(client);
    step();
    answer(take("v1alpha2"), &pods, &none); /* which is remembered */
}

/* Both ways refused: again after 1, 2, 4, … seconds. */
static void test_refusals(void) {
    cri_client_ask(client);
    step();
    for (int64_t wait_ns = SECOND; wait_ns <= 64 * SECOND; wait_ns *= 2) {
        refuse(take("v1"));
        step();
        refuse(take("v1alpha2"));
        step();
        now_ns += (wait_ns < 60 * SECOND ? wait_ns : 60 * SECOND) - 1;
        step();
        TEST_ASSERT_EQUAL_INT(-1, take("v1"));
        now_ns++;
        step();
    }
}

static void test_silence_is_given_up(void) {
    cri_client_ask(client);
    step();
    int silent = take("v1");
    for (int i = 0; i < 99; i++) {
        now_ns += SECOND / 10;
        step();
    }
    TEST_ASSERT_EQUAL_INT(-1, take("v1"));
    now_ns += SECOND / 10;
    step();
    char byte;
    TEST_ASSERT_EQUAL_INT(0, recv(silent, &byte, 1, 0));
    close(silent);
    step();
    close(take("v1alpha2"));
}

/* What was known stays known while the runtime is away. */
static void test_garbage(void) {
    struct buf pods CLEANUP_BUF = {0};
    struct buf none CLEANUP_BUF = {0};
    cri_add_pod(&pods, "s1", "cam", "cars");
    cri_client_ask(client);
    step();
    answer(take("v1"), &pods, &none);
    now_ns += SECOND;
    cri_client_ask(client);
    step();
    buf_truncate(&pods, pods.len - 1);
    answer(take("v1"), &pods, &none);
    TEST_ASSERT_NOT_NULL(cri_client_find(client, "s1"));
    step();
    close(take("v1alpha2"));
}
