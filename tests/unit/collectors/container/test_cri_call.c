#include "collectors/container/cri.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define DEADLINE_NS CLOCK_NS_PER_SEC

static struct cri_call call;
static int peer;

void setUp(void) {
    int fds[2];
    TEST_ASSERT_EQUAL_INT(0,
                          socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    cri_call_init(&call);
    call.fd = fds[0];
    call.n_answers = 2;
    call.deadline_ns = DEADLINE_NS;
    peer = fds[1];
}

void tearDown(void) {
    cri_call_finish(&call);
    close(peer);
}

static void say(const void *data, size_t len) {
    TEST_ASSERT_EQUAL_INT(len, send(peer, data, len, MSG_NOSIGNAL));
}

/* What the peer sends: letters that stand for frames, on stream 1 unless a digit comes before. */
static void add_frame(struct buf *out, char letter, uint32_t stream) {
    static const struct {
        char letter;
        struct http2_frame frame;
    } rows[] = {
        {'S', {.type = HTTP2_SETTINGS, .data = "\0\3\0\0\0\x64", .len = 6}},
        {'s', {.type = HTTP2_SETTINGS, .flags = HTTP2_ACK}},
        {'P', {.type = HTTP2_PING, .data = "01234567", .len = 8}},
        {'W', {.type = HTTP2_WINDOW_UPDATE, .data = "\0\1\0\0", .len = 4}},
        {'H', {.type = HTTP2_HEADERS, .flags = HTTP2_END_HEADERS, .data = "\x88", .len = 1}},
        {'h', {.type = HTTP2_HEADERS, .data = "\x88", .len = 1}},
        {'C', {.type = 9, .flags = HTTP2_END_HEADERS, .data = "\xff\xff\xff", .len = 3}},
        {'M', {.type = HTTP2_DATA, .data = "\0\0\0\0\2hi", .len = 7}},
        {'m', {.type = HTTP2_DATA, .data = "\0\0\0\0\2h", .len = 6}},
        {'i', {.type = HTTP2_DATA, .flags = HTTP2_PADDED, .data = "\2i\0\0", .len = 4}},
        {'b', {.type = HTTP2_DATA, .flags = HTTP2_PADDED, .data = "\4i\0\0", .len = 4}},
        {'Z', {.type = HTTP2_DATA, .data = "\1\0\0\0\2hi", .len = 7}}, /* packed */
        {'E', {.type = HTTP2_HEADERS, .flags = 5, .data = "\x88", .len = 1}},
        {'e', {.type = HTTP2_DATA, .flags = HTTP2_END_STREAM}},
        {'R', {.type = HTTP2_RST_STREAM, .data = "\0\0\0\7", .len = 4}},
        {'G', {.type = HTTP2_GOAWAY, .data = "\0\0\0\1\0\0\0\0", .len = 8}},
        {'g', {.type = HTTP2_GOAWAY, .data = "\x7f\xff\xff\xff\0\0\0\0", .len = 8}},
        {'U', {.type = 77, .flags = 0xff, .data = "what?", .len = 5}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].letter == letter) {
            struct http2_frame frame = rows[i].frame;
            frame.stream = strchr("SsPWGg", letter) != NULL ? 0 : stream;
            http2_frame_write(out, &frame);
            return;
        }
    }
    TEST_FAIL_MESSAGE("no such letter");
}

static void add_frames(struct buf *out, const char *letters) {
    uint32_t stream = 1;
    for (; *letters != '\0'; letters++) {
        if (*letters >= '1' && *letters <= '9') {
            stream = (uint32_t)(*letters - '0');
        } else {
            add_frame(out, *letters, stream);
        }
    }
}

static const struct {
    const char *frames;
    int result;
} rows[] = {
    {"S1HME3HME", 1},
    {"Ss1HM3HM1E3E", 1},      /* one in the other */
    {"S1HMe3HMe", 1},         /* ended by data */
    {"S1hCmUPi3hCWmiE1E", 1}, /* all that may come between */
    {"S1HMEg3HME", 1},        /* goes away, but answers */
    {"S1HME3HM5HM7RE3E", 1},  /* streams that nobody opened */
    {"S1HMER3HME", 1},        /* a reset behind the end */
    {"", 0},                  /* silence */
    {"S1HME", 0},             /* half of it */
    {"S1HME3HM", 0},          /* no end */
    {"1HME3HME", -EPROTO},    /* no greeting */
    {"S1E3HME", -EPROTO},     /* refused: no message */
    {"S1HmE3HME", -EPROTO},   /* cut off */
    {"S1HMMe3HME", -EPROTO},  /* two messages */
    {"S1HZE3HME", -EPROTO},   /* packed, which nobody asked for */
    {"S1Hb", -EPROTO},        /* padded beyond its length */
    {"S1HMEM", -EPROTO},      /* more behind the end */
    {"S1HR", -EPROTO},
    {"S1HMEG", -EPROTO}, /* goes away without the second answer */
};

static void check(size_t i, int expected, int result) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(expected, result, rows[i].frames);
    if (result == 1) {
        for (size_t j = 0; j < 2; j++) {
            size_t len;
            const char *text = cri_call_answer(&call, j, &len);
            TEST_ASSERT_EQUAL_UINT64(2, len);
            TEST_ASSERT_EQUAL_MEMORY("hi", text, 2);
        }
    }
}

static void test_sequences(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text CLEANUP_BUF = {0};
        add_frames(&text, rows[i].frames);
        say(buf_str(&text), text.len);
        check(i, rows[i].result, cri_call_step(&call, 0));
        tearDown();
        setUp();
    }
}

/* The same when every byte comes alone. */
static void test_bytes(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text CLEANUP_BUF = {0};
        add_frames(&text, rows[i].frames);
        int result = 0;
        for (size_t at = 0; result == 0 && at < text.len; at++) {
            say(text.data + at, 1);
            result = cri_call_step(&call, 0);
        }
        check(i, rows[i].result, result);
        tearDown();
        setUp();
    }
}

static void test_silence_ends_at_the_deadline(void) {
    TEST_ASSERT_EQUAL_INT(0, cri_call_step(&call, DEADLINE_NS - 1));
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, cri_call_step(&call, DEADLINE_NS));
}

static void test_a_peer_that_hangs_up(void) {
    shutdown(peer, SHUT_WR);
    TEST_ASSERT_EQUAL_INT(-EPIPE, cri_call_step(&call, 0));
}

static void test_another_protocol(void) {
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    say(text, strlen(text));
    TEST_ASSERT_EQUAL_INT(-EPROTO, cri_call_step(&call, 0));
}

static void test_settings_and_pings_are_acknowledged(void) {
    struct buf text CLEANUP_BUF = {0};
    add_frames(&text, "SPs");
    say(text.data, text.len);
    TEST_ASSERT_EQUAL_INT(0, cri_call_step(&call, 0));
    char answer[64];
    static const char expected[] = "\0\0\0\4\1\0\0\0\0\0\0\10\6\1\0\0\0\0"
                                   "01234567";
    TEST_ASSERT_EQUAL_INT(sizeof(expected) - 1, recv(peer, answer, sizeof(answer), 0));
    TEST_ASSERT_EQUAL_MEMORY(expected, answer, sizeof(expected) - 1);
}

static int flood(const struct buf *text) {
    for (int round = 0; round < 100000; round++) {
        send(peer, text->data, text->len, MSG_NOSIGNAL);
        int r = cri_call_step(&call, 0);
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

static void test_floods(void) {
    struct buf text CLEANUP_BUF = {0};
    add_frames(&text, "S");
    say(text.data, text.len);
    buf_reset(&text);
    for (int i = 0; i < 1000; i++) {
        add_frames(&text, "P"); /* nobody takes what they are answered with */
    }
    TEST_ASSERT_EQUAL_INT(-EPROTO, flood(&text));

    static char much[HTTP2_MAX_LEN];
    tearDown();
    setUp();
    buf_reset(&text);
    add_frames(&text, "S");
    say(text.data, text.len);
    buf_reset(&text);
    http2_frame_write(&text, &(struct http2_frame){.stream = 1, .data = much, .len = sizeof(much)});
    TEST_ASSERT_EQUAL_INT(-EFBIG, flood(&text));
    TEST_ASSERT_TRUE(call.answers[0].text.len <= 32 << 20);
}
