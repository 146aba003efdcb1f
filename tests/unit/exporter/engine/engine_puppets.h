#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/engine/engine.h"

/* An engine with two collectors that do as they are told, and scrapes of it. */

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

static inline void hang(struct puppet *puppet, bool hung) {
    pthread_mutex_lock(&puppet->lock);
    puppet->hung = hung;
    pthread_cond_broadcast(&puppet->changed);
    pthread_mutex_unlock(&puppet->lock);
}

static inline int puppet_open(struct puppet *puppet, void **ret_state, struct error *err) {
    atomic_fetch_add(&puppet->n_opens, 1);
    *ret_state = puppet;
    int code = atomic_load(&puppet->open_code);
    return code < 0 ? error_set(err, code, "told not to open") : 0;
}

static inline int a_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    return puppet_open(&puppet_a, ret_state, err);
}

static inline int b_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    return puppet_open(&puppet_b, ret_state, err);
}

static inline int puppet_collect(void *state, struct snapshot *out, struct error *err) {
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

static inline int puppet_sample(void *state) {
    struct puppet *puppet = state;
    atomic_fetch_add(&puppet->n_samples, 1);
    return 0;
}

static inline int puppet_wake_fd(void *state) {
    const struct puppet *puppet = state;
    return puppet->wake_fd;
}

static inline void puppet_wake(void *state) {
    struct puppet *puppet = state;
    uint64_t count;
    atomic_fetch_add(&puppet->n_wakes, 1);
    if (!atomic_load(&puppet->deaf)) {
        TEST_ASSERT_EQUAL_INT(sizeof(count), read(puppet->wake_fd, &count, sizeof(count)));
    }
}

static inline void puppet_close(void *state) {
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

static inline struct config *load(const char *flag) {
    char *argv[] = {(char *)"serve", (char *)"--sample.hz=100",
                    (char *)"--collector.reprobe-interval=1s", (char *)flag, NULL};
    struct config_sources sources = {.argv = argv, .argc = flag != NULL ? 4 : 3};
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct config *config = NULL;
    TEST_ASSERT_EQUAL_INT(0, config_load(collectors, &sources, &config, &problems));
    return config;
}

static inline void configure(const char *flag) {
    struct config *config CLEANUP_CONFIG = load(flag);
    TEST_ASSERT_EQUAL_INT(0, engine_configure(engine, config, &err));
}

static inline void reset(struct puppet *puppet) {
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

/* A scrape that takes its whole time fails the test. */
enum { ENDLESS_MS = 3600000 };

/* Turns the loop until the condition holds. */
#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        int64_t until_ns_ = clock_monotonic_ns() + 60 * CLOCK_NS_PER_SEC;                          \
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
    struct engine_entry entries[2]; /* as they were then, without their parts */
    bool has_samples[2];
};

static inline bool part_has_samples(const struct exposition_part *part) {
    size_t n_blocks = 0;
    return part != NULL && exposition_part_blocks(part, &n_blocks)->n_samples > 0 && n_blocks > 0;
}

static inline void scrape_finished(struct engine_scrape *scrape) {
    struct scrape *mine = CONTAINER_OF(scrape, struct scrape, scrape);
    mine->took_ms = (clock_monotonic_ns() - mine->begin_ns) / CLOCK_NS_PER_MS;
    mine->n_finished++;
    for (size_t i = 0; i < ARRAY_LEN(mine->entries); i++) {
        mine->entries[i] = *engine_entry(engine, i);
        mine->has_samples[i] = part_has_samples(mine->entries[i].part);
        mine->entries[i].part = NULL;
    }
}

static inline void begin(struct scrape *scrape, uint64_t want, int64_t timeout_ms) {
    int64_t now_ns = clock_monotonic_ns();
    *scrape = (struct scrape){
        .scrape = {.want = want,
                   .deadline_ns = now_ns + timeout_ms * CLOCK_NS_PER_MS,
                   .finished = scrape_finished},
        .begin_ns = now_ns,
    };
    if (engine_scrape(engine, &scrape->scrape)) {
        scrape_finished(&scrape->scrape);
    }
}

static inline void finish(struct scrape *scrape) {
    WAIT_UNTIL(scrape->n_finished > 0);
    TEST_ASSERT_EQUAL_INT(1, scrape->n_finished);
}
