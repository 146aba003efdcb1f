#include "profiler/analysis/report_text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <unity.h>

static void test_values_for_people(void) {
    static const struct {
        double value;
        const char *unit, *text;
    } rows[] = {
        {0, "s", "0 s"},
        {0.0314, "s", "31.4 ms"},
        {2e-6, "s", "2 µs"},
        {3600, "s", "3600 s"},
        {1.5e9, "J", "1.5 GJ"},
        {461373440, "B", "440 MiB"},
        {512, "B", "512 B"},
        {1536, "B", "1.5 KiB"},
        {0.55, "ratio", "55 %"},
        {57.83, "celsius", "57.83 °C"},
        {20.0123, "/s", "20.01 /s"},
        {-3.5, "W", "-3.5 W"},
        {1234567, "", "1.235 M"},
        {42, "", "42"},
        {NAN, "s", "–"},
        {1, "<b>", "1 <b>"},
        {1, "a unit of more than thirty-two characters", "1"},
        {1e300, "", "1e+291 G"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_STRING(rows[i].text, text_human(rows[i].value, rows[i].unit).text);
    }
}

static void test_markup(void) {
    static const char *const rows[][2] = {
        {"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"},
        {"\x01\x1b", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\n\tb", "a\n\tb"},
        {"\xff"
         "x",
         "\xef\xbf\xbdx"},
        {"\xef\xbf\xbf", "\xef\xbf\xbd"},
        {"é速🚗", "é速🚗"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text CLEANUP_BUF = {0};
        text_markup(&text, "%s", rows[i][0]);
        TEST_ASSERT_EQUAL_STRING(rows[i][1], buf_str(&text));
    }
    struct buf text CLEANUP_BUF = {0};
    text_markup(&text, "<a b=\"%s\">%d %u %zu %.1f%% %.3g</a>", "<", -1, 2U, SIZE_MAX, 1.25, 1e-9);
    TEST_ASSERT_EQUAL_STRING("<a b=\"&lt;\">-1 2 18446744073709551615 1.2% 1e-09</a>",
                             buf_str(&text));
}

static void test_json(void) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_char(&text, '{');
    text_put_number(&text, "a\"b", 0.1);
    text_put_number(&text, "c", INFINITY);
    TEST_ASSERT_EQUAL_STRING("{\"a\\\"b\":0.1,\"c\":null", buf_str(&text));
}

static int write_text(FILE *to, const void *text, struct error *err) {
    fputs(text, to);
    return strcmp(text, "half") == 0 ? error_set(err, -ECANCELED, "no more") : 0;
}

static int write_file(const char *dir, const char *text, struct error *err) {
    return text_file_replace(dir, "x", write_text, text, err);
}

/* What was there stays until the rest is whole. */
static void test_files_are_replaced_at_once(void) {
    char dir[] = "/tmp/waap-test-text-XXXXXX";
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    TEST_ASSERT_EQUAL(0, write_file(dir, "first", NULL));
    TEST_ASSERT_EQUAL(-ECANCELED, write_file(dir, "half", NULL));
    char path[64], read[16] = "";
    snprintf(path, sizeof(path), "%s/x", dir);
    FILE *stored = fopen(path, "r");
    TEST_ASSERT_NOT_NULL(stored);
    TEST_ASSERT_NOT_NULL(fgets(read, sizeof(read), stored));
    fclose(stored);
    TEST_ASSERT_EQUAL_STRING("first", read);
    unlink(path);
    TEST_ASSERT_EQUAL(0, rmdir(dir)); /* nothing else is left */
    struct error err = {0};
    TEST_ASSERT_LESS_THAN(0, write_file(dir, "first", &err));
    TEST_ASSERT_NOT_EQUAL('\0', err.text[0]);
}

/* A device without room instead of the file that is not complete yet. */
static void test_nothing_is_left_of_what_could_not_be_written(void) {
    char dir[] = "/tmp/waap-text-XXXXXX";
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    char partial[64];
    snprintf(partial, sizeof(partial), "%s/.x.part", dir);
    TEST_ASSERT_EQUAL(0, symlink("/dev/full", partial));
    struct error err = {0};
    TEST_ASSERT_EQUAL(-ENOSPC, write_file(dir, "first", &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "/x: No space left"));
    TEST_ASSERT_EQUAL(0, rmdir(dir));
}
