#include "exporter/demo/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static char parent[] = "/tmp/waap-test-XXXXXX";
static const char *const parents[] = {"/dev/null/nowhere", parent, NULL};

void setUp(void) {
    strcpy(parent + strlen(parent) - 6, "XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(parent));
}

void tearDown(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rmdir(parent), "something is left");
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void make_file(const char *dir) {
    char path[256];
    snprintf(path, sizeof(path), "%s/sub", dir);
    TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/sub/file", dir);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    TEST_ASSERT_TRUE(fd >= 0);
    close(fd);
}

static void test_is_private_and_goes_with_its_content(void) {
    struct demo_dir dir;
    struct stat stat_buf;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&dir, parents, NULL));
    TEST_ASSERT_EQUAL_STRING_LEN(parent, dir.path, strlen(parent));
    TEST_ASSERT_EQUAL_INT(0, stat(dir.path, &stat_buf));
    TEST_ASSERT_EQUAL_INT(0700, stat_buf.st_mode & 07777);
    make_file(dir.path);
    demo_dir_finish(&dir);
    TEST_ASSERT_NULL(dir.path);
    demo_dir_finish(&dir);
}

static void test_left_ones_go_and_used_ones_stay(void) {
    char left[256], foreign[256];
    snprintf(left, sizeof(left), "%s/waap-demo-left", parent);
    snprintf(foreign, sizeof(foreign), "%s/other-left", parent);
    TEST_ASSERT_EQUAL_INT(0, mkdir(left, 0700));
    TEST_ASSERT_EQUAL_INT(0, mkdir(foreign, 0700));
    make_file(left);

    struct demo_dir first, second;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&first, parents, NULL));
    TEST_ASSERT_FALSE(exists(left));
    TEST_ASSERT_TRUE(exists(foreign));
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&second, parents, NULL));
    TEST_ASSERT_TRUE(exists(first.path));
    demo_dir_finish(&first);
    TEST_ASSERT_TRUE(exists(second.path));
    demo_dir_finish(&second);
    TEST_ASSERT_EQUAL_INT(0, rmdir(foreign));
}

/* Removing a left directory must not follow links out of it. */
static void test_links_are_not_followed(void) {
    char target[256], link[256], file[300];
    snprintf(target, sizeof(target), "%s/target", parent);
    snprintf(link, sizeof(link), "%s/waap-demo-link", parent);
    TEST_ASSERT_EQUAL_INT(0, mkdir(target, 0700));
    make_file(target);
    TEST_ASSERT_EQUAL_INT(0, symlink(target, link));
    struct demo_dir dir;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&dir, parents, NULL));
    demo_dir_finish(&dir);
    snprintf(file, sizeof(file), "%s/sub/file", target);
    TEST_ASSERT_EQUAL_INT(0, unlink(file));
    snprintf(file, sizeof(file), "%s/sub", target);
    rmdir(file);
    rmdir(target);
    unlink(link);
}

static void test_says_where_it_failed(void) {
    static const char *const nowhere[] = {"/dev/null/nowhere", NULL};
    struct demo_dir dir;
    struct error err;
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, demo_dir_init(&dir, nowhere, &err));
    TEST_ASSERT_EQUAL_STRING("make a directory in /dev/null/nowhere: Not a directory", err.text);
}
