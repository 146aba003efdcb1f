#include "collectors/source/program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

enum { NOBODY = 65534 };

static char directory[32], inner[48], path[64];
static struct error err;

void setUp(void) {
    strcpy(directory, "/tmp/waap-program-XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    snprintf(inner, sizeof(inner), "%s/inner", directory);
    snprintf(path, sizeof(path), "%s/program", inner);
    TEST_ASSERT_EQUAL_INT(0, mkdir(inner, 0755));
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_INT(0, fchmod(fileno(file), 0755));
    err.text[0] = '\0';
}

void tearDown(void) {
    unlink(path);
    rmdir(inner);
    rmdir(directory);
}

static int open_it(const char *name) {
    int fd = program_open(name, &err);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return fd;
}

static void assert_refused(const char *name, const char *reason, const char *where) {
    char expected[256];
    snprintf(expected, sizeof(expected), "%s: not run: %s %s", name, where, reason);
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EPERM, open_it(name), name);
    TEST_ASSERT_EQUAL_STRING(expected, err.text);
}

static void test_modes(void) {
    static const struct {
        const char *file;
        mode_t mode;
        bool trusted;
    } cases[] = {
        {path, 0755, true},      {path, 0700, true},       {path, 0775, false},
        {path, 0757, false},     {path, 01757, false},     {path, 0755, true},
        {inner, 0700, true},     {inner, 0775, false},     {inner, 0757, false},
        {inner, 0755, true},     {directory, 0775, false}, {directory, 0777, false},
        {directory, 0700, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT(0, chmod(cases[i].file, cases[i].mode));
        if (cases[i].trusted) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
        } else {
            assert_refused(path, "is writable by others than its owner", cases[i].file);
        }
    }
}

static void test_owners(void) {
    if (geteuid() != 0) {
        TEST_IGNORE_MESSAGE("SKIP: only root can give files away");
    }
    const char *const files[] = {path, inner, directory};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        TEST_ASSERT_EQUAL_INT(0, chown(files[i], NOBODY, NOBODY));
        assert_refused(path, "belongs to user 65534", files[i]);
        TEST_ASSERT_EQUAL_INT(0, chown(files[i], 0, 0));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
    }
}

/* A user may run a program of root or of its own. */
static void test_a_user_that_is_not_root(void) {
    if (geteuid() != 0) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
        return;
    }
    TEST_ASSERT_EQUAL_INT(0, chmod(directory, 0755));
    TEST_ASSERT_EQUAL_INT(0, seteuid(NOBODY));
    int of_root = open_it(path);
    TEST_ASSERT_EQUAL_INT(0, seteuid(0));
    TEST_ASSERT_EQUAL_INT(0, chown(path, NOBODY, NOBODY));
    TEST_ASSERT_EQUAL_INT(0, seteuid(NOBODY));
    int own = open_it(path);
    TEST_ASSERT_EQUAL_INT(0, seteuid(0));
    TEST_ASSERT_EQUAL_INT(0, of_root);
    TEST_ASSERT_EQUAL_INT(0, own);
}

static void test_links(void) {
    char link[64], through[96];
    snprintf(link, sizeof(link), "%s/link", directory);
    snprintf(through, sizeof(through), "%s/program", link);
    TEST_ASSERT_EQUAL_INT(0, symlink(path, link));
    assert_refused(link, "is a symbolic link", link);
    unlink(link);
    TEST_ASSERT_EQUAL_INT(0, symlink(inner, link));
    assert_refused(through, "is a symbolic link", link);
    unlink(link);
}

static void test_what_is_no_program(void) {
    char name[96];
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it(inner));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "not a regular file"));
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it("/"));
    snprintf(name, sizeof(name), "%s/", inner);
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it(name));
    snprintf(name, sizeof(name), "%s/missing", inner);
    TEST_ASSERT_EQUAL_INT(-ENOENT, open_it(name));
    snprintf(name, sizeof(name), "%s/below", path);
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, open_it(name));
    TEST_ASSERT_EQUAL_INT(-EINVAL, open_it("program"));
    TEST_ASSERT_EQUAL_STRING("program: not an absolute path", err.text);
    TEST_ASSERT_EQUAL_INT(-EINVAL, open_it(""));
    snprintf(name, sizeof(name), "%s//../inner/./program", inner);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(name), err.text);
}
