#include "collectors/source/tegrastats.h"

#include <math.h>
#include <unity.h>

#include "tests/unit/collectors/source/tegrastats_play.h"

/* Whether it hangs, babbles or has closed its output: without records it is replaced. */
static void test_silence(void) {
    static const char *const plays[] = {
        "!stall\n",   RECORD "!stall\n", RECORD "!close\n", RECORD "!ignore-term\n!stall\n",
        "nonsense\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        setUp();
        open_playing(plays[i]);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() > 0));
        pid_t pid = started_pid();
        if (strstr(plays[i], RECORD) != NULL) {
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
        }
        advance(5);
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        advance(5.1);
        TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, poll_once());
        TEST_ASSERT_NOT_NULL(strstr(error.text, "no record for 1"));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(is_gone(pid)));
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        advance(1.1);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_stats(tegrastats).n_restarts == 1));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() != pid));
        tearDown();
    }
}

/* After each failure the pause is twice as long, up to a minute. Here the clock stands still but
 * where it is told to go on. */
static void test_pauses_grow(void) {
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
    int64_t at = 0;
    open_playing("!exit 3\n");
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        int r = 0;
        for (int n = 0; n < PATIENCE_MS && r == 0; n++) {
            r = tegrastats_poll(tegrastats, at, &error);
            pace_ms(1);
        }
        TEST_ASSERT_EQUAL_INT(-ECHILD, r);
        TEST_ASSERT_NOT_NULL(strstr(error.text, "ended with status 3"));
        at += pauses[i] * CLOCK_NS_PER_SEC;
        TEST_ASSERT_EQUAL_INT(0, tegrastats_poll(tegrastats, at - 1, &error));
        TEST_ASSERT_EQUAL_UINT64(i, tegrastats_stats(tegrastats).n_restarts);
        TEST_ASSERT_EQUAL_INT(0, tegrastats_poll(tegrastats, at, &error));
        TEST_ASSERT_EQUAL_UINT64(i + 1, tegrastats_stats(tegrastats).n_restarts);
    }
}

static void test_a_healthy_run_shortens_the_pause(void) {
    open_playing("!exit 3\n");
    for (int i = 0; i < 4; i++) {
        TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
        advance(60);
    }
    write_file(play_file, RECORD);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    uint64_t n_restarts = tegrastats_stats(tegrastats).n_restarts;
    for (int i = 0; i < 13; i++) { /* over a minute, in which records keep coming */
        pace_ms(2 * INTERVAL_MS);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_age_seconds(tegrastats, now()) < 1));
        advance(5);
    }
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_age_seconds(tegrastats, now()) < 1));
    TEST_ASSERT_EQUAL_INT(0, kill(started_pid(), SIGTERM)); /* somebody runs `tegrastats --stop` */
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "killed by signal 15"));
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    TEST_ASSERT_EQUAL_UINT64(n_restarts + 1, tegrastats_stats(tegrastats).n_restarts);
}

static void test_death_after_records(void) {
    open_playing(RECORD OTHER "!die\n");
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    /* What it said last still counts, and its first record is a first record again. */
    TEST_ASSERT_NOT_NULL(latest());
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    write_file(play_file, RECORD "!stall\n");
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 1024));
    TEST_ASSERT_TRUE(isnan(latest()->cpus[0].load_ratio));
}

static void test_a_cut_line_is_not_joined_to_the_next_run(void) {
    open_playing(RECORD "!cut\n!exit 0\n");
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_NOT_NULL(latest());
    TEST_ASSERT_EQUAL_DOUBLE(1024, RAM_OF(latest()));
    write_file(play_file, OTHER);
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) != 1024));
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
}

static void test_releases_that_know_no_interval(void) {
    char arguments[64];
    open_playing("!refuse-options\n" RECORD);
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    started(arguments);
    TEST_ASSERT_EQUAL_STRING(" --interval 5", arguments);
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    started(arguments);
    TEST_ASSERT_EQUAL_STRING("", arguments);
}

/* What a full pipe holds is of any age, and so is the record that did not fit (a pipe has room for
 * 768 of these); the next one is not. */
static void test_backlog_is_thrown_away(void) {
    open_playing("!flood 769\n" RECORD);
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    wait_blocked();
    write_file(play_file, OTHER);
    kill(started_pid(), SIGSTOP); /* too slow to fill the pipe again while it is read */
    TEST_ASSERT_TRUE(BECOMES_TRUE(state_of(started_pid()) == 'T'));
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    TEST_ASSERT_NULL(latest());
    kill(started_pid(), SIGCONT);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
}

/* However much it prints, a poll ends. */
static void test_flood(void) {
    open_playing("!flood 100000000\n" RECORD);
    for (int i = 0; i < 20; i++) {
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        pace_ms(5);
    }
}

static void test_close_waits_for_no_program(void) {
    static const char *const plays[] = {
        RECORD,
        "!stall\n",
        "!ignore-term\n" RECORD,
        "!ignore-term\n!flood 100000000\n" RECORD,
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        setUp();
        open_playing(plays[i]);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() > 0));
        pace_ms(20);
        pid_t pid = started_pid();
        tearDown();
        wait_gone(pid);
    }
}

/* Killed, we clean up nothing; it neither prints nor takes SIGTERM. */
static void test_it_dies_with_us(void) {
    int ready[2];
    TEST_ASSERT_EQUAL_INT(0, pipe2(ready, O_CLOEXEC));
    pid_t daemon = fork();
    TEST_ASSERT_TRUE(daemon >= 0);
    if (daemon == 0) {
        open_playing("!ignore-term\n!stall\n");
        while (started_pid() == 0) {
            poll_once();
            pace_ms(1);
        }
        pace_ms(50);
        if (write(ready[1], "", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    char byte;
    TEST_ASSERT_EQUAL_INT(1, read(ready[0], &byte, 1));
    close(ready[0]);
    close(ready[1]);
    pid_t pid = started_pid();
    TEST_ASSERT_FALSE(is_gone(pid));
    kill(daemon, SIGKILL);
    TEST_ASSERT_EQUAL_INT(daemon, waitpid(daemon, NULL, 0));
    wait_gone(pid);
}

static void test_what_cannot_be_run(void) {
    char missing[96];
    snprintf(missing, sizeof(missing), "%s/missing", directory);
    TEST_ASSERT_EQUAL_INT(-ENOENT, tegrastats_open(missing, 1000, &tegrastats, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "missing: No such file"));
    TEST_ASSERT_EQUAL_INT(-EACCES, tegrastats_open(directory, 1000, &tegrastats, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "not a regular file"));
}

/* What was trusted once is checked again at each start. */
static void test_a_program_that_others_can_change_by_now(void) {
    open_playing("!exit 3\n");
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_EQUAL_INT(0, chmod(program, 0777));
    write_file(log_file, "");
    for (int i = 0; i < 2; i++) {
        advance(5);
        TEST_ASSERT_EQUAL_INT(-EPERM, poll_once());
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "writable by others"), error.text);
    }
    TEST_ASSERT_EQUAL_INT(0, started_pid());
    TEST_ASSERT_EQUAL_INT(0, chmod(program, 0755));
    advance(60);
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_TRUE(started_pid() > 0);
}

static void test_find(void) {
    char first[64], copy[96];
    snprintf(first, sizeof(first), "%s/first", directory);
    snprintf(copy, sizeof(copy), "%s/tegrastats", first);
    TEST_ASSERT_EQUAL_INT(0, mkdir(first, 0755));
    const char *const directories[] = {"relative", "/nowhere", first, directory, NULL};
    char *found CLEANUP_FREE = tegrastats_find(directories);
    TEST_ASSERT_EQUAL_STRING(program, found);
    write_file(copy, "#!/bin/sh\n");
    chmod(copy, 0755);
    char *nearer CLEANUP_FREE = tegrastats_find(directories);
    TEST_ASSERT_EQUAL_STRING(copy, nearer);
    chmod(copy, 0775); /* others can change it */
    char *trusted CLEANUP_FREE = tegrastats_find(directories);
    TEST_ASSERT_EQUAL_STRING(program, trusted);
    unlink(copy);
    rmdir(first);
    TEST_ASSERT_NULL(tegrastats_find(directories + 4));
}

/* Where others than root have no say: no home directory, nothing that a variable names. */
static void test_directories_that_are_searched(void) {
    for (const char *const *at = tegrastats_directories; *at != NULL; at++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(*at, "/usr/", 5), *at);
    }
}

void suiteSetUp(void) {
    enum { MESON_SKIP = 77 };
    prepare();
    if (!can_start()) {
        clean_up();
        puts("SKIP: cannot start programs of this architecture");
        exit(MESON_SKIP);
    }
}

int suiteTearDown(int failures) {
    clean_up();
    return failures;
}
