#include "exporter/settings/problems.h"

#include <unity.h>

static void test_places(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    problems_add(&problems, "waap.yaml", 3, 7, "unknown key \"%s\"", "wbe");
    problems_add(&problems, "--log.level", 0, 9, "expected %d words", 4);
    TEST_ASSERT_EQUAL_UINT64(2, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("waap.yaml:3:7: unknown key \"wbe\"", problems.lines[0]);
    TEST_ASSERT_EQUAL_STRING("--log.level: expected 4 words", problems.lines[1]);
}

static void test_one_plain_line_each(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    problems_add(&problems, "a\nb", 1, 1, "%s", "x\ty\x1b[2J\x7f gr\xc3\xbcn");
    TEST_ASSERT_EQUAL_STRING("a?b:1:1: x?y?[2J? gr\xc3\xbcn", problems.lines[0]);
}

static void test_many_are_kept_and_endless_ones_cut(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    for (size_t i = 1; i <= 1000; i++) {
        problems_add(&problems, "f", i, 1, "bad");
    }
    TEST_ASSERT_EQUAL_UINT64(100, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("f:1:1: bad", problems.lines[0]);
    TEST_ASSERT_EQUAL_STRING("f:100:1: bad", problems.lines[99]);
}

static void test_finish_leaves_an_empty_list(void) {
    struct problems problems = {0};
    problems_add(&problems, "f", 1, 1, "bad");
    problems_finish(&problems);
    TEST_ASSERT_EQUAL_UINT64(0, problems.n_lines);
    TEST_ASSERT_NULL(problems.lines);
    problems_finish(&problems);
}
