#include "exporter/gateway/pattern.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"

static struct push_pattern *pattern_of(const char *text) {
    struct push_pattern *pattern = NULL;
    struct error err = {0};
    int r = push_pattern_create(text, &pattern, &err);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", err.text, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, text);
    return pattern;
}

static void test_matching(void) {
    static const struct {
        const char *pattern, *good[4], *bad[4];
    } rows[] = {
        {"", {""}, {"a"}},
        {"a", {"a"}, {"", "b", "aa", "ab"}},
        {"cam-(a|b)+.*", {"cam-a", "cam-abba-7"}, {"cam-", "cam-c", "a"}},
        {"top|left|", {"top", "left", ""}, {"topleft", "to"}},
        {"(a+)+b", {"ab", "aaab"}, {"b", "aaa"}},
        {"(a*)*", {"", "aaa"}, {"b", "ab"}},
        {"((a|b)*c)?d", {"d", "cd", "abbacd"}, {"abd", "c"}},
        {"(?:x|y)z", {"xz", "yz"}, {"z", "xyz"}},
        {"a+?b*?c??", {"a", "aabbc"}, {"", "b"}},
        {"^a$", {"a"}, {"^a$"}},
        {"(^|-)a($|-)", {"a", "-a-", "a-"}, {"--a"}},
        {"a^b", {NULL}, {"ab", "a^b"}},
        {"x.z", {"xyz", "x\nz", "x\303\251z"}, {"xz", "xyyz"}},
        {"\303\251+", {"\303\251", "\303\251\303\251"}, {"", "\303\251\251"}},
        {"[^a]", {"b", "\303\251"}, {"a", "", "bb"}},
        {"[]a-c-]+", {"]abc-"}, {"d"}},
        {"[^]]", {"a"}, {"]"}},
        {"[[:digit:]_]+", {"1_2"}, {"a", ":"}},
        {"[\\d\\]]+", {"1]"}, {"\\", "d"}},
        {"\\d\\D\\w\\W\\s\\S", {"1a_- x"}, {"1a_- ", "11_- x"}},
        {"\\.\\*\\(\\\\", {".*(\\"}, {"a*(\\"}},
        {"a\\tb", {"a\tb"}, {"atb"}},
        {"[(]+[)]", {"(()"}, {"()("}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_pattern *pattern = pattern_of(rows[i].pattern);
        for (size_t j = 0; j < 4 && rows[i].good[j] != NULL; j++) {
            TEST_ASSERT_TRUE_MESSAGE(push_pattern_test(pattern, rows[i].good[j]), rows[i].good[j]);
        }
        for (size_t j = 0; j < 4 && rows[i].bad[j] != NULL; j++) {
            TEST_ASSERT_FALSE_MESSAGE(push_pattern_test(pattern, rows[i].bad[j]), rows[i].bad[j]);
        }
        push_pattern_destroy(pattern);
    }
}

static void test_mistakes(void) {
    static const struct {
        const char *pattern, *words;
    } rows[] = {
        {"(", "a ( has no )"},
        {"a)|(b", "a ) has no ("},
        {"[a", "a [ has no ]"},
        {"[", "a [ has no ]"},
        {"*a", "nothing to repeat"},
        {"a|+", "nothing to repeat"},
        {"a**", "a repetition is repeated"},
        {"a+?+", "a repetition is repeated"},
        {"a{2}", "no {n,m}"},
        {"(b{1,255}){1,255}", "no {n,m}"},
        {"(b*)*\\1", "a backslash"},
        {"a\\", "a backslash"},
        {"\\bx", "a backslash"},
        {"(?i)a", "only (?:"},
        {"[z-a]", "a range"},
        {"[a-\\d]", "a range"},
        {"[\\d-z]", "a range"},
        {"[\303\251]", "a range"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_pattern *pattern = NULL;
        struct error err = {0};
        int r = push_pattern_create(rows[i].pattern, &pattern, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, r, rows[i].pattern);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, rows[i].words), err.text);
        TEST_ASSERT_NULL(pattern);
    }
}

static void repeat(struct buf *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, text);
    }
}

/* Memory is that of the length, of whatever the expression is made. */
static void test_costly_ones(void) {
    static const struct {
        const char *before, *middle, *after;
        size_t n;
    } rows[] = {
        {"(", "a", "+)", 60},           {"(", "a", "*)", 60},        {"(a|^|$)*", "", "", 120},
        {"(a*|b*)*", "", "", 120},      {"((a*|b*)+)+", "", "", 90}, {".*a(a|b)", "", "", 128},
        {"", ".*a(a|b)", "(a|b)", 200}, {".", "", "", 1024},         {"|", "", "", 1024},
    };
    struct buf value CLEANUP_BUF = {0};
    repeat(&value, "ab", 500);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text CLEANUP_BUF = {0};
        repeat(&text, rows[i].before, rows[i].n);
        buf_add_str(&text, rows[i].middle);
        repeat(&text, rows[i].after, rows[i].n);
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        struct push_pattern *pattern = pattern_of(buf_str(&text));
        push_pattern_test(pattern, buf_str(&value));
        size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
        TEST_ASSERT_LESS_THAN_size_t_MESSAGE(before + (512 << 10), after, buf_str(&text));
        push_pattern_destroy(pattern);
    }
}

static void test_limits(void) {
    struct push_pattern *pattern = NULL;
    struct error err;
    struct buf text CLEANUP_BUF = {0};
    repeat(&text, "a", PUSH_PATTERN_MAX_LEN + 1);
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_pattern_create(buf_str(&text), &pattern, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "longer than 1024"));
    buf_reset(&text);
    repeat(&text, "(", 500);
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_pattern_create(buf_str(&text), &pattern, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "too many groups"));
}
