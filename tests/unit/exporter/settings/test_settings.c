#include "exporter/settings/settings.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

static const char *const levels[] = {"debug", "info", NULL};

static const struct option opt_bool = {.name = "a.bool", .type = OPTION_BOOL};
static const struct option opt_choice = {
    .name = "a.choice", .type = OPTION_CHOICE, .choices = levels, .default_text = "info"};
static const struct option opt_choices = {.name = "a.choices",
                                          .type = OPTION_CHOICE,
                                          .repeatable = true,
                                          .choices = levels,
                                          .default_text = "info"};
static const struct option opt_duration = {
    .name = "a.duration", .type = OPTION_DURATION, .default_text = "60s"};
static const struct option opt_int = {
    .name = "a.int", .type = OPTION_INT, .default_text = "40", .min = 0, .max = 100};
static const struct option opt_list = {
    .name = "b.list", .type = OPTION_STRING, .repeatable = true, .default_text = ":9090"};
static const struct option opt_no_list = {
    .name = "b.no-list", .type = OPTION_STRING, .repeatable = true};
static const struct option opt_regex = {
    .name = "b.regex", .type = OPTION_REGEX, .default_text = "^x"};
static const struct option opt_size = {
    .name = "b.size", .type = OPTION_SIZE, .default_text = "16KiB"};
static const struct option opt_string = {.name = "b.string", .type = OPTION_STRING};

static const struct option *const options[] = {
    &opt_bool, &opt_choice,  &opt_choices, &opt_duration, &opt_int,
    &opt_list, &opt_no_list, &opt_regex,   &opt_size,     &opt_string,
};

static struct settings *settings;
static struct error err;

void setUp(void) {
    settings = settings_create(options, ARRAY_LEN(options));
    TEST_ASSERT_NOT_NULL(settings);
}

void tearDown(void) {
    settings_destroy(settings);
}

static void set(const struct option *option, enum settings_source source, const char *text) {
    int r = settings_set(settings, option, source, text, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
}

static void check_list(const char *name, const char *const *expected, size_t n) {
    const char *const *list = settings_list(settings, name);
    for (size_t i = 0; i < n; i++) {
        TEST_ASSERT_EQUAL_STRING(expected[i], list[i]);
    }
    TEST_ASSERT_NULL(list[n]);
}

static void test_defaults(void) {
    TEST_ASSERT_FALSE(settings_bool(settings, "a.bool"));
    TEST_ASSERT_EQUAL_UINT64(1, settings_choice(settings, "a.choice"));
    TEST_ASSERT_EQUAL_STRING("info", settings_string(settings, "a.choice"));
    TEST_ASSERT_EQUAL_INT64(60000, settings_duration_ms(settings, "a.duration"));
    TEST_ASSERT_EQUAL_INT64(40, settings_int(settings, "a.int"));
    check_list("b.list", (const char *const[]){":9090"}, 1);
    check_list("b.no-list", NULL, 0);
    TEST_ASSERT_EQUAL_STRING("^x", settings_string(settings, "b.regex"));
    TEST_ASSERT_EQUAL_INT64(16384, settings_int(settings, "b.size"));
    TEST_ASSERT_EQUAL_STRING("", settings_string(settings, "b.string"));
    TEST_ASSERT_EQUAL_INT(SETTINGS_DEFAULT, settings_origin(settings, "a.int"));
}

static void test_options_are_found_by_name(void) {
    TEST_ASSERT_EQUAL_PTR(&opt_list, settings_option(settings, "b.list"));
    TEST_ASSERT_NULL(settings_option(settings, "b"));
    TEST_ASSERT_NULL(settings_option(settings, "b.lists"));
}

static void test_higher_source_wins_in_any_order(void) {
    set(&opt_int, SETTINGS_ENVIRONMENT, "2");
    set(&opt_int, SETTINGS_FILE, "1");
    TEST_ASSERT_EQUAL_INT64(2, settings_int(settings, "a.int"));
    set(&opt_int, SETTINGS_FLAG, "3");
    TEST_ASSERT_EQUAL_INT64(3, settings_int(settings, "a.int"));
    set(&opt_int, SETTINGS_FLAG, "4");
    TEST_ASSERT_EQUAL_INT64(4, settings_int(settings, "a.int"));
    TEST_ASSERT_EQUAL_INT(SETTINGS_FLAG, settings_origin(settings, "a.int"));
}

static void test_overruled_values_are_still_checked(void) {
    set(&opt_int, SETTINGS_FLAG, "3");
    TEST_ASSERT_EQUAL_INT(-EINVAL, settings_set(settings, &opt_int, SETTINGS_FILE, "101", &err));
    TEST_ASSERT_EQUAL_STRING("expected a whole number from 0 to 100, got \"101\"", err.text);
}

static void test_bad_value_changes_nothing(void) {
    set(&opt_list, SETTINGS_FILE, "one");
    TEST_ASSERT_EQUAL_INT(-EINVAL, settings_set(settings, &opt_int, SETTINGS_FLAG, "x", &err));
    TEST_ASSERT_EQUAL_INT64(40, settings_int(settings, "a.int"));
    TEST_ASSERT_EQUAL_INT(SETTINGS_DEFAULT, settings_origin(settings, "a.int"));
}

static void test_lists_append_within_a_source_and_replace_across(void) {
    set(&opt_list, SETTINGS_FILE, "one");
    set(&opt_list, SETTINGS_FILE, "two");
    check_list("b.list", (const char *const[]){"one", "two"}, 2);
    set(&opt_list, SETTINGS_FLAG, "three");
    check_list("b.list", (const char *const[]){"three"}, 1);
    set(&opt_list, SETTINGS_FILE, "late");
    check_list("b.list", (const char *const[]){"three"}, 1);
}

static void test_empty_text_empties_a_list(void) {
    set(&opt_list, SETTINGS_FILE, "one");
    set(&opt_list, SETTINGS_FLAG, "");
    check_list("b.list", NULL, 0);
    set(&opt_list, SETTINGS_FLAG, "two");
    check_list("b.list", (const char *const[]){"two"}, 1);
}

static void test_choices_add_up_within_a_source(void) {
    TEST_ASSERT_EQUAL_UINT64(2, settings_choices(settings, "a.choices"));
    set(&opt_choices, SETTINGS_FILE, "debug");
    TEST_ASSERT_EQUAL_UINT64(1, settings_choices(settings, "a.choices"));
    set(&opt_choices, SETTINGS_FILE, "info");
    TEST_ASSERT_EQUAL_UINT64(3, settings_choices(settings, "a.choices"));
    set(&opt_choices, SETTINGS_FLAG, "");
    TEST_ASSERT_EQUAL_UINT64(0, settings_choices(settings, "a.choices"));
    set(&opt_choices, SETTINGS_FLAG, "info,debug");
    TEST_ASSERT_EQUAL_UINT64(3, settings_choices(settings, "a.choices"));
}

static void test_equal_compares_values_under_a_prefix(void) {
    struct settings *other CLEANUP_SETTINGS = settings_create(options, ARRAY_LEN(options));
    set(&opt_duration, SETTINGS_FLAG, "1m");
    TEST_ASSERT_TRUE(settings_equal(settings, other, ""));
    set(&opt_list, SETTINGS_FLAG, ":9090");
    set(&opt_list, SETTINGS_FLAG, ":9091");
    TEST_ASSERT_FALSE(settings_equal(settings, other, ""));
    TEST_ASSERT_FALSE(settings_equal(settings, other, "b."));
    TEST_ASSERT_TRUE(settings_equal(settings, other, "a."));
    set(&opt_string, SETTINGS_FLAG, "x");
    TEST_ASSERT_FALSE(settings_equal(settings, other, "b.string"));
    set(&opt_bool, SETTINGS_FLAG, "true");
    TEST_ASSERT_FALSE(settings_equal(settings, other, "a.bool"));
}
