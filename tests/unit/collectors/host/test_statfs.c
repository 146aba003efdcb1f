#include "collectors/host/statfs.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "tests/unit/waiting.h"

/* Paths decide what the fake call does: "/hang…" waits for `release`, "/slow" takes 60 ms. */
static sem_t release;
static atomic_int n_calls;
static atomic_int n_returned;

static int fake_statfs(const char *path, struct statfs *ret_stat) {
    atomic_fetch_add(&n_calls, 1);
    if (strncmp(path, "/hang", 5) == 0) {
        sem_wait(&release);
    }
    if (strcmp(path, "/slow") == 0) {
        pace_ms(60);
    }
    atomic_fetch_add(&n_returned, 1);
    if (strcmp(path, "/gone") == 0) {
        errno = ENOENT;
        return -1;
    }
    ret_stat->f_blocks = strlen(path);
    return 0;
}

static struct host_statfs *helpers;
static struct host_statfs_job *jobs[32];
static size_t n_jobs;

void setUp(void) {
    sem_init(&release, 0, 0);
    atomic_store(&n_calls, 0);
    atomic_store(&n_returned, 0);
    n_jobs = 0;
    helpers = host_statfs_create(fake_statfs);
    TEST_ASSERT_NOT_NULL(helpers);
}

/* Waits until the calls that hung have come back, so that one test does not disturb the next. */
static void settle(void) {
    TEST_ASSERT_TRUE(
        BECOMES_TRUE((sem_post(&release), atomic_load(&n_returned) == atomic_load(&n_calls))));
}

static void close_all(void) {
    for (size_t i = 0; i < n_jobs; i++) {
        host_statfs_job_destroy(jobs[i]);
    }
    n_jobs = 0;
    host_statfs_destroy(helpers);
    helpers = NULL;
}

void tearDown(void) {
    close_all();
    settle();
}

static struct host_statfs_job *add(const char *path) {
    struct host_statfs_job *job = host_statfs_job_create(helpers, path);
    TEST_ASSERT_NOT_NULL(job);
    jobs[n_jobs++] = job;
    return job;
}

/* meson ends a test that waits that long. */
enum { ENDLESS_MS = 3600000 };

static int64_t ask(int64_t timeout_ms) {
    int64_t begin = clock_monotonic_ns();
    host_statfs_ask(helpers, jobs, n_jobs, timeout_ms);
    return (clock_monotonic_ns() - begin) / CLOCK_NS_PER_MS;
}

static int answer(struct host_statfs_job *job) {
    struct statfs stat;
    return host_statfs_answer(job, &stat);
}

static void test_answers_and_errors(void) {
    struct host_statfs_job *root = add("/");
    struct host_statfs_job *gone = add("/gone");
    struct host_statfs_job *boot = add("/boot");
    for (int round = 0; round < 3; round++) {
        struct statfs stat = {0};
        ask(ENDLESS_MS);
        TEST_ASSERT_EQUAL_INT(0, host_statfs_answer(root, &stat));
        TEST_ASSERT_EQUAL_INT(1, stat.f_blocks);
        TEST_ASSERT_EQUAL_INT(0, host_statfs_answer(boot, &stat));
        TEST_ASSERT_EQUAL_INT(5, stat.f_blocks);
        TEST_ASSERT_EQUAL_INT(-ENOENT, answer(gone));
    }
    TEST_ASSERT_EQUAL_INT(9, atomic_load(&n_calls));
}

static void test_nothing_to_ask(void) {
    ask(ENDLESS_MS);
}

static void test_a_slow_one_still_counts(void) {
    struct host_statfs_job *slow = add("/slow");
    struct host_statfs_job *root = add("/");
    ask(ENDLESS_MS);
    TEST_ASSERT_EQUAL_INT(0, answer(slow));
    TEST_ASSERT_EQUAL_INT(0, answer(root));
}

/* A loaded machine may be too slow for one timeout. */
static bool is_answered_later(struct host_statfs_job *job) {
    return BECOMES_TRUE((ask(1000), answer(job) == 0));
}

static void test_a_dead_mount_keeps_nobody_else(void) {
    struct host_statfs_job *dead = add("/hang");
    struct host_statfs_job *root = add("/");
    int64_t took = ask(300);
    TEST_ASSERT_GREATER_OR_EQUAL(299, took);
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, answer(dead));
    TEST_ASSERT_TRUE(answer(root) == 0 || is_answered_later(root));
    TEST_ASSERT_TRUE(BECOMES_TRUE(atomic_load(&n_calls) > atomic_load(&n_returned)));

    /* It is not asked again while its call hangs, and no longer waited for. */
    int calls = atomic_load(&n_calls);
    ask(ENDLESS_MS);
    TEST_ASSERT_EQUAL_INT(calls + 1, atomic_load(&n_calls));
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, answer(dead));
    TEST_ASSERT_EQUAL_INT(0, answer(root));

    settle();
    sem_post(&release);
    for (int i = 0; i < 1000 && answer(dead) != 0; i++) {
        ask(1000);
    }
    TEST_ASSERT_EQUAL_INT(0, answer(dead));
}

static void test_more_dead_mounts_than_helpers(void) {
    for (int i = 0; i < 20; i++) {
        add("/hang");
    }
    struct host_statfs_job *root = add("/");
    TEST_ASSERT_TRUE(BECOMES_TRUE((ask(100), atomic_load(&n_calls) == 16)));
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, answer(root));
    /* With nobody left to ask, it does not wait either. */
    ask(ENDLESS_MS);
    TEST_ASSERT_EQUAL_INT(16, atomic_load(&n_calls));
    TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, answer(root));
}

static void test_destroy_does_not_wait(void) {
    add("/hang");
    ask(10);
    close_all();
    TEST_ASSERT_EQUAL_INT(0, atomic_load(&n_returned));
}
