#include "exporter/core/error.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

static void test_words_and_code(void) {
    struct error err = {""};
    errno = ENOENT;
    TEST_ASSERT_EQUAL_INT(-ENOENT, error_set(&err, -errno, "open %s: %m", "/x"));
    TEST_ASSERT_EQUAL_STRING("open /x: No such file or directory", err.text);
}

static void test_null_takes_no_words(void) {
    TEST_ASSERT_EQUAL_INT(-EIO, error_set(NULL, -EIO, "%s", "lost"));
}

static void test_long_text_is_cut(void) {
    struct error err = {""};
    error_set(&err, -EIO, "%2000d", 1);
    TEST_ASSERT_EQUAL_UINT64(sizeof(err.text) - 1, strlen(err.text));
}

static void test_words_around_its_own_text(void) {
    struct error err = {"power: Not Supported"};
    TEST_ASSERT_EQUAL_INT(-EIO, error_set(&err, -EIO, "gpu %d: %s (%s)", 1, err.text, err.text));
    TEST_ASSERT_EQUAL_STRING("gpu 1: power: Not Supported (power: Not Supported)", err.text);
}
