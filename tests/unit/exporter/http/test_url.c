#include "exporter/http/url.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"

/* "path|name=value|name=value" */
static void check(const char *target, const char *want) {
    struct http_url url = {0};
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, http_url_parse(target, &url, &err), target);
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, url.path);
    for (size_t i = 0; i < url.n_parameters; i++) {
        buf_printf(&text, "|%s=%s", url.parameters[i].name, url.parameters[i].value);
    }
    TEST_ASSERT_EQUAL_STRING_MESSAGE(want, buf_str(&text), target);
    http_url_finish(&url);
    http_url_finish(&url);
}

static void test_good(void) {
    check("/", "/");
    check("/metrics", "/metrics");
    check("/metrics?", "/metrics");
    check("/metrics?&&", "/metrics");
    check("/metrics?collect[]=host&collect[]=text", "/metrics|collect[]=host|collect[]=text");
    check("/metrics?collect%5B%5D=host", "/metrics|collect[]=host");
    check("/metrics?collect%5b%5d=%68ost", "/metrics|collect[]=host");
    check("/a%2Fb+c%20d", "/a/b+c d");
    check("/x?a+b=c+d&e=%2B", "/x|a b=c d|e=+");
    check("/x?a", "/x|a=");
    check("/x?a=", "/x|a=");
    check("/x?=a", "/x|=a");
    check("/x?a=b=c", "/x|a=b=c");
    check("/x?a?b=/c", "/x|a?b=/c");
    check("/x?a=%26%3D%25", "/x|a=&=%");
    check("/%c3%bc?%C3%BC=%ff", "/\xc3\xbc|\xc3\xbc=\xff");
    check("//", "//");
    check("http://host:1/metrics?a=b", "/metrics|a=b");
    check("HTTPS://host/metrics", "/metrics");
    check("http://host", "/");
}

static void test_encoded_slash(void) {
    static const struct {
        const char *target;
        bool has;
    } rows[] = {
        {"/a/b", false},     {"/a%2Fb", true},  {"/a%20%2fb?x=y", true},
        {"/a?b=%2F", false}, {"/%252F", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_url url = {0};
        TEST_ASSERT_EQUAL_INT(0, http_url_parse(rows[i].target, &url, NULL));
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].has, url.has_encoded_slash, rows[i].target);
        http_url_finish(&url);
    }
}

static void test_bad(void) {
    static const char *const rows[] = {
        "",        "*",        "metrics",      "?a=b",    "/%",     "/%4",       "/%zz",
        "/%4g",    "/x?%",     "/x?a=%4",      "/x?%=a",  "/%00",   "/x?a=%00",  "/x?a%00b",
        "host:80", "ftp://x/", "http://x?a=b", "/x?a=%%", "/x%2 0", "/x?a=% 41",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_url url = {0};
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, http_url_parse(rows[i], &url, &err), rows[i]);
        TEST_ASSERT_NOT_EQUAL_CHAR('\0', err.text[0]);
        TEST_ASSERT_NULL(url.path);
    }
}

static void test_number_of_parameters(void) {
    struct buf target CLEANUP_BUF = {0};
    buf_add_str(&target, "/x?a=0");
    for (int i = 1; i < HTTP_URL_MAX_PARAMETERS; i++) {
        buf_printf(&target, "&a=%d", i);
    }
    struct http_url url;
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, http_url_parse(buf_str(&target), &url, &err));
    TEST_ASSERT_EQUAL_size_t(HTTP_URL_MAX_PARAMETERS, url.n_parameters);
    TEST_ASSERT_EQUAL_STRING("99", url.parameters[99].value);
    http_url_finish(&url);
    buf_add_str(&target, "&");
    TEST_ASSERT_EQUAL_INT(-EINVAL, http_url_parse(buf_str(&target), &url, &err));
}
