#include "exporter/loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "tests/unit/waiting.h"

static struct loop *loop;
static char happened[64]; /* a letter per event, in order */

void setUp(void) {
    struct error err;
    memset(happened, 0, sizeof(happened));
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
}

void tearDown(void) {
    loop_destroy(loop);
}

static void note(char letter) {
    happened[strlen(happened)] = letter;
}

/* ---- descriptors ---- */

struct named_source {
    struct loop_source source;
    char name;
    struct named_source *removes;
};

static void source_ready(struct loop_source *source, uint32_t events) {
    struct named_source *named = CONTAINER_OF(source, struct named_source, source);
    TEST_ASSERT_EQUAL_HEX32(EPOLLIN, events);
    note(named->name);
    if (named->removes != NULL) {
        loop_remove(loop, &named->removes->source);
    }
}

static struct named_source ready_source(char name) {
    return (struct named_source){
        .source = {.fd = eventfd(1, EFD_CLOEXEC), .ready = source_ready},
        .name = name,
    };
}

static void test_a_descriptor_is_ready_as_long_as_it_is(void) {
    struct named_source a = ready_source('a');
    TEST_ASSERT_EQUAL_INT(0, loop_add(loop, &a.source, EPOLLIN, NULL));
    loop_turn(loop, 1000);
    loop_turn(loop, 1000);
    TEST_ASSERT_EQUAL_STRING("aa", happened);
    loop_remove(loop, &a.source);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("aa", happened);
    close(a.source.fd);
}

static void test_events_can_be_changed(void) {
    struct named_source a = ready_source('a');
    loop_add(loop, &a.source, 0, NULL);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("", happened);
    loop_change(loop, &a.source, EPOLLIN);
    loop_turn(loop, 1000);
    TEST_ASSERT_EQUAL_STRING("a", happened);
    loop_remove(loop, &a.source);
    close(a.source.fd);
}

static void test_what_one_source_removes_is_not_told_in_the_same_turn(void) {
    struct named_source a = ready_source('a');
    struct named_source b = ready_source('b');
    a.removes = &b;
    b.removes = &a;
    loop_add(loop, &a.source, EPOLLIN, NULL);
    loop_add(loop, &b.source, EPOLLIN, NULL);
    loop_turn(loop, 1000);
    TEST_ASSERT_EQUAL_size_t(1, strlen(happened));
    close(a.source.fd);
    close(b.source.fd);
}

static void slow_ready(struct loop_source *source, uint32_t events) {
    pace_ms(3);
    source_ready(source, events);
    TEST_ASSERT_TRUE(loop_turn_is_long(loop));
}

/* No source may be the one that always comes too late. */
static void test_each_source_is_the_first_of_a_long_turn(void) {
    struct named_source sources[] = {ready_source('a'), ready_source('b'), ready_source('c')};
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        sources[i].source.ready = slow_ready;
        TEST_ASSERT_EQUAL_INT(0, loop_add(loop, &sources[i].source, EPOLLIN, NULL));
    }
    char first[4] = "";
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        memset(happened, 0, sizeof(happened));
        loop_turn(loop, 1000);
        TEST_ASSERT_EQUAL_size_t(3, strlen(happened));
        TEST_ASSERT_NULL(strchr(first, happened[0]));
        first[i] = happened[0];
    }
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        loop_remove(loop, &sources[i].source);
        close(sources[i].source.fd);
    }
}

static void test_a_bad_descriptor_is_an_error(void) {
    struct error err;
    struct loop_source source = {.fd = -1, .ready = source_ready};
    TEST_ASSERT_EQUAL_INT(-EBADF, loop_add(loop, &source, EPOLLIN, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "descriptor -1"));
}

/* ---- timers ---- */

struct named_timer {
    struct loop_timer timer;
    char name;
    bool again;
};

static void timer_fire(struct loop_timer *timer) {
    struct named_timer *named = CONTAINER_OF(timer, struct named_timer, timer);
    note(named->name);
    TEST_ASSERT_EQUAL_INT64(LOOP_NEVER, timer->due_ns);
    if (named->again) {
        timer->due_ns = clock_monotonic_ns() + 5 * CLOCK_NS_PER_MS;
        named->again = false;
    } else {
        loop_timer_remove(loop, timer);
    }
}

static void turn_until_happened(size_t n) {
    int64_t until_ns = clock_monotonic_ns() + WAIT_LIMIT_S * CLOCK_NS_PER_SEC;
    while (strlen(happened) < n && clock_monotonic_ns() < until_ns) {
        loop_turn(loop, -1);
    }
}

struct ending_timer {
    struct loop_timer timer;
    struct ending_timer *ends;
};

static void end_other(struct loop_timer *timer) {
    struct ending_timer *ending = CONTAINER_OF(timer, struct ending_timer, timer);
    note('e');
    if (ending->ends != NULL) {
        loop_timer_remove(loop, &ending->ends->timer);
        free(ending->ends);
    }
}

/* As the lines of a plugin, read when its rate allows, end requests that wait for its knobs. */
static void test_a_timer_may_end_the_next(void) {
    struct ending_timer *ended = malloc(sizeof(*ended));
    *ended = (struct ending_timer){.timer.fire = end_other};
    struct ending_timer first = {.timer.fire = end_other, .ends = ended};
    struct ending_timer last = {.timer.fire = end_other};
    loop_timer_add(loop, &last.timer);
    loop_timer_add(loop, &ended->timer);
    loop_timer_add(loop, &first.timer);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("ee", happened);
    loop_timer_remove(loop, &first.timer);
    loop_timer_remove(loop, &last.timer);
}

static void test_timers_fire_once_when_due(void) {
    int64_t now_ns = clock_monotonic_ns();
    struct named_timer never = {{.due_ns = LOOP_NEVER, .fire = timer_fire}, 'n', false};
    struct named_timer late = {{now_ns + 3600 * CLOCK_NS_PER_SEC, timer_fire, NULL}, 'l', false};
    struct named_timer soon = {{now_ns + 10 * CLOCK_NS_PER_MS, timer_fire, NULL}, 's', true};
    loop_timer_add(loop, &never.timer);
    loop_timer_add(loop, &late.timer);
    loop_timer_add(loop, &soon.timer);
    turn_until_happened(2);
    TEST_ASSERT_EQUAL_STRING("ss", happened);
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(15 * CLOCK_NS_PER_MS, clock_monotonic_ns() - now_ns);
    late.timer.due_ns = clock_monotonic_ns() + 5 * CLOCK_NS_PER_MS;
    turn_until_happened(3);
    TEST_ASSERT_EQUAL_STRING("ssl", happened);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("ssl", happened);
}

/* ---- pumps ---- */

static int64_t pump_wish_ms;

static int64_t pump_timeout_ms(struct loop_pump *pump) {
    (void)pump;
    return pump_wish_ms;
}

static void pump_run(struct loop_pump *pump) {
    (void)pump;
    note('p');
}

/* meson ends a test that waits that long. */
enum { ENDLESS_MS = 3600000 };

static int64_t turn_ms(int64_t timeout_ms) {
    int64_t begin_ns = clock_monotonic_ns();
    loop_turn(loop, timeout_ms);
    return (clock_monotonic_ns() - begin_ns) / CLOCK_NS_PER_MS;
}

static void test_pumps_run_every_turn_and_may_shorten_it(void) {
    struct loop_pump pump = {.timeout_ms = pump_timeout_ms, .run = pump_run};
    loop_pump_add(loop, &pump);
    pump_wish_ms = 0;
    loop_turn(loop, ENDLESS_MS);
    pump_wish_ms = -1;
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(20, turn_ms(20));
    pump_wish_ms = ENDLESS_MS;
    loop_turn(loop, 20);
    TEST_ASSERT_EQUAL_STRING("ppp", happened);
    loop_pump_remove(loop, &pump);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("ppp", happened);
}

static void test_a_turn_in_a_hurry_does_not_wait(void) {
    loop_hurry(loop);
    loop_turn(loop, ENDLESS_MS);
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(20, turn_ms(20));
}

/* ---- messages ---- */

enum { N_THREADS = 4, N_EACH = 500 };

struct numbered {
    struct loop_message message;
    int thread;
    int number;
};

static struct numbered messages[N_THREADS][N_EACH];
static int next_number[N_THREADS];
static int n_delivered;

static void deliver(struct loop_message *message) {
    struct numbered *numbered = CONTAINER_OF(message, struct numbered, message);
    TEST_ASSERT_EQUAL_INT(next_number[numbered->thread]++, numbered->number);
    if (++n_delivered == N_THREADS * N_EACH) {
        loop_stop(loop);
    }
}

static void *post_all(void *context) {
    struct numbered *mine = context;
    for (int i = 0; i < N_EACH; i++) {
        loop_post(loop, &mine[i].message);
    }
    return NULL;
}

static void test_messages_of_other_threads_arrive_in_their_order(void) {
    pthread_t threads[N_THREADS];
    for (int t = 0; t < N_THREADS; t++) {
        for (int i = 0; i < N_EACH; i++) {
            messages[t][i] = (struct numbered){{.deliver = deliver}, t, i};
        }
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[t], NULL, post_all, messages[t]));
    }
    loop_run(loop);
    TEST_ASSERT_EQUAL_INT(N_THREADS * N_EACH, n_delivered);
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
}

static int n_again;

static void deliver_again(struct loop_message *message) {
    if (++n_again < 3) {
        loop_post(loop, message);
    }
}

static void test_a_message_can_be_posted_again_while_it_is_delivered(void) {
    struct loop_message message = {.deliver = deliver_again};
    loop_post(loop, &message);
    for (int i = 0; i < 5; i++) {
        loop_turn(loop, 0);
    }
    TEST_ASSERT_EQUAL_INT(3, n_again);
}

static int n_counted;

static void deliver_counted(struct loop_message *message) {
    (void)message;
    n_counted++;
}

/* First, middle, last and alone: the queue stays whole wherever one is taken out. */
static void test_a_message_taken_back_does_not_arrive(void) {
    for (size_t cancelled = 0; cancelled < 3; cancelled++) {
        struct loop_message three[3] = {{.deliver = deliver_counted},
                                        {.deliver = deliver_counted},
                                        {.deliver = deliver_counted}};
        struct loop_message late = {.deliver = deliver_counted};
        n_counted = 0;
        for (size_t i = 0; i < 3; i++) {
            loop_post(loop, &three[i]);
        }
        loop_cancel(loop, &three[cancelled]);
        loop_cancel(loop, &three[cancelled]); /* not there any more: nothing happens */
        loop_post(loop, &late);
        loop_turn(loop, 0);
        TEST_ASSERT_EQUAL_INT(3, n_counted);
    }
    struct loop_message alone = {.deliver = deliver_counted};
    loop_post(loop, &alone);
    loop_cancel(loop, &alone);
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_INT(3, n_counted);
}
