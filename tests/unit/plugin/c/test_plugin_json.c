#include "plugin/c/plugin_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static struct waap_json_line line;
static char *copy; /* on the heap, so that a sanitizer sees what is read beyond it */

void setUp(void) {
    memset(&line, 0, sizeof(line));
    copy = NULL;
}

void tearDown(void) {
    free(copy);
}

static bool read_line(const char *text) {
    free(copy);
    copy = strdup(text);
    return waap_json_read(copy, &line);
}

static void test_values(void) {
    static const struct {
        const char *json;
        struct waap_json_value value;
    } cases[] = {
        {"480", {.type = WAAP_JSON_NUMBER, .number = 480}},
        {"-0.5e3", {.type = WAAP_JSON_NUMBER, .number = -500}},
        {"true", {.type = WAAP_JSON_BOOL, .number = 1}},
        {"false", {.type = WAAP_JSON_BOOL, .number = 0}},
        {"null", {.type = WAAP_JSON_NULL}},
        {"\"fast\"", {.type = WAAP_JSON_TEXT, .text = "fast"}},
        {"\"\"", {.type = WAAP_JSON_TEXT, .text = ""}},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", {.type = WAAP_JSON_TEXT, .text = "a\"\\/\b\f\n\r\tz"}},
        {"\"\\u00fc\\u20AC\"", {.type = WAAP_JSON_TEXT, .text = "\xc3\xbc\xe2\x82\xac"}},
        {"\"\\ud83d\\ude97\"", {.type = WAAP_JSON_TEXT, .text = "\xf0\x9f\x9a\x97"}},
        {"\"\\ud83d!\"", {.type = WAAP_JSON_TEXT, .text = "\xef\xbf\xbd!"}},
        {"\"\\ud83d\\u0041\"",
         {.type = WAAP_JSON_TEXT,
          .text = "\xef\xbf\xbd"
                  "A"}},
        {"\"\\u0000\"", {.type = WAAP_JSON_TEXT, .text = "\xef\xbf\xbd"}},
        {"{\"a\": [1, \"]}\", {}]}", {.type = WAAP_JSON_OTHER}},
        {"[]", {.type = WAAP_JSON_OTHER}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128];
        snprintf(text, sizeof(text), " { \"param\" : \"res\" ,\"value\": %s } ", cases[i].json);
        TEST_ASSERT_TRUE_MESSAGE(read_line(text), cases[i].json);
        TEST_ASSERT_EQUAL_STRING("res", line.param);
        TEST_ASSERT_TRUE(line.has_value);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].value.type, line.value.type, cases[i].json);
        TEST_ASSERT_TRUE(cases[i].value.number == line.value.number);
        if (cases[i].value.text != NULL) {
            TEST_ASSERT_EQUAL_STRING(cases[i].value.text, line.value.text);
        }
    }
}

static void test_what_is_no_object(void) {
    static const char *const cases[] = {
        "",
        " ",
        "{",
        "}",
        "[]",
        "1",
        "null",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{\"a\":01x}",
        "{\"a\":tru}",
        "{\"a\":nan}",
        "{\"a\":inf}",
        "{\"a\":0x10}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1e999}",
        "{\"a\":--1}",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":[1}",
        "{\"a\":{\"b\":",
        "{\"a\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_FALSE_MESSAGE(read_line(cases[i]), cases[i]);
    }
}

static void test_errors_and_acknowledgements(void) {
    TEST_ASSERT_TRUE(
        read_line("{\"error\": \"x: is a counter\", \"metric\": \"x\", \"more\": [1]}"));
    TEST_ASSERT_EQUAL_STRING("x: is a counter", line.error);
    TEST_ASSERT_EQUAL_STRING("x", line.metric);
    TEST_ASSERT_NULL(line.param);
    TEST_ASSERT_FALSE(line.has_value);
    TEST_ASSERT_TRUE(line.ack == -1);

    TEST_ASSERT_TRUE(read_line("{\"ack\": 17}"));
    TEST_ASSERT_TRUE(line.ack == 17);
    TEST_ASSERT_NULL(line.error);

    TEST_ASSERT_TRUE(read_line("{}"));
    TEST_ASSERT_TRUE(line.ack == -1);
    TEST_ASSERT_TRUE(read_line("{\"error\": 5, \"param\": null, \"ack\": \"1\"}"));
    TEST_ASSERT_NULL(line.error);
    TEST_ASSERT_NULL(line.param);
    TEST_ASSERT_TRUE(line.ack == -1);
}
