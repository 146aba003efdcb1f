#include "collectors/source/source_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static char dir[64];
static struct source_file file;
static struct error err;

void setUp(void) {
    strcpy(dir, "/tmp/test_source_file.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    source_file_init(&file, dir, "value", NULL);
    err = (struct error){{0}};
}

void tearDown(void) {
    source_file_finish(&file);
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void write_value(const char *text) {
    FILE *to CLEANUP_FCLOSE = fopen(file.path, "we");
    TEST_ASSERT_NOT_NULL(to);
    fputs(text, to);
}

static void test_numbers(void) {
    static const struct {
        const char *text;
        int result;
        double value;
    } cases[] = {
        {"1377000000\n", 1, 1377000000}, {"-392", 1, -392},  {"1200 ma\n", 1, 1200}, {"", 0, 7},
        {"off\n", -EINVAL, 7},           {"\n", -EINVAL, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double value = 7;
        write_value(cases[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, source_file_number(&file, &value, &err),
                                      cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].value, value);
    }
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, "value:1: not understood: \"\""), err.text);
}

static void test_what_comes_and_goes(void) {
    double value = 7;
    TEST_ASSERT_EQUAL_INT(0, source_file_number(&file, &value, &err));
    write_value("5\n");
    TEST_ASSERT_EQUAL_INT(1, source_file_number(&file, &value, &err));
    write_value("6\n");
    TEST_ASSERT_EQUAL_INT(1, source_file_number(&file, &value, &err));
    TEST_ASSERT_EQUAL_DOUBLE(6, value);
    struct source_file none = {.fd = -1};
    TEST_ASSERT_EQUAL_INT(0, source_file_number(&none, &value, &err));
    TEST_ASSERT_EQUAL_STRING("", err.text);
}

/* A directory opens, and then refuses to be read. */
static void test_what_cannot_be_read_is_absent(void) {
    struct source_file refusing;
    double value = 7;
    source_file_init(&refusing, "/", "tmp", NULL);
    TEST_ASSERT_EQUAL_INT(0, source_file_number(&refusing, &value, &err));
    TEST_ASSERT_EQUAL_INT(-1, refusing.fd);
    source_file_finish(&refusing);
}

static void test_text(void) {
    static const struct {
        const char *text;
        const char *line;
    } cases[] = {{"ina3221\n", "ina3221"}, {"two words\nmore\n", "two words"}, {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_value(cases[i].text);
        char *line CLEANUP_FREE = source_file_text(dir, "value");
        TEST_ASSERT_EQUAL_STRING(cases[i].line, line);
    }
    TEST_ASSERT_NULL(source_file_text(dir, "missing"));
}
