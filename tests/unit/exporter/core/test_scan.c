#include "exporter/core/scan.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_words(void) {
    const char *cursor = "  one\ttwo\nthree";
    struct scan_word word;
    TEST_ASSERT_TRUE(scan_word(&cursor, &word));
    TEST_ASSERT_TRUE(scan_word_equal(word, "one"));
    TEST_ASSERT_FALSE(scan_word_equal(word, "on"));
    TEST_ASSERT_FALSE(scan_word_equal(word, "ones"));
    TEST_ASSERT_TRUE(scan_word(&cursor, &word));
    TEST_ASSERT_TRUE(scan_word_equal(word, "two"));
    TEST_ASSERT_FALSE(scan_word(&cursor, &word));
}

static void test_numbers(void) {
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"  17 ", true, 17},
        {"18446744073709551615\n", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"\n5", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {"1x", false, 0},
        {"0x10", false, 0},
        {"1.5", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *cursor = cases[i].text;
        uint64_t value = 0;
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].ok, scan_u64(&cursor, &value), cases[i].text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(cases[i].value, value, cases[i].text);
    }
}

static void test_doubles(void) {
    static const struct {
        const char *text;
        bool ok;
        double value;
    } cases[] = {
        {"-392\n", true, -392}, {" 4.5 C", true, 4.5}, {"1e3", true, 1000}, {"", false, 7},
        {"\n5", false, 7},      {"12mW", false, 7},    {"nan\n", false, 7}, {"-inf", false, 7},
        {"1e999", false, 7},    {"0x10", false, 7},    {"45,5", false, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *cursor = cases[i].text;
        double value = 7;
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].ok, scan_double(&cursor, &value), cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].value, value);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].ok, cursor != cases[i].text, cases[i].text);
    }
}

static void test_runs_of_numbers(void) {
    static const struct {
        const char *text;
        int n;
    } cases[] = {
        {"", 0}, {" \n7", 0}, {"1 2", 2}, {"1 2 3\n4", 3}, {"1 2 3 4 x", 4}, {"1 x", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *cursor = cases[i].text;
        uint64_t values[4];
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].n, scan_numbers(&cursor, values, 4), cases[i].text);
    }
}

static int count_or_fail(void *context, size_t number, const char *line) {
    (void)number;
    ++*(int *)context;
    return line[0] == '!' ? -EINVAL : line[0] == '#' ? -ENOMEM : 0;
}

static void test_lines_go_on_after_a_bad_one(void) {
    struct error err = {{0}};
    int calls = 0;
    int r = scan_lines("a\n\n  \n!bad one\n#\nlast", "/proc/x", count_or_fail, &calls, &err);
    TEST_ASSERT_EQUAL_INT(-EINVAL, r);
    TEST_ASSERT_EQUAL_STRING("/proc/x:4: not understood: \"!bad one\"", err.text);
    TEST_ASSERT_EQUAL_INT(4, calls);
    TEST_ASSERT_EQUAL_INT(-ENOMEM, scan_lines("#", "/proc/x", count_or_fail, &calls, &err));
    TEST_ASSERT_EQUAL_STRING("/proc/x:1: Cannot allocate memory", err.text);
    TEST_ASSERT_EQUAL_INT(0, scan_lines("", "/proc/x", count_or_fail, &calls, NULL));
}

static void test_next_line(void) {
    TEST_ASSERT_EQUAL_STRING("b\n", scan_next_line("a\nb\n"));
    TEST_ASSERT_EQUAL_STRING("", scan_next_line("b\n"));
    TEST_ASSERT_EQUAL_STRING("", scan_next_line("b"));
}
