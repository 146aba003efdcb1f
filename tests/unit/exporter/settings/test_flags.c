#include "exporter/settings/flags.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

static const struct option options[] = {
    {.name = "dry-run", .type = OPTION_BOOL, .help = "Dry"},
    {.name = "file", .type = OPTION_STRING, .help = "File"},
    {0},
};
static const struct option more[] = {
    {.name = "count", .type = OPTION_INT, .default_text = "3", .min = 1, .max = 9, .help = "Count"},
    {0},
};

static struct flags flags;
static struct problems problems;

void tearDown(void) {
    flags_finish(&flags);
    problems_finish(&problems);
}

static int read_line(const char *line) {
    static char copy[200];
    char *argv[20] = {"x"};
    int argc = 1;
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    tearDown();
    return flags_read(&flags, options, more, argc, argv, &problems);
}

static void test_flags_and_words(void) {
    TEST_ASSERT_EQUAL_INT(0, read_line("a --dry-run b --file=x --count 7 -- --c"));
    TEST_ASSERT_TRUE(settings_bool(flags.settings, "dry-run"));
    TEST_ASSERT_EQUAL_STRING("x", settings_string(flags.settings, "file"));
    TEST_ASSERT_EQUAL_INT64(7, settings_int(flags.settings, "count"));
    TEST_ASSERT_EQUAL_size_t(3, flags.n_words);
    TEST_ASSERT_EQUAL_STRING("--c", flags.words[2]);
    TEST_ASSERT_EQUAL_INT(0, read_line("--dry-run --no-dry-run"));
    TEST_ASSERT_FALSE(settings_bool(flags.settings, "dry-run"));
    TEST_ASSERT_EQUAL_INT64(3, settings_int(flags.settings, "count"));
}

static void test_mistakes(void) {
    TEST_ASSERT_EQUAL_INT(-EINVAL, read_line("--dry-rum --count=10 --file --no-file"));
    TEST_ASSERT_EQUAL_size_t(4, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("--dry-rum: unknown flag, did you mean --dry-run?", problems.lines[0]);
    TEST_ASSERT_NOT_NULL(strstr(problems.lines[1], "--count: expected a whole number"));
    TEST_ASSERT_NOT_NULL(strstr(problems.lines[2], "--file: expected"));
    TEST_ASSERT_NOT_NULL(
        strstr(problems.lines[3], "--no-file: only switches can be negated, --file takes a value"));
}
