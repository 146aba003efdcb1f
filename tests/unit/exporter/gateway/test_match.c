#include "exporter/gateway/match.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

/* fps{plugin="cars"} with the label cam="top" */
static void check(const char *text, bool want) {
    static const struct label owner[] = {{"job", "x"}, {"plugin", "cars"}};
    static const struct label own[] = {{"cam", "top"}};
    struct push_match *match CLEANUP_PUSH_MATCH = NULL;
    struct error err = {0};
    int r = push_match_create(text, &match, &err);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", err.text, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(want, push_match_test(match, "fps", owner, 2, own, 1), text);
}

static void test_selectors(void) {
    check("fps", true);
    check("fp", false);
    check(" fps { } ", true);
    check("{__name__=\"fps\"}", true);
    check("fps{plugin=\"cars\"}", true);
    check("fps{plugin=\"bikes\"}", false);
    check("fps{plugin!=\"bikes\",cam=\"top\",}", true);
    check("{plugin=~\"c.*\", cam!~\"left|right\"}", true);
    check("{plugin=~\"car\"}", false); /* as a whole */
    check("{plugin=~\"a|cars\"}", true);
    check("{plugin!~\"c.*\",job=\"x\"}", false);
    check("{plugin=~\"c.rs|\\\\{\"}", true);
    check("{plugin=~\"((c|a)+(r+)+)+s\"}", true);
    check("fps{nobody=\"\"}", true);
    check("fps{nobody!=\"\"}", false);
    check("fps{cam=\"t\\\"op\"}", false);
}

static void check_bad(const char *text, const char *words) {
    struct push_match *match = NULL;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, push_match_create(text, &match, &err), text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_NULL(match);
}

static void test_mistakes(void) {
    check_bad("", "one condition at least");
    check_bad("{}", "one condition at least");
    check_bad("{a=\"\"}", "one condition at least");
    check_bad("{a=~\".*\"}", "one condition at least");
    check_bad("{a!=\"x\"}", "one condition at least");
    check_bad("fps{", "column 5: expected the name of a label");
    check_bad("fps{a}", "column 6: expected =, !=, =~ or !~");
    check_bad("fps{a=b}", "column 7: expected a value in double quotes");
    check_bad("fps{a=\"b}", "the value has no end");
    check_bad("fps{a=\"b\" c=\"d\"}", "expected \",\" or \"}\"");
    check_bad("fps{a=~\"(\"}", "column 11: a ( has no )");
    check_bad("fps{a=~\"b{2}\"}", "no {n,m}");
    check_bad("fps x", "expected the end");
    check_bad("fps{1a=\"b\"}", "expected the name of a label");
}

/* Whoever waits for it does not care which kind of condition took long. */
static void test_every_condition_is_work(void) {
    static const struct label labels[] = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
    struct push_match *match CLEANUP_PUSH_MATCH = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_match_create("x{a!=\"q\",z!=\"r\"}", &match, NULL));
    uint64_t before = push_match_work(match);
    TEST_ASSERT_TRUE(push_match_test(match, "x", labels, 1, labels + 1, 2));
    TEST_ASSERT_EQUAL_UINT64(3 * 5, push_match_work(match) - before);
    before = push_match_work(match);
    TEST_ASSERT_FALSE(push_match_test(match, "y", labels, 3, NULL, 0)); /* ends with the first */
    TEST_ASSERT_EQUAL_UINT64(5, push_match_work(match) - before);
}
