#include "exporter/settings/option.h"

#include <errno.h>
#include <unity.h>

static const char *const colours[] = {"red", "green", NULL};

static int check_slash(const char *text, struct error *err) {
    if (text[0] == '/') {
        return 0;
    }
    return error_set(err, -EINVAL, "expected a path, got \"%s\"", text);
}

static const struct option opt_bool = {.type = OPTION_BOOL};
static const struct option opt_int = {.type = OPTION_INT};
static const struct option opt_range = {.type = OPTION_INT, .min = -5, .max = 100};
static const struct option opt_size = {.type = OPTION_SIZE};
static const struct option opt_size_range = {.type = OPTION_SIZE, .min = 4096, .max = 1 << 20};
static const struct option opt_duration = {.type = OPTION_DURATION};
static const struct option opt_duration_range = {.type = OPTION_DURATION, .min = 100, .max = 90000};
static const struct option opt_string = {.type = OPTION_STRING};
static const struct option opt_checked = {.type = OPTION_STRING, .check = check_slash};
static const struct option opt_choice = {.type = OPTION_CHOICE, .choices = colours};
static const struct option opt_choices = {
    .type = OPTION_CHOICE, .choices = colours, .repeatable = true};
static const struct option opt_bare = {
    .type = OPTION_CHOICE, .choices = colours, .default_text = "red", .bare_text = "green"};
static const struct option opt_regex = {.type = OPTION_REGEX};

static void test_good_values(void) {
    static const struct {
        const struct option *option;
        const char *text;
        int64_t expected;
    } rows[] = {
        {&opt_bool, "true", 1},
        {&opt_bool, "false", 0},
        {&opt_bool, "1", 1},
        {&opt_bool, "0", 0},
        {&opt_int, "0", 0},
        {&opt_int, "007", 7},
        {&opt_int, "-12", -12},
        {&opt_int, "9223372036854775807", INT64_MAX},
        {&opt_range, "-5", -5},
        {&opt_range, "100", 100},
        {&opt_size, "0", 0},
        {&opt_size, "512", 512},
        {&opt_size, "512B", 512},
        {&opt_size, "64KiB", 65536},
        {&opt_size, "10MiB", 10 << 20},
        {&opt_size, "3GiB", INT64_C(3) << 30},
        {&opt_size_range, "4096", 4096},
        {&opt_size_range, "1MiB", 1 << 20},
        {&opt_duration, "0", 0},
        {&opt_duration, "10", 10000},
        {&opt_duration, "500ms", 500},
        {&opt_duration, "10s", 10000},
        {&opt_duration, "5m", 300000},
        {&opt_duration, "1h", 3600000},
        {&opt_duration, "2d", 172800000},
        {&opt_duration, "1m30s", 90000},
        {&opt_duration, "1h5ms", 3600005},
        {&opt_string, "", 0},
        {&opt_string, "any text", 0},
        {&opt_checked, "/x", 0},
        {&opt_choice, "red", 0},
        {&opt_choice, "green", 1},
        {&opt_choices, "green", 2},
        {&opt_choices, "green,red", 3},
        {&opt_bare, "red", 0},
        {&opt_bare, "true", 1},
        {&opt_bare, "1", 1},
        {&opt_bare, "false", 0},
        {&opt_regex, "", 0},
        {&opt_regex, "^(a|b)+$", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t number = -99;
        struct error err = {0};
        int r = option_parse(rows[i].option, rows[i].text, &number, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
        TEST_ASSERT_EQUAL_INT64_MESSAGE(rows[i].expected, number, rows[i].text);
    }
}

static void test_bad_values_say_what_was_expected(void) {
    static const char size_words[] = "expected a size such as 64KiB or 10MiB, got ";
    static const char duration_words[] = "expected a duration such as 500ms, 10s or 5m, got ";
    static const struct {
        const struct option *option;
        const char *text;
        const char *expected; /* followed by the text in quotes */
    } rows[] = {
        {&opt_bool, "yes", "expected true or false, got "},
        {&opt_bool, "", "expected true or false, got "},
        {&opt_int, "", "expected a whole number, got "},
        {&opt_int, "-", "expected a whole number, got "},
        {&opt_int, "4x", "expected a whole number, got "},
        {&opt_int, " 4", "expected a whole number, got "},
        {&opt_int, "1.5", "expected a whole number, got "},
        {&opt_int, "0x10", "expected a whole number, got "},
        {&opt_int, "9223372036854775808", "expected a whole number, got "},
        {&opt_range, "-6", "expected a whole number from -5 to 100, got "},
        {&opt_range, "101", "expected a whole number from -5 to 100, got "},
        {&opt_size, "", size_words},
        {&opt_size, "-1", size_words},
        {&opt_size, "KiB", size_words},
        {&opt_size, "10 MiB", size_words},
        {&opt_size, "10MB", size_words},
        {&opt_size, "9007199254740992GiB", size_words},
        {&opt_size_range, "4095", "expected a size from 4KiB to 1MiB, got "},
        {&opt_size_range, "2MiB", "expected a size from 4KiB to 1MiB, got "},
        {&opt_duration, "", duration_words},
        {&opt_duration, "ten", duration_words},
        {&opt_duration, "-1s", duration_words},
        {&opt_duration, "1.5s", duration_words},
        {&opt_duration, "10sec", duration_words},
        {&opt_duration, "30s1m", duration_words},
        {&opt_duration, "1m1m", duration_words},
        {&opt_duration, "1m30", duration_words},
        {&opt_duration, "9223372036854775807", duration_words},
        {&opt_duration, "9223372036854775807d", duration_words},
        {&opt_duration_range, "99ms", "expected a duration from 100ms to 1m30s, got "},
        {&opt_choice, "blue", "expected one of red, green, got "},
        {&opt_choice, "Red", "expected one of red, green, got "},
        {&opt_choice, "true", "expected one of red, green, got "},
        {&opt_choice, "red,green", "expected one of red, green, got "},
        {&opt_choices, "red,gree", "expected one of red, green, got "},
        {&opt_choices, "redgreen", "expected one of red, green, got "},
        {&opt_choices, "red,", "expected one of red, green, got "},
        {&opt_choices, ",", "expected one of red, green, got "},
        {&opt_bare, "yes", "expected one of red, green, got "},
        {&opt_checked, "x", "expected a path, got "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t number;
        struct error err = {0};
        struct buf expected CLEANUP_BUF = {0};
        buf_printf(&expected, "%s\"%s\"", rows[i].expected, rows[i].text);
        int r = option_parse(rows[i].option, rows[i].text, &number, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, r, rows[i].text);
        TEST_ASSERT_EQUAL_STRING(buf_str(&expected), err.text);
    }
}

static void test_bad_regex_says_why(void) {
    int64_t number;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT(-EINVAL, option_parse(&opt_regex, "a(b", &number, &err));
    TEST_ASSERT_EQUAL_STRING(
        "expected a regular expression, got \"a(b\": missing closing parenthesis at offset 3",
        err.text);
}

static void test_format_reads_back(void) {
    static const struct {
        const struct option *option;
        int64_t number;
        const char *expected;
    } rows[] = {
        {&opt_int, -3, "-3"},
        {&opt_size, 0, "0"},
        {&opt_size, 1023, "1023"},
        {&opt_size, 1024, "1KiB"},
        {&opt_size, 1536, "1536"},
        {&opt_size, 10 << 20, "10MiB"},
        {&opt_size, INT64_C(5) << 30, "5GiB"},
        {&opt_duration, 0, "0s"},
        {&opt_duration, 500, "500ms"},
        {&opt_duration, 10000, "10s"},
        {&opt_duration, 90000, "1m30s"},
        {&opt_duration, 3600000, "1h"},
        {&opt_duration, 90061001, "1d1h1m1s1ms"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text CLEANUP_BUF = {0};
        option_format(rows[i].option->type, rows[i].number, &text);
        TEST_ASSERT_EQUAL_STRING(rows[i].expected, buf_str(&text));
        int64_t number = -1;
        TEST_ASSERT_EQUAL_INT(0, option_parse(rows[i].option, buf_str(&text), &number, NULL));
        TEST_ASSERT_EQUAL_INT64(rows[i].number, number);
    }
}
