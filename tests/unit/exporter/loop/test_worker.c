#include "exporter/loop/worker.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"

static struct loop *loop;
static struct worker *worker;
static pthread_t main_thread;
static sem_t go_on;

void setUp(void) {
    struct error err;
    main_thread = pthread_self();
    sem_init(&go_on, 0, 0);
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
    TEST_ASSERT_EQUAL_INT(0, worker_create(loop, "test", &worker, &err));
}

void tearDown(void) {
    loop_destroy(loop);
    sem_destroy(&go_on);
}

struct numbered_job {
    struct worker_job job;
    int number;
    bool ran_elsewhere;
    bool done_here;
};

static int n_run;
static int n_done;

static void job_run(struct worker_job *job) {
    struct numbered_job *numbered = CONTAINER_OF(job, struct numbered_job, job);
    numbered->ran_elsewhere = !pthread_equal(pthread_self(), main_thread);
    TEST_ASSERT_EQUAL_INT(n_run++, numbered->number);
}

static void job_done(struct worker_job *job) {
    struct numbered_job *numbered = CONTAINER_OF(job, struct numbered_job, job);
    numbered->done_here = pthread_equal(pthread_self(), main_thread);
    TEST_ASSERT_EQUAL_INT(n_done++, numbered->number);
}

static void job_wait(struct worker_job *job) {
    (void)job;
    sem_wait(&go_on);
}

static void job_nothing(struct worker_job *job) {
    (void)job;
}

enum { N_JOBS = 50 };

static void submit_all(struct numbered_job *jobs) {
    n_run = 0;
    n_done = 0;
    for (int i = 0; i < N_JOBS; i++) {
        jobs[i] = (struct numbered_job){.job = {.run = job_run, .done = job_done}, .number = i};
        worker_submit(worker, &jobs[i].job);
    }
}

static void test_jobs_run_in_order_and_end_on_the_loop(void) {
    struct numbered_job jobs[N_JOBS];
    submit_all(jobs);
    int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_SEC;
    while (n_done < N_JOBS && clock_monotonic_ns() < until_ns) {
        loop_turn(loop, 100);
    }
    TEST_ASSERT_EQUAL_INT(N_JOBS, n_done);
    for (int i = 0; i < N_JOBS; i++) {
        TEST_ASSERT_TRUE(jobs[i].ran_elsewhere);
        TEST_ASSERT_TRUE(jobs[i].done_here);
    }
    TEST_ASSERT_TRUE(worker_destroy(worker, 10000));
}

static void job_free(struct worker_job *job) {
    free(CONTAINER_OF(job, struct numbered_job, job));
    sem_post(&go_on);
}

static void test_a_job_that_nobody_awaits_may_free_itself(void) {
    struct numbered_job *numbered = calloc(1, sizeof(*numbered));
    TEST_ASSERT_NOT_NULL(numbered);
    numbered->job.run = job_free;
    worker_submit(worker, &numbered->job);
    sem_wait(&go_on);
    TEST_ASSERT_TRUE(worker_destroy(worker, 10000));
    loop_turn(loop, 0);
}

static void test_destroy_takes_what_is_queued_to_its_end(void) {
    struct worker_job block = {.run = job_wait, .done = job_nothing};
    struct numbered_job jobs[N_JOBS];
    worker_submit(worker, &block);
    submit_all(jobs);
    sem_post(&go_on);
    TEST_ASSERT_TRUE(worker_destroy(worker, 10000));
    TEST_ASSERT_EQUAL_INT(N_JOBS, n_run);
    TEST_ASSERT_EQUAL_INT(0, n_done);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_INT(N_JOBS, n_done);
}

static void test_destroy_does_not_wait_for_ever(void) {
    struct worker_job block = {.run = job_wait, .done = job_nothing};
    worker_submit(worker, &block);
    TEST_ASSERT_FALSE(worker_destroy(worker, 50));
    sem_post(&go_on);
    TEST_ASSERT_TRUE(worker_destroy(worker, 10000));
}

static void test_destroy_accepts_nothing(void) {
    TEST_ASSERT_TRUE(worker_destroy(NULL, 0));
    TEST_ASSERT_TRUE(worker_destroy(worker, 10000));
}
