#include "exporter/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/core/log.h"

/* ---- collectors that do as they are told ---- */

struct puppet {
    pthread_mutex_t lock; /* guards hung */
    pthread_cond_t changed;
    bool hung;
    atomic_int open_code;
    atomic_int collect_code;
    atomic_int n_opens;
    atomic_int n_collects; /* begun */
    atomic_int n_samples;
    atomic_int n_wakes;
    atomic_int n_closes;
    atomic_bool deaf; /* leaves its descriptor readable */
    int wake_fd;
};

#define PUPPET                                                                                     \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }
static struct puppet puppet_a = PUPPET;
static struct puppet puppet_b = PUPPET;

static const struct metric_desc answer = {
    .name = "puppet_answers_total", .help = "Answers.", .type = METRIC_COUNTER};
static const struct metric_desc *const metrics[] = {&answer, NULL};

static void hang(struct puppet *puppet, bool hung) {
    pthread_mutex_lock(&puppet->lock);
    puppet->hung = hung;
    pthread_cond_broadcast(&puppet->changed);
    pthread_mutex_unlock(&puppet->lock);
}

static int puppet_open(struct puppet *puppet, void **ret_state, struct error *err) {
    atomic_fetch_add(&puppet->n_opens, 1);
    *ret_state = puppet;
    int code = atomic_load(&puppet->open_code);
    return code < 0 ? error_set(err, code, "told not to open") : 0;
}

static int a_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    return puppet_open(&puppet_a, ret_state, err);
}

static int b_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    return puppet_open(&puppet_b, ret_state, err);
}

static int puppet_collect(void *state, struct snapshot *out, struct error *err) {
    struct puppet *puppet = state;
    int n = atomic_fetch_add(&puppet->n_collects, 1) + 1;
    pthread_mutex_lock(&puppet->lock);
    while (puppet->hung) {
        pthread_cond_wait(&puppet->changed, &puppet->lock);
    }
    pthread_mutex_unlock(&puppet->lock);
    snapshot_add(out, &answer, NULL, n);
    int code = atomic_load(&puppet->collect_code);
    return code == -EIO ? error_set(err, code, "told to fail") : code;
}

static int puppet_sample(void *state) {
    struct puppet *puppet = state;
    atomic_fetch_add(&puppet->n_samples, 1);
    return 0;
}

static int puppet_wake_fd(void *state) {
    const struct puppet *puppet = state;
    return puppet->wake_fd;
}

static void puppet_wake(void *state) {
    struct puppet *puppet = state;
    uint64_t count;
    atomic_fetch_add(&puppet->n_wakes, 1);
    if (!atomic_load(&puppet->deaf)) {
        TEST_ASSERT_EQUAL_INT(sizeof(count), read(puppet->wake_fd, &count, sizeof(count)));
    }
}

static void puppet_close(void *state) {
    struct puppet *puppet = state;
    atomic_fetch_add(&puppet->n_closes, 1);
}

static const struct option b_options[] = {
    {.name = "collector.b.flavour", .type = OPTION_STRING},
    {0},
};
static const struct collector a = {.name = "a",
                                   .help = "a puppet",
                                   .metrics = metrics,
                                   .on_by_default = true,
                                   .open = a_open,
                                   .collect = puppet_collect,
                                   .close = puppet_close};
static const struct collector b = {.name = "b",
                                   .help = "another",
                                   .metrics = metrics,
                                   .options = b_options,
                                   .on_by_default = true,
                                   .open = b_open,
                                   .sample = puppet_sample,
                                   .wake_fd = puppet_wake_fd,
                                   .wake = puppet_wake,
                                   .collect = puppet_collect,
                                   .close = puppet_close};
static const struct collector *const collectors[] = {&a, &b, NULL};
enum { A = 1, B = 2 };

/* ---- helpers ---- */

static struct loop *loop;
static struct engine *engine;
static struct error err;

static struct config *load(const char *flag) {
    char *argv[] = {(char *)"serve", (char *)"--sample.hz=100",
                    (char *)"--collector.reprobe-interval=1s", (char *)flag, NULL};
    struct config_sources sources = {.argv = argv, .argc = flag != NULL ? 4 : 3};
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct config *config = NULL;
    TEST_ASSERT_EQUAL_INT(0, config_load(collectors, &sources, &config, &problems));
    return config;
}

static void configure(const char *flag) {
    struct config *config CLEANUP_CONFIG = load(flag);
    TEST_ASSERT_EQUAL_INT(0, engine_configure(engine, config, &err));
}

static void reset(struct puppet *puppet) {
    hang(puppet, false);
    atomic_store(&puppet->open_code, 0);
    atomic_store(&puppet->collect_code, 0);
    atomic_store(&puppet->n_opens, 0);
    atomic_store(&puppet->n_collects, 0);
    atomic_store(&puppet->n_samples, 0);
    atomic_store(&puppet->n_wakes, 0);
    atomic_store(&puppet->n_closes, 0);
    atomic_store(&puppet->deaf, false);
    puppet->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TEST_ASSERT_TRUE(puppet->wake_fd >= 0);
}

void setUp(void) {
    reset(&puppet_a);
    reset(&puppet_b);
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
    TEST_ASSERT_EQUAL_INT(0, engine_create(loop, collectors, &engine, &err));
}

void tearDown(void) {
    hang(&puppet_a, false);
    hang(&puppet_b, false);
    if (engine != NULL) {
        TEST_ASSERT_TRUE(engine_destroy(TAKE(engine), 10000));
    }
    loop_destroy(loop);
    close(puppet_a.wake_fd);
    close(puppet_b.wake_fd);
}

/* Turns the loop until the condition holds. */
#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        int64_t until_ns_ = clock_monotonic_ns() + 10 * CLOCK_NS_PER_SEC;                          \
        while (!(condition) && clock_monotonic_ns() < until_ns_) {                                 \
            loop_turn(loop, 5);                                                                    \
        }                                                                                          \
        TEST_ASSERT_TRUE_MESSAGE(condition, #condition);                                           \
    } while (0)

struct scrape {
    struct engine_scrape scrape;
    int64_t begin_ns;
    int64_t took_ms;
    int n_finished;
};

static void scrape_finished(struct engine_scrape *scrape) {
    struct scrape *mine = CONTAINER_OF(scrape, struct scrape, scrape);
    mine->took_ms = (clock_monotonic_ns() - mine->begin_ns) / CLOCK_NS_PER_MS;
    mine->n_finished++;
}

static void begin(struct scrape *scrape, uint64_t want, int64_t timeout_ms) {
    int64_t now_ns = clock_monotonic_ns();
    *scrape = (struct scrape){
        .scrape = {.want = want,
                   .deadline_ns = now_ns + timeout_ms * CLOCK_NS_PER_MS,
                   .finished = scrape_finished},
        .begin_ns = now_ns,
    };
    if (engine_scrape(engine, &scrape->scrape)) {
        scrape->n_finished++;
    }
}

static void finish(struct scrape *scrape) {
    WAIT_UNTIL(scrape->n_finished > 0);
    TEST_ASSERT_EQUAL_INT(1, scrape->n_finished);
}

static void end(struct scrape *scrape) {
    finish(scrape);
    engine_round_unref(TAKE(scrape->scrape.round));
}

static bool has_samples(const struct scrape *scrape, size_t index) {
    const struct exposition_part *part = scrape->scrape.round->entries[index].part;
    size_t n_blocks = 0;
    return part != NULL && exposition_part_blocks(part, &n_blocks)->n_samples > 0 && n_blocks > 0;
}

/* ---- rounds ---- */

static void test_a_scrape_gets_what_it_wants(void) {
    configure(NULL);
    struct scrape scrape;
    begin(&scrape, A | B, 10000);
    TEST_ASSERT_EQUAL_INT(0, scrape.n_finished);
    finish(&scrape);
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    TEST_ASSERT_TRUE(has_samples(&scrape, 0) && has_samples(&scrape, 1));
    end(&scrape);
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_TRUE(has_samples(&scrape, 0));
    TEST_ASSERT_FALSE(has_samples(&scrape, 1));
    end(&scrape);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);
    begin(&scrape, 0, 10000);
    TEST_ASSERT_EQUAL_INT(1, scrape.n_finished);
    end(&scrape);
}

static void test_scrapes_share_a_round(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape first, second, only_a;
    begin(&first, A | B, 10000);
    WAIT_UNTIL(puppet_b.n_collects == 1 && first.scrape.round->done == A);
    begin(&second, A | B, 10000);
    begin(&only_a, A, 10000);
    TEST_ASSERT_EQUAL_INT(1, only_a.n_finished); /* it is there already */
    TEST_ASSERT_EQUAL_PTR(first.scrape.round, second.scrape.round);
    TEST_ASSERT_EQUAL_PTR(first.scrape.round, only_a.scrape.round);
    end(&only_a);
    hang(&puppet_b, false);
    end(&first);
    end(&second);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_collects);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);
}

static void test_each_scrape_has_its_own_deadline(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape patient, hasty;
    begin(&patient, A | B, 10000);
    begin(&hasty, A | B, 50);
    finish(&hasty);
    TEST_ASSERT_EQUAL_HEX64(B, hasty.scrape.missed);
    TEST_ASSERT_TRUE(has_samples(&hasty, 0));
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(50, hasty.took_ms);
    TEST_ASSERT_EQUAL_INT(0, patient.n_finished);
    hang(&puppet_b, false);
    end(&patient);
    TEST_ASSERT_EQUAL_HEX64(0, patient.scrape.missed);
    end(&hasty);
}

static void test_a_hasty_scraper_does_not_take_a_collector_from_others(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape hasty, next;
    begin(&hasty, B, 1);
    end(&hasty);
    TEST_ASSERT_EQUAL_HEX64(B, hasty.scrape.missed);
    begin(&next, B, 10000);
    TEST_ASSERT_EQUAL_INT(0, next.n_finished);
    hang(&puppet_b, false);
    finish(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
    end(&next);
}

static void test_who_was_late_is_not_waited_for_until_it_returns(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape scrape;
    begin(&scrape, A | B, 250);
    end(&scrape);
    TEST_ASSERT_EQUAL_HEX64(B, scrape.scrape.missed);
    TEST_ASSERT_FALSE(engine_status(engine, 1).healthy);
    TEST_ASSERT_NOT_NULL(strstr(engine_status(engine, 1).error, "no answer within"));

    begin(&scrape, A | B, 10000);
    finish(&scrape);
    TEST_ASSERT_LESS_THAN_INT64(5000, scrape.took_ms);
    TEST_ASSERT_EQUAL_HEX64(B, scrape.scrape.missed);
    end(&scrape);
    begin(&scrape, B, 10000);
    TEST_ASSERT_EQUAL_INT(1, scrape.n_finished);
    end(&scrape);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);

    hang(&puppet_b, false);
    WAIT_UNTIL(engine_status(engine, 1).healthy);
    begin(&scrape, A | B, 10000);
    end(&scrape);
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    TEST_ASSERT_EQUAL_INT(2, puppet_b.n_collects);
}

static void test_a_stale_round_is_not_joined(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape old, fresh;
    begin(&old, A | B, 10000);
    WAIT_UNTIL(old.scrape.round->done == A);
    old.scrape.round->start_ns -= 2 * CLOCK_NS_PER_SEC;
    begin(&fresh, A | B, 10000);
    TEST_ASSERT_TRUE(fresh.scrape.round != old.scrape.round);
    hang(&puppet_b, false);
    finish(&old);
    finish(&fresh);
    TEST_ASSERT_EQUAL_INT(2, puppet_a.n_collects);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects); /* its one answer serves both */
    TEST_ASSERT_TRUE(has_samples(&old, 1) && has_samples(&fresh, 1));
    end(&old);
    end(&fresh);
}

static void test_release_ends_every_wait(void) {
    configure(NULL);
    hang(&puppet_a, true);
    struct scrape one, two;
    begin(&one, A, 100000);
    begin(&two, A | B, 100000);
    engine_release(engine);
    TEST_ASSERT_EQUAL_INT(1, one.n_finished);
    TEST_ASSERT_EQUAL_INT(1, two.n_finished);
    TEST_ASSERT_EQUAL_HEX64(A, one.scrape.missed);
    end(&one);
    end(&two);
}

/* ---- faults ---- */

static void test_a_failure_is_told_and_its_samples_are_served(void) {
    configure(NULL);
    atomic_store(&puppet_a.collect_code, -EIO);
    struct scrape scrape;
    begin(&scrape, A | B, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(-EIO, scrape.scrape.round->entries[0].code);
    TEST_ASSERT_TRUE(has_samples(&scrape, 0));
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    end(&scrape);
    struct engine_status status = engine_status(engine, 0);
    TEST_ASSERT_FALSE(status.healthy);
    TEST_ASSERT_EQUAL_STRING("told to fail", status.error);
    TEST_ASSERT_EQUAL_DOUBLE(0, status.last_success_seconds);

    atomic_store(&puppet_a.collect_code, -EPERM); /* without words of its own */
    begin(&scrape, A, 10000);
    end(&scrape);
    TEST_ASSERT_FALSE(engine_status(engine, 0).healthy);
    TEST_ASSERT_EQUAL_STRING("Operation not permitted", engine_status(engine, 0).error);

    atomic_store(&puppet_a.collect_code, -ENODATA);
    begin(&scrape, A, 10000);
    end(&scrape);
    status = engine_status(engine, 0);
    TEST_ASSERT_TRUE(status.healthy);
    TEST_ASSERT_EQUAL_STRING("", status.error);
    TEST_ASSERT_DOUBLE_WITHIN(60, clock_wall_seconds(), status.last_success_seconds);
}

static void test_an_absent_source_is_looked_for_again(void) {
    atomic_store(&puppet_a.open_code, -ENODEV);
    configure(NULL);
    struct scrape scrape;
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(-ENODEV, scrape.scrape.round->entries[0].code);
    TEST_ASSERT_EQUAL_INT(ENGINE_WORKER_ABSENT, engine_status(engine, 0).state);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_collects);
    end(&scrape);
    atomic_store(&puppet_a.open_code, 0);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    TEST_ASSERT_EQUAL_INT(2, puppet_a.n_opens);
}

static void test_a_source_that_vanishes_is_closed_and_comes_back(void) {
    configure(NULL);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    atomic_store(&puppet_a.collect_code, -ENODEV);
    struct scrape scrape;
    begin(&scrape, A, 10000);
    end(&scrape);
    TEST_ASSERT_EQUAL_INT(ENGINE_WORKER_ABSENT, engine_status(engine, 0).state);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_closes);
    atomic_store(&puppet_a.collect_code, 0);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    begin(&scrape, A, 10000);
    end(&scrape);
    TEST_ASSERT_TRUE(engine_status(engine, 0).healthy);
}

static void test_samplers_run_between_scrapes(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_samples >= 3);
    TEST_ASSERT_EQUAL_INT(0, puppet_b.n_collects);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_samples);
}

static void test_a_collector_is_woken(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_samples >= 1);
    for (int i = 1; i <= 3; i++) {
        TEST_ASSERT_EQUAL_INT(0, eventfd_write(puppet_b.wake_fd, 1));
        WAIT_UNTIL(puppet_b.n_wakes == i);
    }
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_wakes);
}

static void test_one_that_wakes_all_the_time_is_still_sampled(void) {
    atomic_store(&puppet_b.deaf, true);
    TEST_ASSERT_EQUAL_INT(0, eventfd_write(puppet_b.wake_fd, 1));
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_wakes >= 100);
    int before = puppet_b.n_samples;
    WAIT_UNTIL(puppet_b.n_samples >= before + 3);
    struct scrape scrape;
    begin(&scrape, B, 10000);
    finish(&scrape);
    TEST_ASSERT_TRUE(has_samples(&scrape, 1));
    end(&scrape);
}

/* ---- reconfiguration ---- */

static void test_what_does_not_change_goes_on(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_a.n_opens == 1 && puppet_b.n_opens == 1);
    configure("--web.max-requests=3");
    configure("--collector.b.flavour=sweet");
    WAIT_UNTIL(puppet_b.n_opens == 2 && puppet_b.n_closes == 1);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_opens);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_closes);
    configure("--no-collector.a");
    TEST_ASSERT_EQUAL_HEX64(B, engine_enabled(engine));
    TEST_ASSERT_FALSE(engine_status(engine, 0).enabled);
    WAIT_UNTIL(puppet_a.n_closes == 1);
}

static void test_a_replaced_collector_is_asked_anew_in_a_shared_round(void) {
    configure(NULL);
    hang(&puppet_a, true);
    hang(&puppet_b, true);
    struct scrape waiting, next;
    begin(&waiting, A | B, 10000);
    WAIT_UNTIL(puppet_b.n_collects == 1);
    configure("--collector.b.flavour=sweet");
    hang(&puppet_b, false);
    TEST_ASSERT_EQUAL_INT(0, waiting.n_finished);
    begin(&next, B, 10000);
    finish(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
    TEST_ASSERT_LESS_THAN_INT64(5000, next.took_ms);
    hang(&puppet_a, false);
    end(&waiting);
    end(&next);
}

static void test_replacing_a_hung_collector_frees_its_scrapes(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape waiting, next;
    begin(&waiting, B, 100000);
    WAIT_UNTIL(puppet_b.n_collects == 1);
    configure("--collector.b.flavour=sour");
    TEST_ASSERT_EQUAL_INT(1, waiting.n_finished);
    TEST_ASSERT_EQUAL_HEX64(B, waiting.scrape.missed);
    end(&waiting);
    hang(&puppet_b, false);
    begin(&next, B, 10000);
    end(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
    WAIT_UNTIL(puppet_b.n_closes == 1);
}

static void test_retiring_right_after_a_start_leaks_nothing(void) {
    struct config *replaced CLEANUP_CONFIG = load("--collector.b.flavour=x");
    configure(NULL);
    for (int i = 0; i < 20; i++) {
        TEST_ASSERT_EQUAL_INT(0, engine_configure(engine, replaced, &err));
        struct scrape scrape;
        begin(&scrape, A | B, 10000);
        engine_release(engine);
        end(&scrape);
        configure(NULL);
    }
    WAIT_UNTIL(atomic_load(&replaced->refs) == 1); /* every slot held one */
    TEST_ASSERT_EQUAL_INT(40, puppet_b.n_closes);
}

static void test_destroy_leaves_a_hung_collector_behind_in_time(void) {
    configure(NULL);
    hang(&puppet_a, true);
    struct scrape scrape;
    begin(&scrape, A | B, 1);
    end(&scrape);
    WAIT_UNTIL(puppet_a.n_collects == 1);
    int64_t begin_ns = clock_monotonic_ns();
    TEST_ASSERT_FALSE(engine_destroy(engine, 100));
    TEST_ASSERT_LESS_THAN_INT64(2 * CLOCK_NS_PER_SEC, clock_monotonic_ns() - begin_ns);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_closes);
    fflush(stdout);
}

int main(void) {
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    UNITY_BEGIN();
    RUN_TEST(test_a_scrape_gets_what_it_wants);
    RUN_TEST(test_scrapes_share_a_round);
    RUN_TEST(test_each_scrape_has_its_own_deadline);
    RUN_TEST(test_a_hasty_scraper_does_not_take_a_collector_from_others);
    RUN_TEST(test_who_was_late_is_not_waited_for_until_it_returns);
    RUN_TEST(test_a_stale_round_is_not_joined);
    RUN_TEST(test_release_ends_every_wait);
    RUN_TEST(test_a_failure_is_told_and_its_samples_are_served);
    RUN_TEST(test_an_absent_source_is_looked_for_again);
    RUN_TEST(test_a_source_that_vanishes_is_closed_and_comes_back);
    RUN_TEST(test_samplers_run_between_scrapes);
    RUN_TEST(test_a_collector_is_woken);
    RUN_TEST(test_one_that_wakes_all_the_time_is_still_sampled);
    RUN_TEST(test_what_does_not_change_goes_on);
    RUN_TEST(test_a_replaced_collector_is_asked_anew_in_a_shared_round);
    RUN_TEST(test_replacing_a_hung_collector_frees_its_scrapes);
    RUN_TEST(test_retiring_right_after_a_start_leaks_nothing);
    RUN_TEST(test_destroy_leaves_a_hung_collector_behind_in_time);
    return UNITY_END();
}
