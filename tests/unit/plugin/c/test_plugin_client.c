#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>
#include <waap/plugin.h>

#include "tests/fakes/push_peer.h"
#include "tests/unit/waiting.h"

/* The plugin is a forked child whose asserts end it with another code than 0. */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define THREAD_SANITIZER 0
#define ADDRESS_SANITIZER 0
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#undef ADDRESS_SANITIZER
#define ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#undef THREAD_SANITIZER
#define THREAD_SANITIZER 1
#endif
#endif

static struct push_peer peer;

void setUp(void) {
    push_peer_open(&peer);
}

void tearDown(void) {
    push_peer_close(&peer);
}

static void run(void (*plugin)(void)) {
    TEST_ASSERT_EQUAL_INT(0, push_peer_serve(&peer, push_peer_fork(&peer, plugin)));
}

/* How often the library has asked for what is to be sent. */
static atomic_int n_turns;

static void count_turn(void *unused) {
    (void)unused;
    atomic_fetch_add(&n_turns, 1);
}

/* Until it has done so `n` times more. */
static void wait_turns(int n) {
    int before = atomic_load(&n_turns);
    CHECK(BECOMES_TRUE(atomic_load(&n_turns) >= before + n));
}

/* ---- what is sent ---- */

static void plugin_all_kinds(void) {
    setenv("WAAP_PLUGIN_NAME", "objcounter", 1);
    setenv("WAAP_JOB", "cars", 1);
    struct waap_metric *frames = waap_counter("frames_total", "Frames.", "cam", "top", NULL);
    struct waap_metric *fps = waap_rate("fps", NULL, NULL);
    struct waap_metric *queue = waap_gauge("queue", NULL, NULL);
    struct waap_metric *seconds = waap_histogram("inference_seconds", NULL, NULL);
    waap_gauge("never_set", NULL, NULL);
    for (int i = 0; i < 1000; i++) {
        WAAP_TIMEIT(seconds);
        waap_inc(frames);
        waap_inc(fps);
    }
    waap_set(queue, 4.5);
}

static void test_all_that_was_recorded_is_there_after_exit(void) {
    run(plugin_all_kinds);
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "frames_total{\"cam\":\"top\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "fps"));
    TEST_ASSERT_EQUAL_DOUBLE(4.5, push_peer_sum(&peer, "queue"));
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "inference_seconds_count"));
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "inference_seconds_bucket_12"));
    TEST_ASSERT_TRUE(push_peer_sum(&peer, "inference_seconds_sum") < 10);
    TEST_ASSERT_EQUAL_DOUBLE(-1, push_peer_sum(&peer, "never_set"));
    json_t *hello = json_object_get(json_array_get(peer.lines, 0), "hello");
    TEST_ASSERT_EQUAL_STRING("objcounter", json_string_value(json_object_get(hello, "plugin")));
    TEST_ASSERT_EQUAL_STRING("cars", json_string_value(json_object_get(hello, "job")));
    TEST_ASSERT_EQUAL_size_t(16, strlen(json_string_value(json_object_get(hello, "start"))));
}

static void plugin_configured(void) {
    static const char *const labels[] = {"cam", "left", NULL};
    CHECK(waap_configure(&(struct waap_options){
              .plugin = "mine", .job = "j", .labels = labels, .interval_ms = 10}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    for (int i = 0; i < 20; i++) {
        uint64_t n_lines = waap_get_stats().n_lines;
        waap_inc(frames);
        CHECK(BECOMES_TRUE(waap_get_stats().n_lines > n_lines));
    }
}

static void test_settings_and_pace(void) {
    run(plugin_configured);
    json_t *hello = json_object_get(json_array_get(peer.lines, 0), "hello");
    TEST_ASSERT_EQUAL_STRING("mine", json_string_value(json_object_get(hello, "plugin")));
    json_t *labels = json_object_get(hello, "labels");
    TEST_ASSERT_EQUAL_STRING("left", json_string_value(json_object_get(labels, "cam")));
    TEST_ASSERT_EQUAL_DOUBLE(20, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_TRUE(json_array_size(peer.lines) > 20);
}

static void plugin_idle(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 5}) == 0);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    waap_set(waap_gauge("queue", NULL, NULL), 1);
    CHECK(waap_before_send(count_turn, NULL) == 0);
    wait_turns(20);
}

static void test_what_does_not_change_is_not_sent_again(void) {
    run(plugin_idle);
    /* The hello, the counter perhaps twice, the gauge, and one line to be acknowledged. */
    TEST_ASSERT_TRUE(json_array_size(peer.lines) <= 5);
}

static void plugin_comma(void) {
    CHECK(setlocale(LC_ALL, "de_DE.UTF-8") != NULL);
    waap_set(waap_gauge("half", NULL, NULL), 0.5);
}

static void test_numbers_have_a_point_in_every_locale(void) {
    char locales[4096]; /* that .ci/deps has made */
    const char *root = getenv("WAAP_SOURCE_ROOT");
    snprintf(locales, sizeof(locales), "%s/build/deps/locale", root != NULL ? root : ".");
    setenv("LOCPATH", locales, 1);
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        TEST_IGNORE_MESSAGE("SKIP: no locale de_DE.UTF-8");
    }
    setlocale(LC_ALL, "C");
    run(plugin_comma);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, push_peer_sum(&peer, "half"));
}

static void plugin_many(void) {
    CHECK(waap_configure(&(struct waap_options){.max_series = 5000}) == 0);
    for (int i = 0; i < 3000; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        waap_add(waap_counter("many_total", "Long enough to fill more than one chunk, it is hoped.",
                              "i", value, NULL),
                 i);
    }
}

static void test_many_series_take_more_than_one_chunk(void) {
    run(plugin_many);
    TEST_ASSERT_EQUAL_size_t(3000, json_object_size(peer.sums));
    TEST_ASSERT_EQUAL_DOUBLE(2999, push_peer_sum(&peer, "many_total{\"i\":\"2999\"}"));
}

static void test_pieces_of_any_size(void) {
    peer.piece = 1;
    peer.answer = "\n{\"param\": \"none\", \"value\": 1}\n\n";
    run(plugin_all_kinds);
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "fps"));
}

/* ---- the exporter is away ---- */

static void plugin_counting(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    struct waap_metric *seconds = waap_histogram("work_seconds", NULL, NULL);
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 1000; k++) {
            waap_inc(frames);
            waap_observe(seconds, 0.5);
        }
        pace_ms(1);
        if (i % 4 == 0) {
            waap_flush(1000);
        }
    }
    while (!waap_flush(10000)) {
    }
}

static void test_nothing_is_lost_or_doubled_over_restarts(void) {
    peer.end_after = 413;
    run(plugin_counting);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(50, peer.n_hellos);
    TEST_ASSERT_EQUAL_size_t(1, json_object_size(peer.last));
    TEST_ASSERT_EQUAL_DOUBLE(400000, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_DOUBLE(400000, push_peer_sum(&peer, "work_seconds_count"));
    TEST_ASSERT_EQUAL_DOUBLE(200000, push_peer_sum(&peer, "work_seconds_sum"));
}

static void plugin_once(void) {
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_add(frames, 5);
    waap_set(waap_gauge("queue", NULL, NULL), 3);
    while (!waap_flush(1000)) {
    }
}

static void test_what_was_on_its_way_is_sent_again(void) {
    peer.piece = 30; /* less than the hello */
    peer.end_after = 30;
    peer.n_ends = 2;
    run(plugin_once);
    TEST_ASSERT_EQUAL_size_t(1, peer.n_hellos);
    TEST_ASSERT_EQUAL_DOUBLE(5, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_DOUBLE(3, push_peer_sum(&peer, "queue"));
}

static void plugin_alone(void) {
    double began = waap_now();
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    struct waap_param *res = waap_param_int("res", 720, 240, 1080, NULL);
    for (int i = 0; i < 1000; i++) {
        waap_inc(frames);
        CHECK(waap_get_int(res) == 720);
    }
    CHECK(!waap_flush(50));
    CHECK(!waap_get_stats().connected);
    CHECK(waap_now() - began < 5);
}

static void test_without_an_exporter_nothing_waits(void) {
    push_peer_unlisten(&peer);
    run(plugin_alone);
}

static void plugin_unread(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1, .max_series = 3000}) == 0);
    struct waap_metric *many[2000];
    for (int i = 0; i < 2000; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        many[i] = waap_counter("many_total", NULL, "i", value, NULL);
    }
    double began = waap_now();
    for (int i = 0; i < 2000000; i++) {
        waap_inc(many[i % 2000]);
    }
    CHECK(waap_now() - began < 5);
    CHECK(!waap_flush(50));
    _exit(0);
}

static void test_an_exporter_that_never_reads_blocks_nobody(void) {
    peer.never_reads = true;
    run(plugin_unread);
}

static void test_without_acknowledgements_exit_comes_all_the_same(void) {
    peer.never_acks = true;
    run(plugin_all_kinds);
    TEST_ASSERT_EQUAL_DOUBLE(1000, push_peer_sum(&peer, "fps"));
    size_t n_asked = 0;
    for (size_t i = 0; i < json_array_size(peer.lines); i++) {
        n_asked += json_object_get(json_array_get(peer.lines, i), "seq") != NULL;
    }
    TEST_ASSERT_EQUAL_size_t(1, n_asked);
}

/* ---- errors ---- */

static char last_error[200];
static atomic_bool has_error;

static void remember(const char *text, void *data) {
    CHECK(data == last_error);
    snprintf(last_error, sizeof(last_error), "%s", text);
    atomic_store(&has_error, true);
}

static void plugin_refused(void) {
    CHECK(waap_configure(&(struct waap_options){
              .interval_ms = 1, .on_error = remember, .data = last_error}) == 0);
    struct waap_metric *fps = waap_rate("fps", NULL, NULL);
    CHECK(BECOMES_TRUE((waap_inc(fps), atomic_load(&has_error))));
    CHECK(strcmp(last_error, "fps: is a gauge of another") == 0);
    uint64_t n_lines = waap_get_stats().n_lines;
    CHECK(waap_before_send(count_turn, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        waap_inc(fps);
        wait_turns(1);
    }
    CHECK(waap_get_stats().n_errors == 1);
    CHECK(waap_get_stats().n_lines <= n_lines + 1);
}

static int n_refused;

static void refuse_once(struct push_peer *self, int fd, json_t *line) {
    if (json_object_get(line, "type") != NULL && n_refused++ == 0) {
        push_peer_send(self, fd,
                       "{\"error\": \"fps: is a gauge of another\", \"metric\": \"fps\"}\n");
    }
}

static void test_what_is_refused_is_told_and_rests(void) {
    peer.on_line = refuse_once;
    run(plugin_refused);
}

static void plugin_nonsense(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    CHECK(waap_flush(60000));
    CHECK(waap_get_stats().n_errors == 4);
}

static void test_nonsense_is_counted(void) {
    peer.answer = "nonsense\n{\"ack\": 99}\n{\"param\": \"none\", \"value\": 1}\n[1]\n"
                  "{\"error\": \"\\u0000\\ud800\"}\n{\"metric\": \"x\"}\n";
    run(plugin_nonsense);
}

static void plugin_dropping(void) {
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    for (int i = 0; i < 7; i++) {
        waap_add(frames, -1);
    }
}

static void test_dropped_records_are_a_series(void) {
    run(plugin_dropping);
    TEST_ASSERT_EQUAL_DOUBLE(7, push_peer_sum(&peer, "plugin_records_dropped_total"));
}

static void plugin_dropping_beyond_its_room(void) {
    CHECK(waap_configure(&(struct waap_options){.max_series = 2}) == 0);
    CHECK(waap_counter("frames_total", NULL, NULL) != NULL);
    CHECK(waap_counter("cars_total", NULL, NULL) != NULL);
    for (int i = 0; i < 7; i++) {
        waap_inc(waap_counter("trucks_total", NULL, NULL));
    }
    CHECK(waap_flush(60000));
    CHECK(waap_get_stats().n_series == 2);
}

static void test_drops_are_told_with_all_series_taken(void) {
    run(plugin_dropping_beyond_its_room);
    TEST_ASSERT_EQUAL_DOUBLE(7, push_peer_sum(&peer, "plugin_records_dropped_total"));
}

static FILE *debug_log;
static int debug_before;

/* What the library writes from here on is counted by end_debug. */
static void begin_debug(void) {
    debug_before = dup(STDERR_FILENO);
    debug_log = tmpfile();
    CHECK(debug_log != NULL && dup2(fileno(debug_log), STDERR_FILENO) >= 0);
    setenv("WAAP_DEBUG", "1", 1);
}

static int end_debug(void) {
    dup2(debug_before, STDERR_FILENO);
    rewind(debug_log);
    int n_lines = 0;
    for (int c = getc(debug_log); c != EOF; c = getc(debug_log)) {
        n_lines += c == '\n';
    }
    return n_lines;
}

static void plugin_dropping_untold(void) {
    begin_debug();
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    CHECK(waap_gauge("plugin_records_dropped_total", NULL, NULL) != NULL);
    waap_inc(NULL);
    for (int i = 0; i < 10; i++) {
        CHECK(waap_flush(60000));
    }
    CHECK(end_debug() == 2); /* that, and that it is connected */
}

static void test_drops_are_written_once(void) {
    run(plugin_dropping_untold);
}

/* ---- parameters ---- */

static void plugin_knob(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1000}) == 0);
    struct waap_param *res = waap_param_int("res", 720, 240, 1080, "Lines.");
    CHECK(BECOMES_TRUE(waap_get_int(res) == 480));
    CHECK(waap_flush(60000));
    CHECK(waap_get_stats().n_errors == 1);
}

static void turn_res(struct push_peer *self, int fd, json_t *line) {
    if (json_object_get(line, "default") != NULL) {
        push_peer_send(self, fd,
                       "{\"param\": \"res\", \"value\": 99999}\n"
                       "{\"param\": \"res\", \"value\": 480}\n");
    }
}

static void test_a_knob_is_turned_and_applied(void) {
    peer.on_line = turn_res;
    run(plugin_knob);
    int64_t applied[4] = {0};
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(peer.lines); i++) {
        json_t *value = json_object_get(json_array_get(peer.lines, i), "applied");
        if (value != NULL && n < 4) {
            applied[n++] = json_integer_value(value);
        }
    }
    TEST_ASSERT_EQUAL_size_t(2, n);
    TEST_ASSERT_EQUAL_INT64(720, applied[0]);
    TEST_ASSERT_EQUAL_INT64(480, applied[1]);
}

static atomic_int n_calls;

static void on_res(struct waap_param *param, void *data) {
    (void)data;
    CHECK(waap_get_int(param) == (n_calls == 0 ? 480 : 481));
    CHECK(!waap_flush(1000)); /* returns at once on the library's own thread */
    n_calls++;
}

static void plugin_call(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 60000}) == 0);
    waap_param_new(&(struct waap_param_spec){
        .type = WAAP_INT, .name = "res", .number = 720, .max = 1080, .on_change = on_res});
    CHECK(BECOMES_TRUE(n_calls == 2));
}

/* Turns it again when the first turn is reported. */
static void turn_res_twice(struct push_peer *self, int fd, json_t *line) {
    turn_res(self, fd, line);
    if (json_integer_value(json_object_get(line, "applied")) == 480) {
        push_peer_send(self, fd, "{\"param\": \"res\", \"value\": 481}\n");
    }
}

static void test_a_knob_calls_and_is_applied_at_once(void) {
    peer.on_line = turn_res_twice;
    run(plugin_call);
}

static void collect(void *data) {
    waap_set(*(struct waap_metric **)data, 42);
}

static void plugin_collecting(void) {
    static struct waap_metric *answer;
    answer = waap_gauge("answer", NULL, NULL);
    waap_before_send(collect, &answer);
    CHECK(waap_flush(60000));
}

static void test_asked_before_sending(void) {
    run(plugin_collecting);
    TEST_ASSERT_EQUAL_DOUBLE(42, push_peer_sum(&peer, "answer"));
}

static void collect_deep(void *data) {
    volatile char large[1024 * 1024];
    for (size_t i = 0; i < sizeof(large); i += 1024) {
        large[i] = 42;
    }
    waap_set(*(struct waap_metric **)data, large[0]);
}

static void plugin_collecting_deep(void) {
    static struct waap_metric *answer;
    answer = waap_gauge("answer", NULL, NULL);
    waap_before_send(collect_deep, &answer);
    CHECK(waap_flush(60000));
}

static void test_the_application_has_the_usual_stack(void) {
    run(plugin_collecting_deep);
    TEST_ASSERT_EQUAL_DOUBLE(42, push_peer_sum(&peer, "answer"));
}

static struct waap_metric *sensor;
static atomic_int sensed, n_reads;

static void read_sensor(void *unused) {
    (void)unused;
    waap_set(sensor, atomic_load(&sensed));
    if (atomic_fetch_add(&n_reads, 1) == 0) {
        pace_ms(100);
    }
}

static void plugin_flushing_while_collecting(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 20}) == 0);
    sensor = waap_gauge("sensor", NULL, NULL);
    CHECK(waap_before_send(read_sensor, NULL) == 0);
    CHECK(BECOMES_TRUE(atomic_load(&n_reads) > 0));
    atomic_store(&sensed, 1); /* after the first reading, before its sending */
    CHECK(waap_flush(60000));
    CHECK(waap_read(sensor) == 1);
}

static void test_a_flush_while_the_application_is_asked(void) {
    run(plugin_flushing_while_collecting);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "sensor"));
}

static void plugin_flushing_in_rounds(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 5, .max_series = 3000}) == 0);
    sensor = waap_gauge("sensor", NULL, NULL);
    CHECK(waap_before_send(read_sensor, NULL) == 0);
    struct waap_metric *many[2000];
    for (int i = 0; i < 2000; i++) {
        char value[200];
        snprintf(value, sizeof(value), "%0150d", i);
        many[i] = waap_counter("many_total", NULL, "i", value, NULL);
    }
    for (int k = 1; k <= 10; k++) {
        for (int i = 0; i < 2000; i++) {
            waap_inc(many[i]);
        }
        pace_ms(10);
        atomic_store(&sensed, k);
        CHECK(waap_flush(20000));
        CHECK(waap_read(sensor) == k);
    }
}

/* The socket is full most of the time. */
static void test_a_flush_while_a_round_is_under_way(void) {
    peer.piece = 64;
    run(plugin_flushing_in_rounds);
    TEST_ASSERT_EQUAL_DOUBLE(10, push_peer_sum(&peer, "sensor"));
}

static bool a_line_has_come(void) {
    for (int fd = 3; fd < 64; fd++) {
        char byte;
        if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && byte == '{') {
            return true;
        }
    }
    return false;
}

/* In its fifth call a flush has time to ask; the peer acknowledges what it was not asked for. */
static void read_counting(void *unused) {
    (void)unused;
    int n = atomic_fetch_add(&n_reads, 1) + 1;
    waap_set(sensor, n);
    if (n == 5) {
        CHECK(BECOMES_TRUE(a_line_has_come()));
    }
}

static void plugin_acknowledged_too_early(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    sensor = waap_gauge("sensor", NULL, NULL);
    CHECK(waap_before_send(read_counting, NULL) == 0);
    CHECK(BECOMES_TRUE(atomic_load(&n_reads) >= 5));
    CHECK(!waap_flush(500));
}

static void ack_too_early(struct push_peer *self, int fd, json_t *line) {
    json_t *set = json_object_get(line, "set");
    if (set != NULL && json_number_value(set) == 4) {
        pace_ms(50);
        push_peer_send(self, fd, "{\"ack\": 1}\n");
    }
}

static void test_what_was_not_sent_is_not_acknowledged(void) {
    peer.never_acks = true;
    peer.on_line = ack_too_early;
    run(plugin_acknowledged_too_early);
}

/* ---- the end ---- */

static struct waap_metric *late;
static atomic_bool is_apart;

static void record_late(void) {
    waap_inc(late);
}

static void plugin_recording_late(void) {
    atexit(record_late); /* which is called after all that comes later */
    late = waap_counter("late_total", NULL, NULL);
}

static void test_what_is_recorded_at_the_very_end(void) {
    run(plugin_recording_late);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "late_total"));
}

static void take_apart(void) {
    atomic_store(&is_apart, true);
    pace_ms(100);
    waap_inc(late);
}

static void collect_whole(void *unused) {
    (void)unused;
    CHECK(!atomic_load(&is_apart));
    pace_ms(5);
    CHECK(!atomic_load(&is_apart));
}

static void plugin_taken_apart(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    atexit(take_apart);
    CHECK(waap_before_send(collect_whole, NULL) == 0);
    late = waap_counter("late_total", NULL, NULL);
    pace_ms(50);
}

static void test_nothing_is_called_that_exit_has_taken_apart(void) {
    run(plugin_taken_apart);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "late_total"));
}

static void exit_here(void *unused) {
    (void)unused;
    exit(0);
}

static void plugin_exiting_in_a_call(void) {
    CHECK(waap_before_send(exit_here, NULL) == 0);
    alarm(WAIT_LIMIT_S);
    late = waap_counter("late_total", NULL, NULL);
    waap_flush(60000);
}

static void test_exit_in_a_call_of_the_thread(void) {
    run(plugin_exiting_in_a_call);
}

static pthread_key_t of_thread;

static void end_of_thread(void *unused) {
    (void)unused;
    pace_ms(50); /* until it is waited for */
    waap_inc(waap_counter("threads_ended_total", NULL, NULL));
}

static void mark_thread(void *unused) {
    (void)unused;
    pthread_setspecific(of_thread, &of_thread);
}

static void plugin_with_a_threads_destructor(void) {
    alarm(WAIT_LIMIT_S);
    CHECK(pthread_key_create(&of_thread, end_of_thread) == 0);
    CHECK(waap_before_send(mark_thread, NULL) == 0);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    CHECK(waap_flush(60000));
}

static void test_the_threads_own_end_makes_a_metric(void) {
    run(plugin_with_a_threads_destructor);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

/* ---- processes and signals ---- */

/* Ends a child that hangs. */
static void expect_end(pid_t pid) {
    int status;
    if (BECOMES_TRUE(waitpid(pid, &status, WNOHANG) == pid)) {
        CHECK(status == 0);
        return;
    }
    kill(pid, SIGKILL);
    CHECK(!"hangs");
}

static void plugin_forking(void) {
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    struct waap_metric *queue = waap_gauge("queue", NULL, NULL);
    waap_set(queue, 1);
    for (int i = 0; i < 10; i++) {
        waap_inc(frames);
    }
    CHECK(waap_flush(60000));
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            CHECK(!waap_get_stats().connected);
            for (int k = 0; k < 100 && i > 0; k++) {
                waap_inc(frames); /* the first child records nothing and does not connect */
            }
            exit(0);
        }
    }
    waap_inc(frames);
    int status;
    while (wait(&status) > 0) {
        CHECK(status == 0);
    }
    CHECK(waap_flush(60000));
    CHECK(waap_get_stats().n_connects == 1);
}

static void test_forked_children_count_for_themselves(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_forking);
    TEST_ASSERT_EQUAL_DOUBLE(211, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "queue"));
    TEST_ASSERT_EQUAL_size_t(3, json_object_size(peer.last));
}

static void plugin_forking_with_words(void) {
    begin_debug();
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    CHECK(waap_flush(60000));
    pid_t pid = fork();
    if (pid == 0) {
        waap_inc(frames);
        CHECK(waap_flush(60000));
        _exit(0); /* without the words of a sanitizer */
    }
    expect_end(pid);
    CHECK(end_debug() == 2);
}

static void test_every_process_tells_that_it_is_connected(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_forking_with_words);
}

static atomic_int forked_pid;

static void fork_here(void *unused) {
    (void)unused;
    static bool is_child;
    if (is_child) {
        _exit(0); /* after the first round of its own */
    }
    if (atomic_load(&forked_pid) == 0) {
        pid_t pid = fork();
        is_child = pid == 0;
        atomic_store(&forked_pid, pid == 0 ? -1 : pid);
    }
}

static void plugin_forking_in_a_call(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 20}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_add(frames, 10);
    CHECK(waap_flush(60000));
    CHECK(waap_before_send(fork_here, NULL) == 0);
    CHECK(BECOMES_TRUE(atomic_load(&forked_pid) != 0));
    expect_end(atomic_load(&forked_pid));
}

static void test_a_child_forked_in_a_call_has_its_own_start(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_forking_in_a_call);
    TEST_ASSERT_EQUAL_DOUBLE(10, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_size_t(2, json_object_size(peer.last));
}

static struct waap_metric *recounted;

/* The child goes on as the thread, has another one with its first record, and loses its connection.
 */
static void fork_and_record_here(void *unused) {
    (void)unused;
    static bool is_child;
    static atomic_int n_rounds;
    if (atomic_load(&forked_pid) == 0) {
        pid_t pid = fork();
        is_child = pid == 0;
        atomic_store(&forked_pid, is_child ? -1 : pid);
        return;
    }
    int n = is_child ? atomic_fetch_add(&n_rounds, 1) : -1;
    if (n == 0) {
        waap_add(recounted, 5);
        CHECK(waap_flush(60000));
    } else if (n == 1) {
        for (int fd = 3; fd < 64; fd++) {
            close(fd);
        }
    } else if (n > 1 && waap_flush(5000)) {
        _exit(0);
    }
}

static void plugin_recording_in_a_child_of_a_call(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 20}) == 0);
    recounted = waap_counter("frames_total", NULL, NULL);
    waap_add(recounted, 10);
    CHECK(waap_flush(60000));
    CHECK(waap_before_send(fork_and_record_here, NULL) == 0);
    CHECK(BECOMES_TRUE(atomic_load(&forked_pid) != 0));
    expect_end(atomic_load(&forked_pid));
}

static void test_a_child_forked_in_a_call_counts_once(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_recording_in_a_child_of_a_call);
    TEST_ASSERT_EQUAL_DOUBLE(15, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_size_t(2, json_object_size(peer.last));
}

static void plugin_closing(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 5}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_inc(frames);
    CHECK(waap_flush(60000));
    for (int fd = 3; fd < 64; fd++) {
        close(fd);
    }
    /* Whatever took the numbers is not written to. */
    int pipes[20][2];
    for (size_t i = 0; i < 20; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pipes[i]) == 0);
    }
    waap_inc(frames);
    CHECK(waap_flush(60000));
    char byte;
    for (size_t i = 0; i < 20; i++) {
        CHECK(recv(pipes[i][0], &byte, 1, 0) < 0 && errno == EAGAIN);
        CHECK(recv(pipes[i][1], &byte, 1, 0) < 0 && errno == EAGAIN);
    }
    CHECK(waap_get_stats().n_connects == 2);
    CHECK(BECOMES_TRUE(is_resting()));
}

static void test_descriptors_closed_by_others(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: closing what others use is what the thread sanitizer finds");
    }
    run(plugin_closing);
    TEST_ASSERT_EQUAL_DOUBLE(2, push_peer_sum(&peer, "frames_total"));
}

static pthread_barrier_t first_use;

static void *make_first_metric(void *unused) {
    (void)unused;
    pthread_barrier_wait(&first_use);
    waap_counter("frames_total", NULL, NULL);
    return NULL;
}

static void plugin_forking_at_once(void) {
    pthread_t thread;
    pthread_barrier_init(&first_use, NULL, 2);
    CHECK(pthread_create(&thread, NULL, make_first_metric, NULL) == 0);
    pthread_barrier_wait(&first_use);
    pid_t pid = fork();
    if (pid == 0) {
        waap_get_stats();
        _exit(0);
    }
    expect_end(pid);
    pthread_join(thread, NULL);
    _exit(0);
}

static void test_fork_while_another_thread_makes_the_first_metric(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE(
            "SKIP: with the thread sanitizer each of many processes takes a second");
    }
    for (int i = 0; i < 200; i++) {
        run(plugin_forking_at_once);
    }
}

static void plugin_closing_forking(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 10000}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_inc(frames);
    CHECK(waap_flush(60000));
    pace_ms(50); /* the thread waits and does not notice */
    for (int fd = 3; fd < 64; fd++) {
        close(fd);
    }
    int mine[20];
    for (size_t i = 0; i < 20; i++) {
        mine[i] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        CHECK(mine[i] >= 0);
    }
    if (fork() == 0) {
        waap_inc(frames);
        for (size_t i = 0; i < 20; i++) {
            CHECK(fcntl(mine[i], F_GETFD) == FD_CLOEXEC);
        }
        exit(0);
    }
    int status;
    CHECK(wait(&status) > 0 && status == 0);
}

static void test_a_forked_child_closes_no_descriptor_of_others(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_closing_forking);
    TEST_ASSERT_EQUAL_DOUBLE(2, push_peer_sum(&peer, "frames_total"));
}

static void *record(void *data) {
    for (int i = 0; i < 100000; i++) {
        waap_inc(data);
        if (i % 1000 == 0) {
            waap_inc(waap_counter("made_total", NULL, "thread", "any", NULL));
        }
    }
    return NULL;
}

static void plugin_threads(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, record, frames) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK(waap_flush(60000));
    }
}

static void test_threads(void) {
    run(plugin_threads);
    TEST_ASSERT_EQUAL_DOUBLE(400000, push_peer_sum(&peer, "frames_total"));
    TEST_ASSERT_EQUAL_DOUBLE(400, push_peer_sum(&peer, "made_total{\"thread\":\"any\"}"));
}

static void *flush_long(void *unused) {
    (void)unused;
    waap_flush(60000);
    return NULL;
}

static void plugin_cancelled(void) {
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_inc(frames);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, flush_long, NULL) == 0);
    pace_ms(50);
    CHECK(pthread_cancel(thread) == 0);
    void *result;
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    alarm(WAIT_LIMIT_S);
    CHECK(waap_counter("later_total", NULL, NULL) != NULL);
}

static void test_a_thread_is_cancelled_while_it_flushes(void) {
    peer.never_acks = true;
    run(plugin_cancelled);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

static void not_here(int number) {
    (void)number;
    CHECK(false);
}

static void plugin_signals(void) {
    CHECK(waap_configure(&(struct waap_options){.interval_ms = 1}) == 0);
    signal(SIGPIPE, not_here);
    signal(SIGUSR1, not_here);
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    waap_flush(1000);
    pthread_sigmask(SIG_BLOCK, &mine, NULL);
    kill(getpid(), SIGUSR1); /* stays pending: the library's thread does not take it */
    for (int i = 0; i < 100; i++) {
        waap_inc(frames);
        pace_ms(2);
    }
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1));
    errno = EDOM;
    waap_inc(frames);
    CHECK(errno == EDOM);
}

static void test_signals_are_left_alone(void) {
    peer.end_after = 100;
    run(plugin_signals);
}

static struct waap_metric *handled;

static void record_signal(int number) {
    (void)number;
    int error = errno;
    waap_inc(handled);
    errno = error;
}

static void plugin_recording_in_handlers(void) {
    handled = waap_counter("handled_total", NULL, NULL);
    signal(SIGALRM, record_signal);
    for (int i = 0; i < 40; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            static const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_REAL, &often, NULL);
            for (int k = 0; k < 20; k++) {
                waap_get_stats();
            }
            waap_inc(handled);
            setitimer(ITIMER_REAL, &never, NULL);
            _exit(0);
        }
        expect_end(pid);
    }
}

static void test_records_in_signal_handlers(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the thread sanitizer has no threads in forked children");
    }
    run(plugin_recording_in_handlers);
}

static int first_fd; /* the first that the library opens */
static atomic_bool is_closed;

static void close_first(void *unused) {
    (void)unused;
    if (!atomic_exchange(&is_closed, true)) {
        close(first_fd);
        pace_ms(200);
    }
}

static void plugin_half_closed(void) {
    first_fd = dup(STDERR_FILENO);
    close(first_fd);
    waap_before_send(close_first, NULL);
    struct waap_metric *frames = waap_counter("frames_total", NULL, NULL);
    CHECK(BECOMES_TRUE(atomic_load(&is_closed)));
    waap_inc(frames);
    CHECK(waap_flush(60000)); /* wakes the thread through what has lost its other end */
}

static void test_a_lost_descriptor_raises_no_signal(void) {
    if (THREAD_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: closing what others use is what the thread sanitizer finds");
    }
    run(plugin_half_closed);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

static struct rlimit limit(int resource, rlim_t most) {
    struct rlimit before;
    CHECK(getrlimit(resource, &before) == 0);
    struct rlimit after = {most, before.rlim_max};
    CHECK(setrlimit(resource, &after) == 0);
    return before;
}

static void plugin_out_of_descriptors(void) {
    struct rlimit before = limit(RLIMIT_NOFILE, 3);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    pace_ms(20);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(waap_flush(60000));
}

static void test_out_of_descriptors_for_a_while(void) {
    run(plugin_out_of_descriptors);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

static void plugin_without_room_for_the_usual_stack(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)1 << 50) == 0);
    CHECK(pthread_setattr_default_np(&attributes) == 0);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    CHECK(waap_flush(60000));
}

static void test_a_thread_with_a_small_stack(void) {
    run(plugin_without_room_for_the_usual_stack);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

static void plugin_out_of_memory(void) {
    struct rlimit before = limit(RLIMIT_AS, 4096); /* none for a stack */
    waap_inc(waap_counter("frames_total", NULL, NULL));
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(waap_flush(60000));
}

static void test_a_thread_that_cannot_be_had_at_first(void) {
    if (THREAD_SANITIZER || ADDRESS_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the sanitizer ends where there is no memory");
    }
    run(plugin_out_of_memory);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}

static void plugin_out_of_memory_till_its_end(void) {
    struct rlimit before = limit(RLIMIT_AS, 4096);
    waap_inc(waap_counter("frames_total", NULL, NULL));
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

static void test_a_thread_that_cannot_be_had_before_exit(void) {
    if (THREAD_SANITIZER || ADDRESS_SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: the sanitizer ends where there is no memory");
    }
    run(plugin_out_of_memory_till_its_end);
    TEST_ASSERT_EQUAL_DOUBLE(1, push_peer_sum(&peer, "frames_total"));
}
