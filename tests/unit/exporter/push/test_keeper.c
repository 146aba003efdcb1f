#include "exporter/push/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/settings/config.h"
#include "tests/unit/exporter/push/push_fixture.h"

static const struct collector *const no_collectors[] = {NULL};
static struct loop *loop;
static char directory[64];
static char table_flag[100], state_flag[100];

void setUp(void) {
    struct error err;
    snprintf(directory, sizeof(directory), "/tmp/test_push_keeper.XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    snprintf(table_flag, sizeof(table_flag), "--push.table=%s/run/table", directory);
    snprintf(state_flag, sizeof(state_flag), "--push.state-file=%s/state", directory);
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
}

static void remove_all(void) {
    char command[100];
    snprintf(command, sizeof(command), "rm -r '%s'", directory);
    TEST_ASSERT_EQUAL_INT(0, system(command));
}

void tearDown(void) {
    loop_destroy(loop);
    remove_all();
}

static struct push_keeper *open_keeper(const char *table, const char *state) {
    char *argv[] = {"serve", (char *)table, (char *)state};
    struct config_sources sources = {.argv = argv, .argc = 3};
    struct config *config CLEANUP_CONFIG = NULL;
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct push_keeper *keeper = NULL;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT(0, config_load(no_collectors, &sources, &config, &problems));
    int r = push_keeper_create(loop, config->settings, no_collectors, &keeper, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return keeper;
}

static void close_keeper(struct push_keeper *keeper) {
    TEST_ASSERT_TRUE(push_keeper_stop(keeper));
    push_keeper_destroy(keeper);
}

static void push_one(struct push_keeper *keeper) {
    struct push_store *store = push_keeper_store(keeper);
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "c", PUSH_COUNTER, PUSH_INC, 1));
    push_owner_unref(store, a);
}

static void expect_count(struct push_keeper *keeper, const char *count) {
    char expected[80] = "";
    if (count != NULL) {
        snprintf(expected, sizeof(expected), "# TYPE c_total counter\nc_total{plugin=\"a\"} %s\n",
                 count);
    }
    fixture_expect(push_keeper_store(keeper), expected);
}

static size_t count_files(const char *pattern) {
    char path[100];
    snprintf(path, sizeof(path), "%s/%s", directory, pattern);
    glob_t found = {0};
    size_t n = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static void overwrite(const char *name, off_t at, const char *bytes, size_t n) {
    char path[100];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    TEST_ASSERT_TRUE(fd >= 0);
    TEST_ASSERT_EQUAL_INT(n, pwrite(fd, bytes, n, at));
    close(fd);
}

static void test_the_table_survives(void) {
    for (int i = 1; i <= 3; i++) {
        struct push_keeper *keeper = open_keeper(table_flag, "--push.state-file=");
        push_one(keeper);
        char count[12];
        snprintf(count, sizeof(count), "%d", i);
        expect_count(keeper, count);
        TEST_ASSERT_TRUE(push_store_stats(push_keeper_store(keeper)).in_file);
        close_keeper(keeper);
    }
    TEST_ASSERT_EQUAL_UINT64(2, count_files("run/*"));
}

static void test_a_second_daemon_keeps_to_its_memory(void) {
    struct push_keeper *first = open_keeper(table_flag, "--push.state-file=");
    push_one(first);
    struct push_keeper *second = open_keeper(table_flag, "--push.state-file=");
    TEST_ASSERT_FALSE(push_store_stats(push_keeper_store(second)).in_file);
    expect_count(second, NULL);
    push_one(second);
    push_one(second);
    close_keeper(second);
    close_keeper(first);
    first = open_keeper(table_flag, "--push.state-file=");
    expect_count(first, "1");
    close_keeper(first);
}

static void test_a_second_daemon_leaves_the_state_file(void) {
    char other_table[100];
    snprintf(other_table, sizeof(other_table), "--push.table=%s/run/other", directory);
    const char *const rows[] = {table_flag, other_table, "--push.table="};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_keeper *first = open_keeper(table_flag, state_flag);
        push_one(first);
        close_keeper(first);
        first = open_keeper(table_flag, state_flag);
        struct push_keeper *second = open_keeper(rows[i], state_flag);
        expect_count(second, NULL);
        push_one(second);
        push_one(second);
        push_one(second);
        close_keeper(second);
        close_keeper(first);
        first = open_keeper("--push.table=", state_flag);
        expect_count(first, "1");
        close_keeper(first);
        remove_all();
        TEST_ASSERT_EQUAL_INT(0, mkdir(directory, 0700));
    }
}

/* The lock is asked for again where it could not be had. */
static void test_a_place_that_can_be_written_later(void) {
    char lock[100];
    snprintf(lock, sizeof(lock), "%s/state.lock", directory);
    TEST_ASSERT_EQUAL_INT(0, mkdir(lock, 0700));
    struct push_keeper *keeper = open_keeper("--push.table=", state_flag);
    push_one(keeper);
    TEST_ASSERT_EQUAL_INT(0, rmdir(lock));
    close_keeper(keeper);
    keeper = open_keeper("--push.table=", state_flag);
    expect_count(keeper, "1");
    close_keeper(keeper);
}

static void test_no_such_place(void) {
    struct push_keeper *keeper = open_keeper("--push.table=/proc/none/table", "--push.state-file=");
    push_one(keeper);
    expect_count(keeper, "1");
    close_keeper(keeper);
}

static void test_the_state_file_survives_what_the_table_does_not(void) {
    struct push_keeper *keeper = open_keeper(table_flag, state_flag);
    push_one(keeper);
    close_keeper(keeper);
    TEST_ASSERT_EQUAL_UINT64(1, count_files("state"));
    keeper = open_keeper(table_flag, state_flag);
    push_one(keeper); /* the table is ahead of the state file */
    push_keeper_destroy(keeper);
    keeper = open_keeper(table_flag, state_flag);
    expect_count(keeper, "2");
    push_keeper_destroy(keeper);
    overwrite("run/table", 20, "another boot", 12);
    keeper = open_keeper(table_flag, state_flag);
    expect_count(keeper, "1");
    close_keeper(keeper);
    keeper = open_keeper("--push.table=", state_flag);
    expect_count(keeper, "1");
    push_one(keeper);
    close_keeper(keeper);
    keeper = open_keeper("--push.table=", state_flag);
    expect_count(keeper, "2");
    close_keeper(keeper);
}

static void test_damaged_files_are_set_aside(void) {
    static const struct {
        const char *name;
        off_t at;
        const char *count; /* that is left */
    } rows[] = {
        {"state", 0, NULL},     {"state", 8, NULL},    {"state", 24, NULL},
        {"state", 4096, NULL},  {"state", 8200, NULL}, {"run/table", 0, NULL},
        {"run/table", 8, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool table = rows[i].name[0] == 'r';
        const char *state = table ? "--push.state-file=" : state_flag;
        const char *flag = table ? table_flag : "--push.table=";
        struct push_keeper *keeper = open_keeper(flag, state);
        push_one(keeper);
        close_keeper(keeper);
        overwrite(rows[i].name, rows[i].at, "\x99", 1);
        keeper = open_keeper(flag, state);
        expect_count(keeper, rows[i].count);
        close_keeper(keeper);
        TEST_ASSERT_EQUAL_UINT64(1, count_files("*.bad-*") + count_files("run/*.bad-*"));
        remove_all();
        TEST_ASSERT_EQUAL_INT(0, mkdir(directory, 0700));
    }
}

/* Also what is damaged again within a second. */
static void test_what_is_set_aside_stays(void) {
    char path[100];
    snprintf(path, sizeof(path), "%s/state", directory);
    for (size_t i = 1; i <= 3; i++) {
        FILE *file = fopen(path, "we");
        fprintf(file, "waapgarbage %zu", i);
        fclose(file);
        struct push_keeper *keeper = open_keeper("--push.table=", state_flag);
        push_one(keeper);
        expect_count(keeper, "1");
        close_keeper(keeper);
        TEST_ASSERT_EQUAL_UINT64(i, count_files("state.bad-*"));
    }
}

static void expect_content(const char *path, const char *content) {
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, file_read(path, &text, &err));
    TEST_ASSERT_EQUAL_STRING(content, buf_str(&text));
}

/* With a longer name the file cannot be: it can be replaced, but not be set aside. */
static void test_what_cannot_be_set_aside_is_left_alone(void) {
    static const char *const flags[] = {"--push.state-file=", "--push.table="};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        char path[400], flag[450];
        snprintf(path, sizeof(path), "%s/%0*d", directory, 249, 0);
        snprintf(flag, sizeof(flag), "%s%s", flags[i], path);
        FILE *file = fopen(path, "we");
        fputs("waapprecious", file);
        fclose(file);
        /* On the second start there is a table as well. */
        for (int k = 0; k < 2; k++) {
            struct push_keeper *keeper = open_keeper(flag, i == 0 ? table_flag : state_flag);
            push_one(keeper);
            close_keeper(keeper);
            expect_content(path, "waapprecious");
            TEST_ASSERT_EQUAL_UINT64(0, count_files("*.new"));
        }
    }
}

/* A path given by mistake. */
static void test_what_was_never_ours_is_left_alone(void) {
    static const char *const flags[] = {"--push.state-file=", "--push.table="};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        char path[100], flag[150];
        snprintf(path, sizeof(path), "%s/passwd", directory);
        snprintf(flag, sizeof(flag), "%s%s", flags[i], path);
        FILE *file = fopen(path, "we");
        fputs("root:x:0:0", file);
        fclose(file);
        struct push_keeper *keeper = open_keeper(flag, i == 0 ? table_flag : state_flag);
        push_one(keeper);
        close_keeper(keeper);
        expect_content(path, "root:x:0:0");
        TEST_ASSERT_EQUAL_UINT64(0, count_files("passwd.bad*") + count_files("*.new"));
        remove_all();
        TEST_ASSERT_EQUAL_INT(0, mkdir(directory, 0700));
    }
}

static void test_what_is_no_file_is_left_alone(void) {
    char path[100];
    snprintf(path, sizeof(path), "%s/state", directory);
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(0, i == 0 ? mkdir(path, 0700) : mkfifo(path, 0600));
        struct push_keeper *keeper = open_keeper("--push.table=", state_flag);
        push_one(keeper);
        close_keeper(keeper);
        struct stat st;
        TEST_ASSERT_EQUAL_INT(0, lstat(path, &st));
        TEST_ASSERT_FALSE(S_ISREG(st.st_mode));
        TEST_ASSERT_EQUAL_UINT64(0, count_files("state.bad-*"));
        TEST_ASSERT_EQUAL_INT(0, remove(path));
    }
}

static void test_a_damaged_entry_costs_no_more_than_its_page(void) {
    struct push_keeper *keeper = open_keeper(table_flag, "--push.state-file=");
    push_one(keeper);
    push_keeper_destroy(keeper);
    overwrite("run/table", 3 * 4096 + 6, "\x77", 1);
    keeper = open_keeper(table_flag, "--push.state-file=");
    expect_count(keeper, NULL);
    push_one(keeper);
    expect_count(keeper, "1");
    close_keeper(keeper);
}

void suiteSetUp(void) {
    umask(S_IWGRP | S_IWOTH); /* files that others can write are refused */
}
