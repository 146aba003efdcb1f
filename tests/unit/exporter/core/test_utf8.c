#include "exporter/core/utf8.h"

#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_sequences(void) {
    static const struct {
        const char *bytes;
        size_t left;
        size_t length;
        const char *what;
    } table[] = {
        {"a", 1, 1, "ASCII"},
        {"\0", 1, 1, "NUL"},
        {"\x7f", 1, 1, "DEL"},
        {"a", 0, 0, "nothing left"},
        {"\xc2\x80", 2, 2, "U+0080"},
        {"\xdf\xbf", 2, 2, "U+07FF"},
        {"\xe0\xa0\x80", 3, 3, "U+0800"},
        {"\xed\x9f\xbf", 3, 3, "U+D7FF"},
        {"\xee\x80\x80", 3, 3, "U+E000"},
        {"\xef\xbf\xbd", 3, 3, "U+FFFD"},
        {"\xef\xbf\xbf", 3, 3, "U+FFFF"},
        {"\xf0\x90\x80\x80", 4, 4, "U+10000"},
        {"\xf4\x8f\xbf\xbf", 4, 4, "U+10FFFF"},
        {"\x80", 1, 0, "continuation alone"},
        {"\xbf\x80", 2, 0, "continuations alone"},
        {"\xc0\x80", 2, 0, "overlong NUL"},
        {"\xc1\xbf", 2, 0, "overlong U+007F"},
        {"\xe0\x80\x80", 3, 0, "overlong NUL in three"},
        {"\xe0\x9f\xbf", 3, 0, "overlong U+07FF"},
        {"\xf0\x80\x80\x80", 4, 0, "overlong NUL in four"},
        {"\xf0\x8f\xbf\xbf", 4, 0, "overlong U+FFFF"},
        {"\xed\xa0\x80", 3, 0, "first surrogate"},
        {"\xed\xbf\xbf", 3, 0, "last surrogate"},
        {"\xf4\x90\x80\x80", 4, 0, "U+110000"},
        {"\xf5\x80\x80\x80", 4, 0, "U+140000"},
        {"\xf8\x88\x80\x80\x80", 5, 0, "five bytes"},
        {"\xfe", 1, 0, "never a byte of UTF-8"},
        {"\xff", 1, 0, "never a byte of UTF-8"},
        {"\xc3\xbc", 1, 0, "cut after one of two"},
        {"\xe2\x82\xac", 1, 0, "cut after one of three"},
        {"\xe2\x82\xac", 2, 0, "cut after two of three"},
        {"\xf0\x9f\x90\x9d", 1, 0, "cut after one of four"},
        {"\xf0\x9f\x90\x9d", 3, 0, "cut after three of four"},
        {"\xc3(", 2, 0, "second byte wrong"},
        {"\xe2(\xac", 3, 0, "second byte wrong of three"},
        {"\xe2\x82(", 3, 0, "third byte wrong"},
        {"\xf0(\x90\x9d", 4, 0, "second byte wrong of four"},
        {"\xf0\x9f(\x9d", 4, 0, "third byte wrong of four"},
        {"\xf0\x9f\x90(", 4, 0, "fourth byte wrong"},
        {"\xc3\xc3", 2, 0, "second byte starts another"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        /* Exactly as many bytes as may be read, for the sanitizer to watch. */
        char *bytes CLEANUP_FREE = malloc(table[i].left + 1);
        char *start = bytes + 1;
        memcpy(start, table[i].bytes, table[i].left);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(table[i].length, utf8_sequence(start, table[i].left),
                                         table[i].what);
    }
}

/* Encodes every number of up to 21 bits in its shortest form and looks at the verdict. */
static void test_every_code_point(void) {
    for (unsigned code = 0x80; code < 0x200000; code++) {
        unsigned char b[4];
        size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t i = 0; i < n; i++) {
            unsigned char part = (unsigned char)(code >> 6 * (n - 1 - i));
            b[i] = i == 0 ? part | heads[n] : (unsigned char)(0x80 | (part & 0x3f));
        }
        int surrogate = code >= 0xd800 && code <= 0xdfff;
        size_t expected = surrogate || code > 0x10ffff ? 0 : n;
        if (utf8_sequence((const char *)b, n) != expected) {
            TEST_ASSERT_EQUAL_HEX32_MESSAGE(0, code, "this code point is judged wrongly");
        }
    }
}

#define FFFD "\xef\xbf\xbd"

static void test_escapes_and_repairs(void) {
    static const struct {
        const char *text;
        const char *quoted; /* as a label value, or as help in OpenMetrics */
        const char *plain;  /* as help in the text format; NULL: the same */
    } cases[] = {
        {"", "", NULL},
        {"plain", "plain", NULL},
        {"\"", "\\\"", "\""},
        {"\\", "\\\\", NULL},
        {"\n", "\\n", NULL},
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd", "a\"b\\\\c\\nd"},
        {"\\n", "\\\\n", NULL},
        {"\\\"", "\\\\\\\"", "\\\\\""},
        {"\n\n", "\\n\\n", NULL},
        {"tab\tcr\rbell\a", "tab\tcr\rbell\a", NULL},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", NULL},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", NULL},
        {"\xff", FFFD, NULL},
        {"a\xff\xfe\x62", "a" FFFD FFFD "b", NULL},
        {"cut \xe2\x82", "cut " FFFD FFFD, NULL},
        {"cut \xf0\x9f\x98", "cut " FFFD FFFD FFFD, NULL},
        {"lone \x80", "lone " FFFD, NULL},
        {"overlong \xc0\xaf", "overlong " FFFD FFFD, NULL},
        {"overlong \xe0\x80\xaf", "overlong " FFFD FFFD FFFD, NULL},
        {"surrogate \xed\xa0\x80", "surrogate " FFFD FFFD FFFD, NULL},
        {"beyond \xf4\x90\x80\x80", "beyond " FFFD FFFD FFFD FFFD, NULL},
        {"\xc3\"", FFFD "\\\"", FFFD "\""},
        {"\xe2\x82\n", FFFD FFFD "\\n", NULL},
        {"last \xf4\x8f\xbf\xbf", "last \xf4\x8f\xbf\xbf", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf quoted CLEANUP_BUF = {0};
        struct buf plain CLEANUP_BUF = {0};
        utf8_add_escaped(&quoted, cases[i].text, true);
        utf8_add_escaped(&plain, cases[i].text, false);
        TEST_ASSERT_EQUAL_STRING(cases[i].quoted, buf_str(&quoted));
        TEST_ASSERT_EQUAL_STRING(cases[i].plain != NULL ? cases[i].plain : cases[i].quoted,
                                 buf_str(&plain));
    }
}

static void test_appends_to_what_is_there(void) {
    struct buf out CLEANUP_BUF = {0};
    buf_add_str(&out, "help ");
    utf8_add_escaped(&out, "a\nb", false);
    TEST_ASSERT_EQUAL_STRING("help a\\nb", buf_str(&out));
}
