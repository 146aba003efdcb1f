#include "collectors/source/entries.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unity.h>

static char dir[64];

void setUp(void) {
    strcpy(dir, "/tmp/test_entries.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
}

void tearDown(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void make(const char *name) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0755));
}

static void test_order_and_prefix(void) {
    make("hwmon10");
    make("hwmon2");
    make("other1");
    make("hwmon0");
    make(".hwmon3");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, dir, "hwmon");
    TEST_ASSERT_EQUAL_UINT64(3, entries.n_names);
    TEST_ASSERT_EQUAL_STRING("hwmon0", entries.names[0]);
    TEST_ASSERT_EQUAL_STRING("hwmon2", entries.names[1]);
    TEST_ASSERT_EQUAL_STRING("hwmon10", entries.names[2]);
}

static void test_all_but_hidden(void) {
    make("a");
    make("b");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, dir, "");
    TEST_ASSERT_EQUAL_UINT64(2, entries.n_names);
}

static void test_no_directory_is_empty(void) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, "/nonexistent", "");
    TEST_ASSERT_EQUAL_UINT64(0, entries.n_names);
}
