#include "placement/client/selector.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

#include "exporter/metrics/exposition_parse.h"

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
        struct selector selector CLEANUP_SELECTOR = {0};
        double value = 0;
        int r = selector_parse(cases[i].text, &selector, &error);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, cases[i].text);
        TEST_ASSERT_EQUAL_size_t_MESSAGE(cases[i].n, selector_find(&selector, &page, &value),
                                         cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].value, value);
    }
}

static void test_what_is_more_than_a_selector(void) {
    static const char *const texts[] = {
        "",
        " ",
        "1",
        "1fps",
        "rate(fps[1m])",
        "fps[1m]",
        "fps + 1",
        "fps offset 5m",
        "{a=\"b\"}",
        "fps{",
        "fps{a}",
        "fps{a=}",
        "fps{a=b}",
        "fps{a=\"b}",
        "fps{a=\"b\\",
        "fps{a=\"b\\q\"}",
        "fps{a=~\"b\"}",
        "fps{a!~\"b\"}",
        "fps{a==\"b\"}",
        "fps{1a=\"b\"}",
        "fps{a=\"b\"}}",
        "fps{a=\"b\" c=\"d\"}",
        "fps{,}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct selector selector CLEANUP_SELECTOR = {0};
        struct error error = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, selector_parse(texts[i], &selector, &error),
                                      texts[i]);
        TEST_ASSERT_TRUE(error.text[0] != '\0');
    }
}
