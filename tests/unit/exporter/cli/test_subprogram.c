#include "exporter/cli/cli.h"

#include <unity.h>

#include "exporter/core/version.h"

static void expect_try(const char *own_exe, size_t i, const char *expected) {
    struct buf path CLEANUP_BUF = {0};
    TEST_ASSERT_TRUE(subprogram_path(own_exe, "placement", "waap-placement", i, &path));
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&path));
}

static void test_looks_near_itself_first(void) {
    expect_try("/t/build/exporter/waap", 0, "/t/build/exporter/waap-placement");
    expect_try("/t/build/exporter/waap", 1, "/t/build/exporter/../placement/waap-placement");
    expect_try("/usr/bin/waap", 2, "/usr/bin/../libexec/waap/waap-placement");
    expect_try("/usr/bin/waap", 3, VERSION_LIBEXECDIR "/waap-placement");
}

static void test_knows_no_further_place(void) {
    struct buf path CLEANUP_BUF = {0};
    TEST_ASSERT_FALSE(subprogram_path("/usr/bin/waap", "placement", "waap-placement", 4, &path));
    TEST_ASSERT_EQUAL_STRING("", buf_str(&path));
}

/* Without /proc nothing is known of ourselves; that must not become a path of the working folder.
 */
static void test_without_an_own_path(void) {
    expect_try("", 0, "/waap-placement");
}
