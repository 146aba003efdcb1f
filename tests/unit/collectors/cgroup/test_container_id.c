#include "collectors/cgroup/container_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char procfs[] = "/tmp/test_container_id.XXXXXX";

static void write_process(int pid, const char *text) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%d", procfs, pid);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%d/cgroup", procfs, pid);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
}

static void test_cgroup_of_pid(void) {
    char *path CLEANUP_FREE = NULL;
    write_process(10, "3:cpu:/\n0::/system.slice/docker-" A ".scope/init/worker\n");
    TEST_ASSERT_EQUAL_INT(0, container_cgroup_of_pid(procfs, 10, &path));
    TEST_ASSERT_EQUAL_STRING("/system.slice/docker-" A ".scope", path);
    char *none = NULL;
    write_process(8, "0::/init.scope\n");
    TEST_ASSERT_EQUAL_INT(-ENOENT, container_cgroup_of_pid(procfs, 8, &none));
    TEST_ASSERT_EQUAL_INT(-ESRCH, container_cgroup_of_pid(procfs, 11, &none));
    TEST_ASSERT_NULL(none);
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
