#include "plugin/c/plugin_text.h"

#include <stdlib.h>
#include <unity.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static void test_json_strings(void) {
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"plain text", "\"plain text\""},
        {"a\"b\\c", "\"a\\u0022b\\u005cc\""},
        {"line\nend\t\x7f", "\"line\\u000aend\\u0009\\u007f\""},
        {"gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x97", "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x97\""},
        {"\xff", "\"\xef\xbf\xbd\""},
        {"cut \xc3", "\"cut \xef\xbf\xbd\""},
        {"cut \xf0\x9f\x9a", "\"cut \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"long \xc0\x80", "\"long \xef\xbf\xbd\xef\xbf\xbd\""},
        {"half \xed\xa0\x80", "\"half \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"high \xf4\x90\x80\x80", "\"high \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct waap_text text = {0};
        waap_text_json(&text, cases[i].text);
        TEST_ASSERT_EQUAL_STRING(cases[i].json, text.data);
        waap_text_finish(&text);
    }
}

static void test_numbers_read_back_the_same(void) {
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {29.97, "29.97"},
        {1e308, "1e+308"},
        {5e-324, "4.94065645841247e-324"},
        {1.0 / 3, "0.33333333333333331"},
        {0x1p53, "9007199254740992"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct waap_text text = {0};
        waap_text_number(&text, cases[i].number);
        TEST_ASSERT_EQUAL_STRING(cases[i].text, text.data);
        TEST_ASSERT_TRUE(strtod(text.data, NULL) == cases[i].number);
        waap_text_finish(&text);
    }
}

static void test_names(void) {
    static const struct {
        const char *name;
        bool colons;
        const char *wanted;
    } cases[] = {
        {"frames_total", true, "frames_total"},
        {"env.count.car", true, "env_count_car"},
        {"9lives", true, "_9lives"},
        {"a:b", true, "a:b"},
        {"a:b", false, "a_b"},
        {"gr\xc3\xbcn", true, "gr__n"},
        {"{}\"\n", true, "____"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *name = waap_text_name(cases[i].name, cases[i].colons);
        TEST_ASSERT_EQUAL_STRING(cases[i].wanted, name);
        free(name);
    }
}

static void test_grows(void) {
    struct waap_text text = {0};
    for (int i = 0; i < 10000; i++) {
        waap_text_puts(&text, "0123456789");
    }
    TEST_ASSERT_FALSE(text.failed);
    TEST_ASSERT_EQUAL_size_t(100000, text.len);
    TEST_ASSERT_EQUAL_STRING("6789", text.data + 99996);
    waap_text_finish(&text);
    TEST_ASSERT_NULL(text.data);
}
