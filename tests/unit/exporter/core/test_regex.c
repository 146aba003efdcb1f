#include "exporter/core/regex.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unity.h>

#include "exporter/core/buf.h"

static struct regex *regex_of(const char *pattern) {
    struct regex *regex = NULL;
    struct error err = {0};
    int r = regex_create(pattern, &regex, &err);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", err.text, pattern);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, pattern);
    return regex;
}

static void test_whole_texts(void) {
    static const struct {
        const char *pattern, *good[4], *bad[4];
    } rows[] = {
        {"", {""}, {"a"}},
        {"a", {"a"}, {"", "b", "aa", "ab"}},
        {"a|ab", {"a", "ab"}, {"b", "aab"}},
        {"cam-(a|b)+.*", {"cam-a", "cam-abba-7"}, {"cam-", "cam-c", "a"}},
        {"top|left|", {"top", "left", ""}, {"topleft", "to"}},
        {"(a+)+b", {"ab", "aaab"}, {"b", "aaa"}},
        {"((a|b)*c)?d", {"d", "cd", "abbacd"}, {"abd", "c"}},
        {"(?:x|y)z", {"xz", "yz"}, {"z", "xyz"}},
        {"a+?b*?c??", {"a", "aabbc"}, {"", "b"}},
        {"^a$", {"a"}, {"^a$", "a\n"}},
        {"(^|-)a($|-)", {"a", "-a-", "a-"}, {"--a"}},
        {"a{2,3}", {"aa", "aaa"}, {"a", "aaaa"}},
        {"(?i)a", {"a", "A"}, {"b"}},
        {"x.z", {"xyz", "x\nz", "x\303\251z"}, {"xz", "xyyz"}},
        {"\303\251+", {"\303\251", "\303\251\303\251"}, {"", "\303\251\251"}},
        {"[^a]", {"b", "\303\251"}, {"a", "", "bb"}},
        {"[[:digit:]_]+", {"1_2"}, {"a", ":"}},
        {"\\d\\D\\w\\W\\s\\S", {"1a_- x"}, {"1a_- ", "11_- x"}},
        {"\\.\\*\\(\\\\", {".*(\\"}, {"a*(\\"}},
        {"a.*", {"ab"}, {"a\377", "\377", "\377ab"}}, /* no UTF-8 */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct regex *regex CLEANUP_REGEX = regex_of(rows[i].pattern);
        for (size_t j = 0; j < 4 && rows[i].good[j] != NULL; j++) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(1, regex_match(regex, rows[i].good[j]), rows[i].good[j]);
        }
        for (size_t j = 0; j < 4 && rows[i].bad[j] != NULL; j++) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, regex_match(regex, rows[i].bad[j]), rows[i].bad[j]);
        }
    }
}

static void test_parts_of_texts(void) {
    struct regex *regex CLEANUP_REGEX = regex_of("^/(dev|proc)($|/)|overlay");
    TEST_ASSERT_EQUAL_INT(1, regex_search(regex, "/dev"));
    TEST_ASSERT_EQUAL_INT(1, regex_search(regex, "/proc/self"));
    TEST_ASSERT_EQUAL_INT(1, regex_search(regex, "/var/overlay2"));
    TEST_ASSERT_EQUAL_INT(0, regex_search(regex, "/device"));
    TEST_ASSERT_EQUAL_INT(0, regex_search(regex, "/mnt/dev"));
}

static void check_bad(const char *pattern, const char *words) {
    struct regex *regex = NULL;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, regex_create(pattern, &regex, &err), pattern);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_NULL(regex);
}

static void repeat(struct buf *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, text);
    }
}

static void test_mistakes(void) {
    check_bad("([\\pLx]){999}", "too large when compiled");
    check_bad("a(b", "missing closing parenthesis at offset 3");
    check_bad("a)", "unmatched closing parenthesis at offset 1");
    check_bad("[a", "missing terminating ] for character class at offset 2");
    check_bad("*a", "at offset 0");
    check_bad("[z-a]", "range out of order in character class at offset 3");
    check_bad("(b*)*\\1", "reference to non-existent subpattern");
    check_bad("\377", "UTF-8 error");
    check_bad("((a{1,999}){1,999}){1,999}", "regular expression is too large");
    struct buf text CLEANUP_BUF = {0};
    repeat(&text, "a", REGEX_MAX_LEN + 1);
    check_bad(buf_str(&text), "pattern string is longer than the limit");
    buf_reset(&text);
    repeat(&text, "(", 100);
    repeat(&text, ")", 100);
    check_bad(buf_str(&text), "parentheses are too deeply nested");
}

/* Expressions that would take years end with an error, and soon. */
static void test_limits(void) {
    static const char *const patterns[] = {"(a+)+b", "(a*)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)x",
                                           "(?<x>a(?&x)?)*b"};
    struct buf text CLEANUP_BUF = {0};
    repeat(&text, "a", 10000);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        struct regex *regex CLEANUP_REGEX = regex_of(patterns[i]);
        clock_t begin = clock();
        TEST_ASSERT_EQUAL_INT_MESSAGE(-E2BIG, regex_match(regex, buf_str(&text)), patterns[i]);
        TEST_ASSERT_LESS_THAN_MESSAGE(CLOCKS_PER_SEC / 4, clock() - begin, patterns[i]);
    }
    /* Longer than any label, and no trouble for common expressions. */
    struct regex *simple CLEANUP_REGEX = regex_of(".*b.*|a+");
    buf_truncate(&text, 4096);
    TEST_ASSERT_EQUAL_INT(1, regex_match(simple, buf_str(&text)));
}
