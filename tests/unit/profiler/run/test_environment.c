#include "profiler/run/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unity.h>

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static char dir[64];

void setUp(void) {
    strcpy(dir, "/tmp/test_run_env.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
}

void tearDown(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void make(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (text == NULL) {
        TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0755));
        return;
    }
    FILE *file CLEANUP_FCLOSE = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_TRUE(fputs(text, file) >= 0);
}

static void check(const char *folder, const char *commit) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, folder);
    char *found CLEANUP_FREE = run_environment_commit(path);
    TEST_ASSERT_EQUAL_STRING(commit != NULL ? commit : "", found != NULL ? found : "");
}

static void test_branch(void) {
    make(".git", NULL);
    make(".git/HEAD", "ref: refs/heads/main\n");
    make("sub", NULL);
    check("sub", NULL);
    make(".git/packed-refs",
         "# pack-refs\n" COMMIT " refs/heads/main2\n" COMMIT " refs/heads/main\n");
    check("sub", COMMIT);
    make(".git/refs", NULL);
    make(".git/refs/heads", NULL);
    make(".git/refs/heads/main", "fff" COMMIT "\n");
    check(".", "fff" COMMIT);
}

static void test_detached(void) {
    make(".git", NULL);
    make(".git/HEAD", COMMIT "\n");
    check(".", COMMIT);
    check("nonexistent", NULL);
}

static void test_work_tree(void) {
    make("main", NULL);
    make("main/worktrees", NULL);
    make("main/worktrees/w", NULL);
    make("main/worktrees/w/HEAD", "ref: refs/heads/x\n");
    make("main/worktrees/w/commondir", "../..\n");
    make("main/packed-refs", COMMIT " refs/heads/x\n");
    make("w", NULL);
    make("w/.git", "gitdir: ../main/worktrees/w\n");
    check("w", COMMIT);
}
