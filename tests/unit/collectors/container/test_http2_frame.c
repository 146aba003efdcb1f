#include "collectors/container/cri.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static struct buf out;

void setUp(void) {
    out = (struct buf){0};
}

void tearDown(void) {
    buf_finish(&out);
}

static void test_what_is_written_is_read(void) {
    const struct http2_frame written = {
        .type = HTTP2_DATA, .flags = HTTP2_END_STREAM, .stream = 3, .data = "hello", .len = 5};
    http2_frame_write(&out, &written);
    TEST_ASSERT_EQUAL_UINT64(14, out.len);
    TEST_ASSERT_EQUAL_MEMORY("\0\0\5\0\1\0\0\0\3hello", out.data, out.len);
    struct http2_frame frame;
    for (size_t len = 0; len < out.len; len++) {
        TEST_ASSERT_EQUAL_INT(0, http2_frame_read(out.data, len, &frame));
    }
    buf_add_str(&out, "what follows");
    TEST_ASSERT_EQUAL_INT(14, http2_frame_read(out.data, out.len, &frame));
    TEST_ASSERT_EQUAL_INT(HTTP2_DATA, frame.type);
    TEST_ASSERT_EQUAL_INT(HTTP2_END_STREAM, frame.flags);
    TEST_ASSERT_EQUAL_UINT32(3, frame.stream);
    TEST_ASSERT_EQUAL_UINT64(5, frame.len);
    TEST_ASSERT_EQUAL_MEMORY("hello", frame.data, 5);
}

static void test_heads(void) {
    static const struct {
        const char *head;
        int result;
        uint32_t stream;
    } rows[] = {
        {"\0\0\0\x4\0\0\0\0\0", 9, 0},
        {"\0\0\0\xff\xff\xff\xff\xff\xff", 9, INT32_MAX}, /* the reserved bit means nothing */
        {"\0\x40\0\0\0\0\0\0\1", 0, 0},                   /* the longest, not yet there */
        {"\0\x40\1\0\0\0\0\0\1", -EPROTO, 0},             /* one byte more */
        {"HTTP/1.1 ", -EPROTO, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http2_frame frame = {0};
        TEST_ASSERT_EQUAL_INT(rows[i].result, http2_frame_read(rows[i].head, 9, &frame));
        TEST_ASSERT_EQUAL_UINT32(rows[i].stream, frame.stream);
    }
}

static void test_padding(void) {
    static const struct {
        uint8_t flags;
        const char *data;
        size_t len;
        int result;
        const char *left;
    } rows[] = {
        {0, "\3abc", 4, 0, "\3abc"},
        {HTTP2_PADDED, "\0abc", 4, 0, "abc"},
        {HTTP2_PADDED, "\2abc", 4, 0, "a"},
        {HTTP2_PADDED, "\3abc", 4, 0, ""},
        {HTTP2_PADDED, "\4abc", 4, -EPROTO, NULL},
        {HTTP2_PADDED, "", 0, -EPROTO, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http2_frame frame = {
            .flags = rows[i].flags, .data = rows[i].data, .len = rows[i].len};
        TEST_ASSERT_EQUAL_INT(rows[i].result, http2_frame_unpad(&frame));
        if (rows[i].left != NULL) {
            TEST_ASSERT_EQUAL_UINT64(strlen(rows[i].left), frame.len);
            TEST_ASSERT_EQUAL_STRING_LEN(rows[i].left, frame.data, frame.len);
        }
    }
}

static void test_contents(void) {
    http2_setting_write(&out, HTTP2_INITIAL_WINDOW_SIZE, 0x01020304);
    http2_u32_write(&out, 0xfffefdfc);
    http2_header_write(&out, "te", "trailers");
    TEST_ASSERT_EQUAL_UINT64(6 + 4 + 13, out.len);
    TEST_ASSERT_EQUAL_MEMORY("\0\4\1\2\3\4\xff\xfe\xfd\xfc\0\2te\10trailers", out.data, out.len);
    const struct http2_frame frame = {.data = out.data, .len = 10};
    TEST_ASSERT_EQUAL_HEX32(0x01020304, http2_frame_u32(&frame, 2));
    TEST_ASSERT_EQUAL_HEX32(0xfffefdfc, http2_frame_u32(&frame, 6));
    TEST_ASSERT_EQUAL_HEX32(0, http2_frame_u32(&frame, 7)); /* one byte too few */
}
