#include "exporter/core/number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

/* Doubles are compared as bits: 0 and -0 differ, a NaN equals itself. */
static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static const char *format(double value) {
    static char text[NUMBER_MAX_LEN + 1];
    text[number_format(value, text)] = '\0';
    return text;
}

/* A fixed sequence (splitmix64), so that a failure can be repeated. */
static uint64_t random_state;

static uint64_t random_u64(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void check_reads_back(double value) {
    const char *text = format(value);
    double back = strtod(text, NULL);
    double parsed = 0;
    int result = number_parse(text, strlen(text), &parsed);
    if (bits_of(back) != bits_of(value) || result != 0 || bits_of(parsed) != bits_of(value) ||
        strlen(text) > 24) {
        char message[160];
        snprintf(message, sizeof(message), "%a: wrote %s, read %a, parsed %d %a", value, text, back,
                 result, parsed);
        TEST_FAIL_MESSAGE(message);
    }
}

/* "-0.00120" to "12": the digits that count, and how many. */
static size_t significant_digits(const char *text, char *digits) {
    size_t n = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9' && (n > 0 || *text != '0')) {
            digits[n++] = *text;
        }
    }
    while (n > 0 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return n;
}

/* The C library's nearest decimal of n digits must have our digits, and with one digit less must
 * not read back. Powers of two have a wider side, where a decimal that is not the nearest of its
 * length may read back; there only the upper limit holds. */
static void check_shortest(double value) {
    check_reads_back(value);
    char ours[64], theirs[64], text[64];
    size_t n = significant_digits(format(value), ours);
    bool uneven = (bits_of(value) & ((UINT64_C(1) << 52) - 1)) == 0;
    snprintf(text, sizeof(text), "%.*e", (int)n - 1, value);
    significant_digits(text, theirs);
    if (!uneven || strtod(text, NULL) == value) {
        TEST_ASSERT_EQUAL_STRING_MESSAGE(theirs, ours, "not the closest");
    }
    if (n > 1) {
        snprintf(text, sizeof(text), "%.*e", (int)n - 2, value);
        TEST_ASSERT_FALSE_MESSAGE(strtod(text, NULL) == value, text);
    }
}

static void test_format_table(void) {
    static const struct {
        double value;
        const char *text;
        const char *canonical;
    } table[] = {
        {0, "0", "0.0"},
        {-0.0, "-0", "-0.0"},
        {1, "1", "1.0"},
        {-1, "-1", "-1.0"},
        {9, "9", "9.0"},
        {10, "10", "10.0"},
        {99, "99", "99.0"},
        {100, "100", "100.0"},
        {12345, "12345", "12345.0"},
        {100000, "100000", "100000.0"},
        {123456, "123456", "123456.0"},
        {1000000, "1000000", "1e+06"},
        {1234567, "1234567", "1.234567e+06"},
        {0x1p32, "4294967296", "4.294967296e+09"},
        {0x1p53 - 1, "9007199254740991", "9.007199254740991e+15"},
        {0x1p53, "9007199254740992", "9.007199254740992e+15"},
        {-0x1p53, "-9007199254740992", "-9.007199254740992e+15"},
        {0x1p53 + 2, "9007199254740994", "9.007199254740994e+15"},
        {9999999999999998, "9999999999999998", "9.999999999999998e+15"},
        {1e16, "1e+16", "1e+16"},
        {0x1p60, "1.152921504606847e+18", "1.152921504606847e+18"},
        {1e21, "1e+21", "1e+21"},
        {1e22, "1e+22", "1e+22"},
        {1e23, "1e+23", "1e+23"},
        {9.999999999999997e22, "9.999999999999997e+22", "9.999999999999997e+22"},
        {1e100, "1e+100", "1e+100"},
        {0.1, "0.1", "0.1"},
        {-0.1, "-0.1", "-0.1"},
        {0.5, "0.5", "0.5"},
        {0.005, "0.005", "0.005"},
        {36.6, "36.6", "36.6"},
        {12.345, "12.345", "12.345"},
        {1.000001, "1.000001", "1.000001"},
        {2.5000001, "2.5000001", "2.5000001"},
        {123456789.123456, "123456789.123456", "1.23456789123456e+08"},
        {999999999.999999, "999999999.999999", "9.99999999999999e+08"},
        {1000000000.5, "1000000000.5", "1.0000000005e+09"},
        {0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333", "0.3333333333333333"},
        {0.000123, "0.000123", "0.000123"},
        {0.0001, "0.0001", "0.0001"},
        {0.00012345678901234567, "0.00012345678901234567", "0.00012345678901234567"},
        {0.00009999, "9.999e-05", "9.999e-05"},
        {0.00001, "1e-05", "1e-05"},
        {1.5e-7, "1.5e-07", "1.5e-07"},
        {-1.2345678901234568e-300, "-1.2345678901234568e-300", "-1.2345678901234568e-300"},
        {DBL_TRUE_MIN, "5e-324", "5e-324"},
        {2 * DBL_TRUE_MIN, "1e-323", "1e-323"},
        {3 * DBL_TRUE_MIN, "1.5e-323", "1.5e-323"},
        {DBL_MIN, "2.2250738585072014e-308", "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"},
        {INFINITY, "+Inf", "+Inf"},
        {-INFINITY, "-Inf", "-Inf"},
        {NAN, "NaN", "NaN"},
        {-NAN, "NaN", "NaN"},
        /* Right between two decimals of 17 digits: the even one. */
        {1125899906842624.25, "1125899906842624.2", "1.1258999068426242e+15"},
        {1125899906842624.75, "1125899906842624.8", "1.1258999068426248e+15"},
        /* Powers of two whose shortest text is on the wider side, not the nearest of its length. */
        {0x1p-44, "5.684341886080802e-14", "5.684341886080802e-14"},
        {0x1p976, "6.386688990511104e+293", "6.386688990511104e+293"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[NUMBER_MAX_LEN + 1];
        text[number_format(table[i].value, text)] = '\0';
        TEST_ASSERT_EQUAL_STRING(table[i].text, text);
        text[number_format_canonical(table[i].value, text)] = '\0';
        TEST_ASSERT_EQUAL_STRING(table[i].canonical, text);
    }
}

static void check_u64(uint64_t value) {
    char text[NUMBER_MAX_LEN + 1], expected[NUMBER_MAX_LEN];
    text[number_format_u64(value, text)] = '\0';
    snprintf(expected, sizeof(expected), "%llu", (unsigned long long)value);
    TEST_ASSERT_EQUAL_STRING(expected, text);
}

static void test_u64_at_every_length(void) {
    uint64_t power = 1;
    for (int i = 0; i < 20; i++, power *= 10) {
        check_u64(power - 1);
        check_u64(power);
        check_u64(power + 1);
        check_u64(power * 9 / 8);
    }
    for (int i = 0; i < 64; i++) {
        check_u64(UINT64_C(1) << i);
        check_u64((UINT64_C(1) << i) - 1);
    }
    check_u64(UINT64_MAX);
}

static void test_whole_numbers_have_no_exponent(void) {
    random_state = 1;
    for (int i = 0; i < 200000; i++) {
        uint64_t whole = random_u64() >> (11 + random_u64() % 53);
        char expected[NUMBER_MAX_LEN];
        snprintf(expected, sizeof(expected), "-%llu", (unsigned long long)whole);
        TEST_ASSERT_EQUAL_STRING(expected, format(-(double)whole));
        TEST_ASSERT_EQUAL_STRING(expected + 1, format((double)whole));
    }
}

static void test_random_bits_read_back(void) {
    random_state = 2;
    for (int i = 0; i < 500000; i++) {
        double value = from_bits(random_u64());
        if (isfinite(value)) {
            check_reads_back(value);
        }
    }
}

static void test_random_bits_are_shortest(void) {
    random_state = 3;
    for (int i = 0; i < 50000; i++) {
        double value = from_bits(random_u64());
        if (isfinite(value)) {
            check_shortest(value);
        }
    }
}

/* What measurements look like: k / 10^n, and values near 1 with all digits. */
static void test_decimals_are_shortest(void) {
    random_state = 4;
    double power = 1;
    for (int n = 0; n <= 9; n++, power *= 10) {
        for (int i = 0; i < 20000; i++) {
            uint64_t k = 1 + (random_u64() >> (14 + random_u64() % 48));
            check_shortest((double)k / power);
            check_reads_back(-(double)k / power);
        }
    }
    for (int i = 0; i < 50000; i++) {
        check_shortest((double)(random_u64() >> 11) * 0x1p-53 * 1000 + 1e-9);
    }
}

static void test_subnormals_are_shortest(void) {
    for (uint64_t bits = 1; bits <= 3000; bits++) {
        check_shortest(from_bits(bits));
    }
    random_state = 5;
    for (int i = 0; i < 20000; i++) {
        check_shortest(from_bits(1 + (random_u64() >> (12 + random_u64() % 52))));
    }
}

/* Every exponent of two and of ten, with the neighbours on both sides. */
static void test_powers_and_their_neighbours(void) {
    for (int e = -1074; e <= 1023; e++) {
        double value = ldexp(1, e);
        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        if (e > -1074) {
            check_shortest(nextafter(value, 0));
        }
    }
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof(text), "1e%d", e);
        double value = strtod(text, NULL);
        check_shortest(value);
        check_shortest(nextafter(value, INFINITY));
        check_shortest(nextafter(value, 0));
    }
}

static void test_around_the_limits_of_the_fast_paths(void) {
    static const double limits[] = {0x1p53, 1e15, 1e16, 1e9, 1e-4, 1e-3, 1e-6, 0.5, 1};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        double above = limits[i], below = limits[i];
        for (int j = 0; j < 2000; j++) {
            check_shortest(above);
            check_shortest(below);
            above = nextafter(above, INFINITY);
            below = nextafter(below, 0);
        }
    }
}

static void test_parse_table(void) {
    static const struct {
        const char *text;
        double value;
    } table[] = {
        {"0", 0},
        {"-0", -0.0},
        {"+0.0", 0},
        {"00012", 12},
        {"1.", 1},
        {".5", 0.5},
        {"-.5", -0.5},
        {"+1.5", 1.5},
        {"1e5", 1e5},
        {"1E+5", 1e5},
        {"1e-05", 1e-5},
        {".5e1", 5},
        {"1.e1", 10},
        {"0.1", 0.1},
        {"36.6", 36.6},
        {"123456789012345", 123456789012345},
        {"1234567890123456789", 1234567890123456789.0},
        {"123456789012345e22", 123456789012345e22},
        {"123456789012345e23", 123456789012345e23},
        {"1e22", 1e22},
        {"1e23", 1e23},
        {"1e-22", 1e-22},
        {"1e-23", 1e-23},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.0000000000000000000000000000001", 9007199254740994.0},
        {"1.7976931348623157e308", DBL_MAX},
        {"1.7976931348623158e308", DBL_MAX},
        {"4.9e-324", DBL_TRUE_MIN},
        {"2e-324", 0},
        {"-1e-400", -0.0},
        {"1e-99999999999999999999999999", 0},
        {"0e99999999999999999999999999", 0},
        {"0.000000000000000000000000000000000000001e39", 1},
        {"inf", INFINITY},
        {"+Inf", INFINITY},
        {"-INF", -INFINITY},
        {"Infinity", INFINITY},
        {"-infinity", -INFINITY},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        double value = 42;
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, number_parse(table[i].text, strlen(table[i].text), &value),
                                      table[i].text);
        TEST_ASSERT_EQUAL_HEX64_MESSAGE(bits_of(table[i].value), bits_of(value), table[i].text);
    }
    static const char *const nans[] = {"nan", "NaN", "NAN"};
    for (size_t i = 0; i < ARRAY_LEN(nans); i++) {
        double value = 42;
        TEST_ASSERT_EQUAL_INT(0, number_parse(nans[i], 3, &value));
        TEST_ASSERT_TRUE(isnan(value));
    }
}

static void test_parse_refuses(void) {
    static const struct {
        const char *text;
        int result;
    } table[] = {
        {"", -EINVAL},
        {"+", -EINVAL},
        {"-", -EINVAL},
        {".", -EINVAL},
        {"-.", -EINVAL},
        {"e5", -EINVAL},
        {".e5", -EINVAL},
        {"1e", -EINVAL},
        {"1e+", -EINVAL},
        {"1e+-5", -EINVAL},
        {"1e5.0", -EINVAL},
        {"1.2.3", -EINVAL},
        {" 1", -EINVAL},
        {"1 ", -EINVAL},
        {"1\n", -EINVAL},
        {"--1", -EINVAL},
        {"+-1", -EINVAL},
        {"0x10", -EINVAL},
        {"0x1p3", -EINVAL},
        {"1_000", -EINVAL},
        {"1,5", -EINVAL},
        {"1f", -EINVAL},
        {"nan(1)", -EINVAL},
        {"-nan", -EINVAL},
        {"+NaN", -EINVAL},
        {"na", -EINVAL},
        {"nano", -EINVAL},
        {"in", -EINVAL},
        {"infinit", -EINVAL},
        {"infinite", -EINVAL},
        {"++inf", -EINVAL},
        {"abc", -EINVAL},
        {"1e309", -ERANGE},
        {"-1e309", -ERANGE},
        {"1.8e308", -ERANGE},
        {"1e99999999999", -ERANGE},
        {"1.7976931348623159e308", -ERANGE},
        {"1e99999999999999999999999999", -ERANGE},
        {"1e99999999999999999999999999x", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        double value = 42;
        int result = number_parse(table[i].text, strlen(table[i].text), &value);
        TEST_ASSERT_EQUAL_INT_MESSAGE(table[i].result, result, table[i].text);
        TEST_ASSERT_TRUE_MESSAGE(value == 42, table[i].text);
    }
    double value = 42;
    TEST_ASSERT_EQUAL_INT(-EINVAL, number_parse("1\0002", 3, &value));
}

static void test_parse_reads_only_what_it_was_given(void) {
    double value = 0;
    TEST_ASSERT_EQUAL_INT(0, number_parse("12345", 2, &value));
    TEST_ASSERT_EQUAL_DOUBLE(12, value);
    TEST_ASSERT_EQUAL_INT(0, number_parse("infinity", 3, &value));
    char *tight CLEANUP_FREE = malloc(3); /* without NUL: the sanitizer sees a read too far */
    memcpy(tight, "1e5", 3);
    TEST_ASSERT_EQUAL_INT(0, number_parse(tight, 3, &value));
    TEST_ASSERT_EQUAL_DOUBLE(1e5, value);
    TEST_ASSERT_EQUAL_INT(-EINVAL, number_parse(tight, 2, &value));
}

/* 2^53 + 1 lies between two doubles; a digit far behind the point decides. */
static void test_parse_sees_the_last_of_many_digits(void) {
    enum { LEN = 100000 };
    char *text CLEANUP_FREE = malloc(LEN);
    memset(text, '0', LEN);
    memcpy(text, "9007199254740993.", 17);
    double value = 0;
    TEST_ASSERT_EQUAL_INT(0, number_parse(text, LEN, &value));
    TEST_ASSERT_EQUAL_HEX64(bits_of(0x1p53), bits_of(value));
    text[LEN - 1] = '1';
    TEST_ASSERT_EQUAL_INT(0, number_parse(text, LEN, &value));
    TEST_ASSERT_EQUAL_HEX64(bits_of(0x1p53 + 2), bits_of(value));

    memset(text, '0', LEN);
    text[1] = '.';
    memcpy(text + LEN - 7, "1e99992", 7); /* the 1 is decimal 99992 */
    TEST_ASSERT_EQUAL_INT(0, number_parse(text, LEN, &value));
    TEST_ASSERT_EQUAL_DOUBLE(1, value);
}

static void test_parse_agrees_with_the_library(void) {
    random_state = 6;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        int n_decimals = (int)(random_u64() % 20);
        uint64_t whole = random_u64() >> (random_u64() % 60);
        int exponent = (int)(random_u64() % 640) - 330;
        int n = i % 2 == 0 ? snprintf(text, sizeof(text), "%llu.%0*llu", (unsigned long long)whole,
                                      n_decimals, (unsigned long long)(random_u64() >> 44))
                           : snprintf(text, sizeof(text), "%llue%d", (unsigned long long)whole,
                                      i % 4 == 1 ? exponent / 12 : exponent);
        double expected = strtod(text, NULL);
        double value = 42;
        int result = number_parse(text, (size_t)n, &value);
        if (isinf(expected)) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(-ERANGE, result, text);
        } else {
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, result, text);
            TEST_ASSERT_EQUAL_HEX64_MESSAGE(bits_of(expected), bits_of(value), text);
        }
    }
}
