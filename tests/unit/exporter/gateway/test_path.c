#include "exporter/gateway/path.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"

static void check(const char *text, const char *want) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, gateway_path_parse(text, &path, &err), text);
    struct buf got CLEANUP_BUF = {0};
    for (size_t i = 0; i < path.n_labels; i++) {
        buf_printf(&got, "%s%s=%s", i > 0 ? "|" : "", path.labels[i].name, path.labels[i].value);
    }
    TEST_ASSERT_EQUAL_STRING_MESSAGE(want, buf_str(&got), text);
}

static void test_good(void) {
    check("job/nightly", "job=nightly");
    check("job/nightly/", "job=nightly");
    check("job/a/instance/b", "instance=b|job=a");
    check("job/a/zone/z/instance/b", "instance=b|job=a|zone=z");
    check("job/a/x/", "job=a|x=");
    check("job/a b/x/\xc3\xbc", "job=a b|x=\xc3\xbc");
    check("job/a/x/1/x/2", "job=a|x=2");
    check("job/a/job/b", "job=a");
}

static void test_base64(void) {
    check("job@base64/YS9i", "job=a/b");
    check("job/a/x@base64/", "job=a|x=");
    check("job/a/x@base64/=", "job=a|x=");
    check("job/a/x@base64/YQ", "job=a|x=a");
    check("job/a/x@base64/YQ==", "job=a|x=a");
    check("job/a/x@base64/YWI", "job=a|x=ab");
    check("job/a/x@base64/L3Zhci90bXA", "job=a|x=/var/tmp");
    check("job/a/x@base64/77-_", "job=a|x=\xef\xbf\xbf");
    check("job/a/x@base64/LS0-", "job=a|x=-->");
}

static void check_bad(const char *text, const char *words) {
    struct gateway_path path = {0};
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, gateway_path_parse(text, &path, &err), text);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_NULL(path.memory);
}

static void test_bad(void) {
    check_bad("", "no value");
    check_bad("job", "\"job\" has no value");
    check_bad("job/", "/metrics/job/<job>");
    check_bad("job@base64/", "/metrics/job/<job>");
    check_bad("instance/a/job/b", "/metrics/job/<job>");
    check_bad("job/a/x", "\"x\" has no value");
    check_bad("job/a//b", "improper label name \"\"");
    check_bad("job/a/x/y/", "\"\" has no value");
    check_bad("job/a//", "improper label name \"\"");
    check_bad("job/a/x//y/z", "two slashes after label \"x\"");
    check_bad("job/a/path//var/tmp", "two slashes after label \"path\"");
    check_bad("job/a/x//", "two slashes after label \"x\"");
    check_bad("job//x/y", "two slashes after label \"job\"");
    check_bad("job/a/1x/b", "improper label name \"1x\"");
    check_bad("job/a/__x/b", "improper label name \"__x\"");
    check_bad("job/a/x-y/b", "improper label name \"x-y\"");
    check_bad("job/a/x@base64/a+b=", "not URL-safe base64");
    check_bad("job/a/x@base64/a", "not URL-safe base64");
    check_bad("job/a/x@base64/Y=Q", "not URL-safe base64");
    check_bad("job/a/x@base64/AA", "not URL-safe base64"); /* a NUL */
}

static void test_too_many(void) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "job/a");
    for (int i = 1; i < GATEWAY_PATH_MAX_LABELS; i++) {
        buf_printf(&text, "/l%d/v", i);
    }
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT(0, gateway_path_parse(buf_str(&text), &path, &err));
    TEST_ASSERT_EQUAL_size_t(GATEWAY_PATH_MAX_LABELS, path.n_labels);
    buf_add_str(&text, "/one/more");
    check_bad(buf_str(&text), "more than 64 labels");
}
