#include "collectors/cgroup/container_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char procfs[] = "/tmp/test_container_homes.XXXXXX";
static struct container_homes homes;

void tearDown(void) {
    container_homes_finish(&homes);
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...) {
    struct buf command CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&command, "cd %s && ", procfs);
    buf_vprintf(&command, format, args);
    va_end(args);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, system(buf_str(&command)), buf_str(&command));
}

static void put(int pid, const char *path) {
    run("mkdir -p %d && echo '0::%s' > %d/cgroup", pid, path, pid);
}

static void test_each_is_found_in_any_order(void) {
    static const int pids[] = {30, 10, 20, 50, 40};
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        char path[128];
        snprintf(path, sizeof(path), "/p%d/" A, pids[i]);
        put(pids[i], path);
    }
    put(60, "/init.scope");
    container_homes_begin(&homes);
    TEST_ASSERT_NULL(container_homes_see(&homes, procfs, 60));
    TEST_ASSERT_NULL(container_homes_see(&homes, procfs, 70));
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        TEST_ASSERT_NOT_NULL(container_homes_see(&homes, procfs, pids[i]));
    }
    TEST_ASSERT_EQUAL_STRING("/p10/" A, container_homes_find(&homes, 10));
    TEST_ASSERT_EQUAL_STRING("/p30/" A, container_homes_find(&homes, 30));
    TEST_ASSERT_EQUAL_STRING("/p50/" A, container_homes_find(&homes, 50));
    TEST_ASSERT_NULL(container_homes_find(&homes, 60));
    TEST_ASSERT_NULL(container_homes_find(&homes, 35));
}

static void test_looked_up_once_while_it_is_listed(void) {
    put(7, "/one/" A);
    container_homes_begin(&homes);
    TEST_ASSERT_EQUAL_STRING("/one/" A, container_homes_see(&homes, procfs, 7));
    put(7, "/two/" A);
    container_homes_begin(&homes);
    TEST_ASSERT_EQUAL_STRING("/one/" A, container_homes_see(&homes, procfs, 7));
    container_homes_begin(&homes); /* not in this one */
    container_homes_begin(&homes);
    TEST_ASSERT_NULL(container_homes_find(&homes, 7));
    TEST_ASSERT_EQUAL_STRING("/two/" A, container_homes_see(&homes, procfs, 7));
}

void suiteSetUp(void) {
    if (mkdtemp(procfs) == NULL) {
        exit(1);
    }
}

int suiteTearDown(int failures) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", procfs);
    return system(command) != 0 || failures;
}
