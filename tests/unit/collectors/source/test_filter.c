#include "collectors/source/filter.h"

#include <unity.h>

static struct filter filter_of(const char *pattern) {
    struct filter filter = {0};
    TEST_ASSERT_EQUAL_INT(0, regex_create(pattern, &filter.regex, NULL));
    return filter;
}

static void test_no_filter_shows_all(void) {
    TEST_ASSERT_TRUE(filter_includes(&(struct filter){0}, "a"));
    TEST_ASSERT_FALSE(filter_excludes(&(struct filter){0}, "a"));
}

static void test_any_part_counts(void) {
    struct filter filter = filter_of("b+");
    TEST_ASSERT_TRUE(filter_includes(&filter, "abba"));
    TEST_ASSERT_TRUE(filter_excludes(&filter, "abba"));
    TEST_ASSERT_FALSE(filter_includes(&filter, "a"));
    TEST_ASSERT_FALSE(filter_excludes(&filter, "a"));
    filter_finish(&filter);
}

/* Of a name that takes too long nothing is shown. */
static void test_a_costly_name_is_not_shown(void) {
    struct filter filter = filter_of("(.+-)+ci$");
    const char *name = "------------------------------------------------ci-";
    TEST_ASSERT_LESS_THAN_INT(0, regex_search(filter.regex, name));
    TEST_ASSERT_FALSE(filter_includes(&filter, name));
    TEST_ASSERT_TRUE(filter_excludes(&filter, name));
    filter_finish(&filter);
}
