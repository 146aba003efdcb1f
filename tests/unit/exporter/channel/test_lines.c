#include "exporter/channel/lines.h"

#include <stdlib.h>
#include <unity.h>

#include "exporter/core/container_of.h"

static struct buf taken; /* the lines, each with '|' behind it; "!" where one was too long */
static size_t n_allowed;

static bool take(struct push_lines *lines, char *text, size_t len) {
    (void)lines;
    if (n_allowed == 0) {
        return false;
    }
    n_allowed--;
    buf_add(&taken, text, len);
    buf_add_char(&taken, '|');
    memset(text, '#', len); /* who takes it may */
    return true;
}

static void too_long(struct push_lines *lines) {
    (void)lines;
    buf_add_char(&taken, '!');
}

static struct push_lines lines;

static void begin(size_t allowed) {
    lines = (struct push_lines){.max_line = 5, .take = take, .too_long = too_long};
    buf_reset(&taken);
    n_allowed = allowed;
}

void tearDown(void) {
    push_lines_finish(&lines);
    buf_finish(&taken);
}

/* Adds it in memory of exactly its size. */
static void add(const char *text, size_t len) {
    char *copy CLEANUP_FREE = malloc(len);
    memcpy(copy, text, len);
    push_lines_add(&lines, copy, len);
}

static const struct {
    const char *in, *out;
} rows[] = {
    {"a\nbc\n", "a|bc|"},          {"a\n\nbc", "a||bc|"}, {"12345\n123456\nx\n", "12345|!x|"},
    {"1234567890123\nx\n", "!x|"}, {"123456", "!"},       {"a\n123456\n", "a|!"},
};

/* However it comes. */
static void test_in_pieces(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].in);
        for (size_t piece = 1; piece <= len; piece++) {
            begin(SIZE_MAX);
            for (size_t at = 0; at < len; at += piece) {
                add(rows[i].in + at, len - at < piece ? len - at : piece);
                TEST_ASSERT_TRUE(lines.rest.len <= lines.max_line);
            }
            push_lines_end(&lines);
            TEST_ASSERT_EQUAL_STRING(rows[i].out, buf_str(&taken));
            push_lines_finish(&lines);
        }
    }
}

/* Each is taken at the second try. */
static void release(void) {
    while (lines.held) {
        TEST_ASSERT_EQUAL_size_t(0, push_lines_resume(&lines));
        n_allowed = 1;
        push_lines_resume(&lines);
    }
}

/* Nothing is lost, nothing comes twice. */
static void test_held(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].in);
        for (size_t piece = 1; piece <= len; piece++) {
            begin(0);
            for (size_t at = 0; at < len; at += piece) {
                add(rows[i].in + at, len - at < piece ? len - at : piece);
                release();
            }
            push_lines_end(&lines);
            release();
            TEST_ASSERT_EQUAL_STRING(rows[i].out, buf_str(&taken));
            push_lines_finish(&lines);
        }
    }
}

static void test_says_how_much_was_taken(void) {
    begin(1);
    add("a\nbc\nx\ny", 8);
    TEST_ASSERT_TRUE(lines.held);
    n_allowed = 1;
    TEST_ASSERT_EQUAL_size_t(3, push_lines_resume(&lines));
    TEST_ASSERT_TRUE(lines.held);
    n_allowed = 9;
    TEST_ASSERT_EQUAL_size_t(2, push_lines_resume(&lines));
    TEST_ASSERT_FALSE(lines.held);
    TEST_ASSERT_EQUAL_STRING("a|bc|x|", buf_str(&taken));
    TEST_ASSERT_EQUAL_size_t(1, lines.rest.len);
}
