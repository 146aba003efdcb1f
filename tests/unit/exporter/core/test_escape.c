#include "exporter/core/escape.h"

#include <unity.h>

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
        escape_add(&quoted, cases[i].text, true);
        escape_add(&plain, cases[i].text, false);
        TEST_ASSERT_EQUAL_STRING(cases[i].quoted, buf_str(&quoted));
        TEST_ASSERT_EQUAL_STRING(cases[i].plain != NULL ? cases[i].plain : cases[i].quoted,
                                 buf_str(&plain));
    }
}

static void test_appends_to_what_is_there(void) {
    struct buf out CLEANUP_BUF = {0};
    buf_add_str(&out, "help ");
    escape_add(&out, "a\nb", false);
    TEST_ASSERT_EQUAL_STRING("help a\\nb", buf_str(&out));
}
