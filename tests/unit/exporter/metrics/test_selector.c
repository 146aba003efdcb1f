#include "exporter/metrics/selector.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/metrics/parse.h"

static const char page_text[] = "# TYPE fps gauge\n"
                                "fps{plugin=\"a\",job=\"x\"} 1\n"
                                "fps{plugin=\"a\",job=\"y\"} 2\n"
                                "fps{plugin=\"b\\\"\\n\\\\\"} 3\n"
                                "# TYPE t_seconds histogram\n"
                                "t_seconds_bucket{le=\"+Inf\"} 4\n"
                                "t_seconds_sum 5\n"
                                "t_seconds_count 4\n"
                                "plain 6\n";

static void test_finding(void) {
    static const struct {
        const char *text;
        size_t n;
        double value;
    } cases[] = {
        {"fps{job=\"x\"}", 1, 1},
        {" fps { plugin = 'a' , job != \"x\" , } ", 1, 2},
        {"fps{plugin=\"a\"}", 2, 2},
        {"fps{job=\"\"}", 1, 3},
        {"fps{plugin=\"b\\\"\\n\\\\\"}", 1, 3},
        {"fps{plugin!=\"a\"}", 1, 3},
        {"fps{job=~\"x|y\"}", 2, 2},
        {"fps{job!~\"x|y\"}", 1, 3},
        {"{job=\"x\"}", 1, 1},
        {"{__name__=~\"t_.*_sum|plain\"}", 2, 6},
        {"t_seconds_sum", 1, 5},
        {"t_seconds_count{}", 1, 4},
        {"t_seconds", 0, 0},
        {"plain", 1, 6},
        {"plai", 0, 0},
        {"plain_", 0, 0},
        {"fps{nothing=\"a\"}", 0, 0},
    };
    static const struct exposition_limits limits = {.max_families = 100,
                                                    .max_samples = 100,
                                                    .max_labels = 10,
                                                    .max_name_len = 100,
                                                    .max_value_len = 100};
    char text[sizeof(page_text)];
    struct exposition_doc page CLEANUP_EXPOSITION_DOC = {0};
    struct error error;
    memcpy(text, page_text, sizeof(page_text));
    TEST_ASSERT_EQUAL_INT(0, exposition_parse(text, strlen(page_text), &limits, &page, &error));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct selector *selector CLEANUP_SELECTOR = NULL;
        double value = 0;
        int r = selector_create(cases[i].text, &selector, &error);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, cases[i].text);
        TEST_ASSERT_EQUAL_size_t_MESSAGE(cases[i].n, selector_find(selector, &page, &value),
                                         cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].value, value);
    }
}

/* The labels of both lists are those of the series. */
static void check(const char *text, int want) {
    static const struct label owner[] = {{"job", "x"}, {"plugin", "cars"}};
    static const struct label own[] = {{"cam", "top"}};
    struct selector *selector CLEANUP_SELECTOR = NULL;
    struct error err = {0};
    int r = selector_create(text, &selector, &err);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", err.text, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(want, selector_match(selector, "fps", owner, 2, own, 1), text);
}

static void test_matching(void) {
    check("fps", 1);
    check("fp", 0);
    check(" fps { } ", 1);
    check("{__name__=\"fps\"}", 1);
    check("fps{plugin=\"cars\"}", 1);
    check("fps{plugin=\"bikes\"}", 0);
    check("fps{plugin!=\"bikes\",cam=\"top\",}", 1);
    check("{plugin=~\"c.*\", cam!~\"left|right\"}", 1);
    check("{plugin=~\"car\"}", 0); /* as a whole */
    check("{plugin=~\"a|cars\"}", 1);
    check("{plugin!~\"c.*\",job=\"x\"}", 0);
    check("{plugin=~\"c.rs|\\\\{\"}", 1);
    check("fps{nobody=\"\"}", 1);
    check("fps{nobody!=\"\"}", 0);
    check("fps{cam=\"t\\\"op\"}", 0);
}

static void test_expressions_that_cost_too_much(void) {
    char value[101] = {0};
    const struct label label = {"a", memset(value, 'a', 100)};
    struct selector *selector CLEANUP_SELECTOR = NULL;
    TEST_ASSERT_EQUAL_INT(0, selector_create("x{a!~\"(a+)+[bc]\"}", &selector, NULL));
    TEST_ASSERT_EQUAL_INT(-E2BIG, selector_match(selector, "x", &label, 1, NULL, 0));
    TEST_ASSERT_EQUAL_INT(0, selector_match(selector, "y", &label, 1, NULL, 0));
}

static void check_bad(const char *text, const char *words) {
    struct selector *selector = NULL;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, selector_create(text, &selector, &err), text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_NULL(selector);
}

static void test_mistakes(void) {
    check_bad("", "at least one matcher");
    check_bad(" ", "at least one matcher");
    check_bad("{}", "at least one matcher");
    check_bad("{a=\"\"}", "at least one matcher");
    check_bad("{a=~\".*\"}", "at least one matcher");
    check_bad("{a!=\"x\"}", "at least one matcher");
    check_bad("1", "column 1: expected the name of a metric");
    check_bad("1fps", "column 1: expected the name of a metric");
    check_bad("rate(fps[1m])", "column 5: expected the end");
    check_bad("fps[1m]", "column 4: expected the end");
    check_bad("fps + 1", "column 5: expected the end");
    check_bad("fps offset 5m", "column 5: expected the end");
    check_bad("fps{", "column 5: expected the name of a label");
    check_bad("fps{a}", "column 6: expected =, !=, =~ or !~");
    check_bad("fps{a=}", "column 7: expected a value in quotes");
    check_bad("fps{a=b}", "column 7: expected a value in quotes");
    check_bad("fps{a==\"b\"}", "column 7: expected a value in quotes");
    check_bad("fps{a=\"b}", "the value has no closing quote");
    check_bad("fps{a=\"b\\", "expected \\\\, \\n");
    check_bad("fps{a=\"b\\q\"}", "column 10: expected \\\\, \\n");
    check_bad("fps{a=\"b\" c=\"d\"}", "expected \",\" or \"}\"");
    check_bad("fps{a=\"b\"}}", "column 11: expected the end");
    check_bad("fps{a=~\"(\"}", "column 11: missing closing parenthesis at offset 1");
    check_bad("fps{1a=\"b\"}", "expected the name of a label");
    check_bad("fps{,}", "expected the name of a label");
}
