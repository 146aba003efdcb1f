#include "exporter/daemon/web_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"

/* The loop, the worker and the server are the test's own: it decides when the timer fires and what
 * is in force, and counts what is asked of them. */
static struct loop_timer *timer;
static struct worker_job *submitted;
static struct http_server http;
static int n_submitted, n_applied;

void loop_timer_add(struct loop *loop, struct loop_timer *added) {
    (void)loop;
    timer = added;
}

void loop_timer_remove(struct loop *loop, struct loop_timer *removed) {
    (void)loop;
    TEST_ASSERT_EQUAL_PTR(timer, removed);
}

void worker_submit(struct worker *worker, struct worker_job *job) {
    (void)worker;
    submitted = job;
    n_submitted++;
}

int http_server_configure(struct http_server *server, struct config *config,
                          struct web_config *web_config, struct error *err) {
    (void)server, (void)config, (void)web_config, (void)err;
    n_applied++;
    return 0;
}

static const struct option config_file = {.name = "web.config.file", .type = OPTION_STRING};
static const struct option *const options[] = {&config_file};

static char path[] = "/tmp/test_web_watch.XXXXXX";
static struct config config;
static struct daemon daemon_of_test;
static struct web_watch *watch;

static void write_file(const char *text) {
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
}

void setUp(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    n_submitted = n_applied = 0;
    write_file("");
    TEST_ASSERT_EQUAL_INT(0, web_config_load(path, &http.web_config, &problems));
    config.settings = settings_create(options, ARRAY_LEN(options));
    TEST_ASSERT_EQUAL_INT(0,
                          settings_set(config.settings, &config_file, SETTINGS_FLAG, path, NULL));
    daemon_of_test = (struct daemon){.config = &config, .http = &http};
    watch = web_watch_create(&daemon_of_test);
    TEST_ASSERT_NOT_NULL(watch);
}

void tearDown(void) {
    web_watch_destroy(watch);
    settings_destroy(config.settings);
    web_config_unref(TAKE(http.web_config));
}

static void check_waiting(void) {
    TEST_ASSERT_GREATER_THAN_INT64(clock_monotonic_ns(), timer->due_ns);
    TEST_ASSERT_LESS_THAN_INT64(clock_monotonic_ns() + 60 * CLOCK_NS_PER_SEC, timer->due_ns);
}

static void look(void) {
    timer->fire(timer);
    submitted->run(submitted);
    submitted->done(submitted);
    check_waiting();
}

static void test_one_look_at_a_time(void) {
    check_waiting();
    timer->fire(timer);
    TEST_ASSERT_EQUAL_INT(1, n_submitted);
    TEST_ASSERT_EQUAL_INT64(LOOP_NEVER, timer->due_ns);
    submitted->run(submitted);
    submitted->done(submitted);
    check_waiting();
    TEST_ASSERT_EQUAL_INT(0, n_applied);
}

static void test_without_a_web_configuration_there_is_nothing_to_look_at(void) {
    struct web_config *before = TAKE(http.web_config);
    timer->fire(timer);
    TEST_ASSERT_EQUAL_INT(0, n_submitted);
    check_waiting();
    http.web_config = before;
}

/* The worker has ended by then. */
static void test_nothing_is_submitted_while_stopping(void) {
    daemon_of_test.stopping = true;
    for (int i = 0; i < 3; i++) {
        timer->fire(timer);
        TEST_ASSERT_EQUAL_INT(0, n_submitted);
        check_waiting();
    }
}

static void test_a_changed_file_is_applied_once_it_has_settled(void) {
    write_file("http_server_config: {http2: false}\n");
    look();
    TEST_ASSERT_EQUAL_INT(0, n_applied);
    look();
    TEST_ASSERT_EQUAL_INT(1, n_applied);
    TEST_ASSERT_TRUE(daemon_of_test.reload_ok);
}

static void test_what_was_read_while_stopping_is_put_away(void) {
    write_file("http_server_config: {http2: false}\n");
    look();
    timer->fire(timer);
    submitted->run(submitted);
    daemon_of_test.stopping = true;
    submitted->done(submitted);
    TEST_ASSERT_EQUAL_INT(0, n_applied);
}

static void test_a_bad_file_is_refused(void) {
    daemon_of_test.reload_ok = true;
    write_file("nonsense: 1\n");
    look();
    look();
    TEST_ASSERT_EQUAL_INT(0, n_applied);
    TEST_ASSERT_FALSE(daemon_of_test.reload_ok);
}

void suiteSetUp(void) {
    int fd = mkstemp(path);
    if (fd < 0) {
        exit(1);
    }
    close(fd);
}

int suiteTearDown(int failures) {
    unlink(path);
    return failures;
}
