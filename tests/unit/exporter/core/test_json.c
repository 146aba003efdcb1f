#include "exporter/core/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/number.h"

static struct error err;

void setUp(void) {
    err.text[0] = '\0';
}

/* In memory of exactly its size: a sanitizer sees every byte too far. */
static char *exact(const char *text, size_t len) {
    char *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, text, len);
    return copy;
}

static void check_string(const char *text, const char *expected) {
    char *copy CLEANUP_FREE = exact(text, strlen(text));
    struct json json = json_begin(copy, strlen(text), 1);
    char *got = NULL;
    size_t len = 0;
    int r = json_read_string(&json, &got, &len, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(expected != NULL ? 0 : -EINVAL, r, text);
    if (expected != NULL) {
        TEST_ASSERT_EQUAL_STRING(expected, got);
        TEST_ASSERT_EQUAL_size_t(strlen(expected), len);
        TEST_ASSERT_TRUE(json_at_end(&json));
    }
}

static void test_strings(void) {
    static const struct {
        const char *text;
        const char *expected; /* NULL: not a string */
    } rows[] = {
        {"\"\"", ""},
        {"  \"plain\"\t", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"a\\u0041\\u00e9\\u20ac\"", "aA\xc3\xa9\xe2\x82\xac"},
        {"\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!"},
        {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\"x\\n\xc3\xa9y\"", "x\n\xc3\xa9y"},
        {"\"\\uABCD\\uabcd\"", "\xea\xaf\x8d\xea\xaf\x8d"},
        {"\"\x7f\"", "\x7f"},
        {"", NULL},
        {"\"", NULL},
        {"\"abc", NULL},
        {"\"abc\\", NULL},
        {"\"abc\\\"", NULL},
        {"\"\\x\"", NULL},
        {"\"\\u\"", NULL},
        {"\"\\u12\"", NULL},
        {"\"\\u12g4\"", NULL},
        {"\"\\u0000\"", NULL},
        {"\"\\ud83d\"", NULL},
        {"\"\\ud83d\\n\"", NULL},
        {"\"\\ud83d\\u0041\"", NULL},
        {"\"\\ude00\\ud83d\"", NULL},
        {"\"\\ud83d\\ud83d\"", NULL},
        {"\"\xff\"", NULL},
        {"\"\xc3\"", NULL},
        {"\"\xc0\xaf\"", NULL},
        {"\"\xed\xa0\x80\"", NULL},
        {"\"\xf4\x90\x80\x80\"", NULL},
        {"\"a\nb\"", NULL},
        {"\"a\tb\"", NULL},
        {"'a'", NULL},
        {"a", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_string(rows[i].text, rows[i].expected);
    }
}

static void test_nul_bytes(void) {
    static const char in_string[] = "\"a\0b\"";
    char *copy CLEANUP_FREE = exact(in_string, sizeof(in_string) - 1);
    struct json json = json_begin(copy, sizeof(in_string) - 1, 1);
    char *text;
    size_t len;
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_read_string(&json, &text, &len, &err));
    TEST_ASSERT_EQUAL_STRING("line 1, column 3: control character 0x00 in a string", err.text);
    char nul[] = "\0";
    json = json_begin(nul, 1, 1);
    TEST_ASSERT_FALSE(json_at_end(&json));
    TEST_ASSERT_FALSE(json_take(&json, '{'));
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_skip(&json, &err));
    TEST_ASSERT_EQUAL_STRING("line 1, column 1: expected a number, got byte 0x00", err.text);
}

static void test_numbers_are_those_of_number_parse(void) {
    static const char *const rows[] = {
        "0",
        "-0",
        "1",
        "29.7",
        "1e3",
        "1E+3",
        "1.5e-7",
        "0.1",
        "1e308",
        "-1e-400",
        "123456789012345678901234567890",
        "0.30000000000000004",
        "1e22",
        "4503599627370496.5",
        "9007199254740993",
        "0e999999999999999999999",
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *copy CLEANUP_FREE = exact(rows[i], strlen(rows[i]));
        struct json json = json_begin(copy, strlen(rows[i]), 1);
        double got, expected;
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, json_read_number(&json, &got, &err), rows[i]);
        TEST_ASSERT_EQUAL_INT(0, number_parse(rows[i], strlen(rows[i]), &expected));
        TEST_ASSERT_EQUAL_MEMORY(&expected, &got, sizeof(got));
        TEST_ASSERT_TRUE(json_at_end(&json));
    }
}

static void test_no_numbers(void) {
    static const char *const rows[] = {
        "",      "-",      "+1",   ".5",       "1.",        "1.e3",   "1e",  "1e+",
        "01",    "-01",    "0x1",  "Infinity", "-Infinity", "NaN",    "nan", "\"1\"",
        "1e309", "-1e309", "true", "null",     "--1",       "1e1.5x", "inf",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *copy CLEANUP_FREE = exact(rows[i], strlen(rows[i]));
        struct json json = json_begin(copy, strlen(rows[i]), 1);
        double got;
        int r = json_read_number(&json, &got, &err);
        TEST_ASSERT_TRUE_MESSAGE(r < 0 || !json_at_end(&json), rows[i]);
    }
}

/* 999! has 2,565 digits, more than a double holds; 170! has 307. */
static void test_large_factorials(void) {
    struct buf text CLEANUP_BUF = {0};
    for (int i = 0; i < 2565; i++) {
        buf_add_char(&text, '4');
    }
    struct json json = json_begin(text.data, text.len, 7);
    double number;
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_read_number(&json, &number, &err));
    TEST_ASSERT_EQUAL_STRING(
        "line 7, column 1: number of 2565 characters is too large for a 64-bit float", err.text);
    json = json_begin(text.data, 307, 1);
    TEST_ASSERT_EQUAL_INT(0, json_read_number(&json, &number, &err));
    TEST_ASSERT_TRUE(isfinite(number));
}

static void test_words_for_what_json_lacks(void) {
    char text[] = "\"NaN\" \"+Inf\" \"-Inf\" \"Inf\" NaN";
    struct json json = json_begin(text, strlen(text), 1);
    double number;
    TEST_ASSERT_EQUAL_INT(0, json_read_value(&json, &number, &err));
    TEST_ASSERT_TRUE(isnan(number));
    TEST_ASSERT_EQUAL_INT(0, json_read_value(&json, &number, &err));
    TEST_ASSERT_TRUE(number == INFINITY);
    TEST_ASSERT_EQUAL_INT(0, json_read_value(&json, &number, &err));
    TEST_ASSERT_TRUE(number == -INFINITY);
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_read_value(&json, &number, &err));
    TEST_ASSERT_EQUAL_STRING("line 1, column 21: expected a number, \"NaN\", \"+Inf\" or \"-Inf\", "
                             "got \"Inf\"",
                             err.text);
    json.at += 6;
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_read_value(&json, &number, &err));
    TEST_ASSERT_EQUAL_STRING(
        "line 1, column 27: JSON has no NaN or Infinity: write \"NaN\", \"+Inf\", \"-Inf\"",
        err.text);
}

static void test_skip(void) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{}", true},
        {"[]", true},
        {" [ 1 , \"a\" , {\"b\" : [true,false,null]} , [] , {} ] ", true},
        {"null", true},
        {"-1.5e3", true},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", true},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", false},
        {"", false},
        {"[", false},
        {"{", false},
        {"[1", false},
        {"[1,", false},
        {"[1,]", false},
        {"[,1]", false},
        {"[1 2]", false},
        {"{\"a\"}", false},
        {"{\"a\":}", false},
        {"{\"a\":1,}", false},
        {"{,}", false},
        {"{a:1}", false},
        {"{\"a\":1 \"b\":2}", false},
        {"[1}", false},
        {"{\"a\":1]", false},
        {"nul", false},
        {"tru", false},
        {"]", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *copy CLEANUP_FREE = exact(rows[i].text, strlen(rows[i].text));
        struct json json = json_begin(copy, strlen(rows[i].text), 1);
        int r = json_skip(&json, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].good ? 0 : -EINVAL, r, rows[i].text);
        TEST_ASSERT_TRUE(r < 0 || json_at_end(&json));
    }
}

static void test_says_where(void) {
    char text[] = "{\n  \"a\\nb\": 1,\n\t\"c\": ?}";
    struct json json = json_begin(text, strlen(text), 1);
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_skip(&json, &err));
    TEST_ASSERT_EQUAL_STRING("line 3, column 7: expected a number, got ?", err.text);
}

static int add_value(struct json *json, const char *key, void *context, struct error *error) {
    double number = 0;
    if (json_peek(json) == '[') {
        return json_each(json, '[', "a list", add_value, context, error);
    }
    int r = json_read_number(json, &number, error);
    buf_printf(context, "%s=%g ", key != NULL ? key : "", number);
    return r;
}

static void test_each_value(void) {
    struct buf out CLEANUP_BUF = {0};
    char text[] = "{\"a\": 1, \"b\": [2, 3], \"c\": []}", broken[] = "{\"a\": [1, x]}",
         list[] = "[]";
    struct json json = json_begin(text, strlen(text), 1);
    TEST_ASSERT_EQUAL_INT(0, json_each(&json, '{', "an object", add_value, &out, &err));
    TEST_ASSERT_EQUAL_STRING("a=1 =2 =3 ", buf_str(&out));
    TEST_ASSERT_TRUE(json_at_end(&json));
    json = json_begin(broken, strlen(broken), 1);
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_each(&json, '{', "an object", add_value, &out, &err));
    json = json_begin(list, strlen(list), 1);
    TEST_ASSERT_EQUAL_INT(-EINVAL, json_each(&json, '{', "an object", add_value, &out, &err));
    TEST_ASSERT_EQUAL_STRING("line 1, column 1: expected an object", err.text);
}

static void test_writes_strings(void) {
    struct buf out CLEANUP_BUF = {0};
    json_add_string(&out, "a\"b\\c\n\x01\xc3\xa9\xff");
    TEST_ASSERT_EQUAL_STRING("\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa9\xef\xbf\xbd\"", buf_str(&out));
}

static void test_writes_commas(void) {
    struct buf out CLEANUP_BUF = {0};
    json_open(&out, NULL, '{');
    json_put_string(&out, "a\"b", "{[:,");
    json_put_number(&out, "n", 0.5);
    json_put_bool(&out, "t", true);
    json_open(&out, "list", '[');
    json_put_number(&out, NULL, INFINITY);
    json_put(&out, NULL, "%d", -1);
    json_put(&out, NULL, "null");
    json_open(&out, NULL, '{');
    json_close(&out, '}');
    json_open(&out, NULL, '[');
    json_close(&out, ']');
    json_put_string(&out, NULL, "");
    json_close(&out, ']');
    json_open(&out, "o", '{');
    json_put_bool(&out, "f", false);
    json_close(&out, '}');
    json_put_string(&out, "", "");
    json_close(&out, '}');
    buf_add_char(&out, '\n');
    json_open(&out, NULL, '{'); /* the next line */
    TEST_ASSERT_EQUAL_STRING(
        "{\"a\\\"b\":\"{[:,\",\"n\":0.5,\"t\":true,\"list\":[\"+Inf\",-1,null,{},"
        "[],\"\"],\"o\":{\"f\":false},\"\":\"\"}\n{",
        buf_str(&out));
}
