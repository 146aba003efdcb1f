#include "exporter/loop/thread.h"

#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/clock.h"

static sem_t go_on;

void setUp(void) {
    sem_init(&go_on, 0, 0);
}

void tearDown(void) {
    sem_destroy(&go_on);
}

struct seen {
    bool blocked;
    char name[16];
};

static void *look(void *context) {
    struct seen *seen = context;
    sem_wait(&go_on);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    seen->blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGHUP) == 1;
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    return NULL;
}

static void test_takes_no_signals_and_has_a_short_name(void) {
    struct seen seen = {0};
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, thread_start(&thread, "a name that is too long", look, &seen, NULL));
    sem_post(&go_on);
    TEST_ASSERT_TRUE(thread_join(thread, 10000));
    TEST_ASSERT_TRUE(seen.blocked);
    TEST_ASSERT_EQUAL_STRING("a name that is ", seen.name);

    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    TEST_ASSERT_EQUAL_INT(0, sigismember(&mask, SIGTERM));
}

static void *wait_for_leave(void *context) {
    (void)context;
    sem_wait(&go_on);
    return NULL;
}

static void test_join_can_be_tried_again(void) {
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, thread_start(&thread, "slow", wait_for_leave, NULL, NULL));
    TEST_ASSERT_FALSE(thread_join(thread, 0));
    int64_t begin_ns = clock_monotonic_ns();
    TEST_ASSERT_FALSE(thread_join(thread, 30));
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(30 * CLOCK_NS_PER_MS, clock_monotonic_ns() - begin_ns);
    sem_post(&go_on);
    TEST_ASSERT_TRUE(thread_join(thread, 10000));
}
