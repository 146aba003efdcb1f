#include "exporter/core/buf.h"

#include <errno.h>
#include <unity.h>

static void test_empty_buffer_is_an_empty_string(void) {
    struct buf buf CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_STRING("", buf_str(&buf));
}

static void test_additions_end_in_nul(void) {
    struct buf buf CLEANUP_BUF = {0};
    buf_add(&buf, "ab", 2);
    buf_add_char(&buf, 'c');
    buf_printf(&buf, "%d-%s", 42, "x");
    TEST_ASSERT_EQUAL_STRING("abc42-x", buf_str(&buf));
    TEST_ASSERT_EQUAL_UINT64(7, buf.len);
}

static void test_reserved_room_is_not_content(void) {
    struct buf buf CLEANUP_BUF = {0};
    TEST_ASSERT_NOT_NULL(buf_reserve(&buf, 1000));
    TEST_ASSERT_EQUAL_STRING("", buf_str(&buf));
}

static void test_grows_past_every_capacity(void) {
    struct buf buf CLEANUP_BUF = {0};
    for (int i = 0; i < 100000; i++) {
        buf_add_char(&buf, (char)('a' + i % 26));
    }
    TEST_ASSERT_EQUAL_UINT64(100000, buf.len);
    TEST_ASSERT_EQUAL_CHAR('a' + 99999 % 26, buf.data[99999]);
    TEST_ASSERT_EQUAL_CHAR('\0', buf.data[100000]);
}

static void test_truncate_only_shortens(void) {
    struct buf buf CLEANUP_BUF = {0};
    buf_truncate(&buf, 0);
    buf_add_str(&buf, "abc");
    buf_truncate(&buf, 5);
    TEST_ASSERT_EQUAL_STRING("abc", buf_str(&buf));
    buf_truncate(&buf, 1);
    buf_add_char(&buf, 'x');
    TEST_ASSERT_EQUAL_STRING("ax", buf_str(&buf));
}

static void test_reset_keeps_memory(void) {
    struct buf buf CLEANUP_BUF = {0};
    buf_reset(&buf);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&buf));
    buf_add_str(&buf, "some");
    const char *data = buf.data;
    buf_reset(&buf);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&buf));
    buf_add_str(&buf, "more");
    TEST_ASSERT_EQUAL_STRING("more", buf_str(&buf));
    TEST_ASSERT_EQUAL_PTR(data, buf.data);
}

static void test_printf_across_every_capacity(void) {
    for (int n = 0; n < 1100; n++) {
        struct buf buf CLEANUP_BUF = {0};
        buf_printf(&buf, "%*s", n, "");
        buf_printf(&buf, "<%d>", n);
        TEST_ASSERT_EQUAL_INT(n, atoi(buf_str(&buf) + n + 1));
        TEST_ASSERT_EQUAL_UINT64(strlen(buf_str(&buf)), buf.len);
    }
}

static void test_printf_words_errno(void) {
    struct buf buf CLEANUP_BUF = {0};
    errno = ENOENT;
    buf_printf(&buf, "%*s%m", 5000, "");
    TEST_ASSERT_EQUAL_STRING("No such file or directory", buf_str(&buf) + 5000);
}

static void test_take_of_nothing_is_an_empty_string(void) {
    struct buf buf = {0};
    char *text CLEANUP_FREE = buf_take(&buf);
    TEST_ASSERT_EQUAL_STRING("", text);
}

static void test_take_hands_over_and_empties(void) {
    struct buf buf = {0};
    buf_add_str(&buf, "mine");
    char *text CLEANUP_FREE = buf_take(&buf);
    TEST_ASSERT_EQUAL_STRING("mine", text);
    TEST_ASSERT_NULL(buf.data);
    TEST_ASSERT_EQUAL_UINT64(0, buf.len);
}
