#include "profiler/run/cgroup.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unity.h>

static void test_paths(void) {
    static const char hybrid[] = "9:name=systemd:/\n4:memory:/a:b/c\n2:cpuacct,cpu:/d\n0::/e\n";
    static const struct {
        const char *text;
        unsigned controllers;
        const char *path;
    } cases[] = {
        {hybrid, CGROUP_MEMORY, "/a:b/c"},
        {hybrid, CGROUP_CPU | CGROUP_CPUACCT, "/d"},
        {hybrid, CGROUP_CPU, "/d"},
        {hybrid, 0, "/e"},
        {hybrid, CGROUP_PIDS, NULL},
        {hybrid, CGROUP_IO, NULL},
        {"0::/user.slice/x", 0, "/user.slice/x"},
        {"0::/x", CGROUP_CPU, NULL},
        {"4:memory:/x\n", 0, NULL},
        {"4:mem,memo,memoryx:/x\n", CGROUP_MEMORY, NULL},
        {"", CGROUP_MEMORY, NULL},
        {"nonsense", CGROUP_MEMORY, NULL},
        {"1:memory", CGROUP_MEMORY, NULL},
        {":::\n\n1:memory:/y\n", CGROUP_MEMORY, "/y"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *path CLEANUP_FREE = run_cgroup_find_path(cases[i].text, cases[i].controllers);
        TEST_ASSERT_EQUAL(cases[i].path == NULL, path == NULL);
        if (path != NULL) {
            TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].path, path, cases[i].text);
        }
    }
}

static char dir[64];

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_TRUE(fputs(text, file) >= 0);
}

static void make_folder(const char *name) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0755));
}

/* v1, where user and system are told in hundredths of a second: their sum is the exact one, and
 * neither goes back when the other is first seen. */
static void test_shares_of_v1(void) {
    strcpy(dir, "/tmp/test_run_cgroup.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    static const char *const folders[] = {"fs",          "fs/cpuacct", "fs/cpuacct/a", "fs/memory",
                                          "fs/memory/a", "proc",       "proc/7"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        make_folder(folders[i]);
    }
    write_file("proc/7/cgroup", "2:cpuacct:/a\n1:memory:/a\n");
    write_file("fs/memory/a/memory.usage_in_bytes", "3000\n");
    write_file("fs/memory/a/memory.max_usage_in_bytes", "5000\n");
    write_file("fs/memory/a/memory.stat", "total_inactive_file 1000\n");
    char procfs[80], cgroupfs[80];
    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    snprintf(cgroupfs, sizeof(cgroupfs), "%s/fs", dir);
    static const struct {
        const char *usage, *stat;
        double user, system;
    } steps[] = {
        {"4000000\n", "user 0\nsystem 0\n", 0.004, 0},
        {"20000000\n", "user 0\nsystem 1\n", 0.004, 0.016},
        {"40000000\n", "user 3\nsystem 1\n", 0.024, 0.016},
    };
    struct run_cgroup cgroup;
    struct error err;
    write_file("fs/cpuacct/a/cpuacct.usage", "0\n");
    write_file("fs/cpuacct/a/cpuacct.stat", "user 0\nsystem 0\n");
    TEST_ASSERT_EQUAL_INT(0, run_cgroup_attach(&cgroup, procfs, cgroupfs, 7, &err));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct run_usage usage;
        write_file("fs/cpuacct/a/cpuacct.usage", steps[i].usage);
        write_file("fs/cpuacct/a/cpuacct.stat", steps[i].stat);
        TEST_ASSERT_TRUE(run_cgroup_read(&cgroup, &usage));
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, steps[i].user, usage.user_seconds);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, steps[i].system, usage.system_seconds);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, usage.cpu_seconds,
                                  usage.user_seconds + usage.system_seconds);
        TEST_ASSERT_EQUAL_DOUBLE(2000, usage.memory_bytes);
        TEST_ASSERT_EQUAL_DOUBLE(5000, usage.memory_peak_bytes);
        TEST_ASSERT_TRUE(isnan(usage.read_bytes));
    }
    TEST_ASSERT_EQUAL_STRING("max_usage", run_cgroup_peak_source(&cgroup));
    run_cgroup_finish(&cgroup);
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void test_no_cgroups(void) {
    struct run_cgroup cgroup;
    struct error err;
    TEST_ASSERT_EQUAL_INT(-ENODEV, run_cgroup_create(&cgroup, "/proc", "/nonexistent", &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "/nonexistent"));
    run_cgroup_finish(&cgroup);
}
