#include "exporter/core/uuid.h"

#include <string.h>
#include <unity.h>

static void expect(const char *purpose, const char *secret, const char *uuid) {
    struct buf out CLEANUP_BUF = {0};
    uuid_derive(purpose, secret, &out);
    TEST_ASSERT_EQUAL_STRING(uuid, buf_str(&out));
}

/* By sha256sum: `printf 'a b' | sha256sum`, with version and variant put in. */
static void test_what_others_compute(void) {
    expect("a", "b", "c8687a08-aa5d-8ed2-8443-28fa6a697ab8");
}

static void test_purpose_and_secret_count(void) {
    struct buf one CLEANUP_BUF = {0}, two CLEANUP_BUF = {0}, three CLEANUP_BUF = {0};
    uuid_derive("x", "1", &one);
    uuid_derive("x", "2", &two);
    uuid_derive("y", "1", &three);
    TEST_ASSERT_EQUAL_size_t(36, one.len);
    TEST_ASSERT_TRUE(strcmp(buf_str(&one), buf_str(&two)) != 0);
    TEST_ASSERT_TRUE(strcmp(buf_str(&one), buf_str(&three)) != 0);
}
