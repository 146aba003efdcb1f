/* A program as libprom's documentation shows them: its headers, its names. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>
#include <waap/plugin.h>

#include "prom.h"
#include "promhttp.h"
#include "tests/fakes/push_peer.h"
#include "tests/unit/waiting.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define SANITIZER 0
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef SANITIZER
#define SANITIZER 1
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

static double value_of(prom_metric_sample_t *sample) {
    return waap_read((struct waap_metric *)sample);
}

/* ---- the program ---- */

static prom_counter_t *requests;
static prom_gauge_t *temperature;
static prom_histogram_t *latency;

static void set_up(void) {
    CHECK(prom_collector_registry_default_init() == 0);
    requests = prom_collector_registry_must_register_metric(prom_counter_new(
        "requests", "Requests by method and code.", 2, (const char *[]){"method", "code"}));
    temperature = prom_collector_registry_must_register_metric(
        prom_gauge_new("temperature", "In the\nbox.", 0, NULL));
    latency = prom_collector_registry_must_register_metric(
        prom_histogram_new("latency", "Seconds.", prom_histogram_buckets_linear(1.0, 1.0, 3), 1,
                           (const char *[]){"path"}));
}

static void work(void) {
    for (int i = 0; i < 10; i++) {
        CHECK(prom_counter_inc(requests, (const char *[]){"GET", "200"}) == 0);
        CHECK(prom_histogram_observe(latency, i / 2.0, (const char *[]){"/"}) == 0);
    }
    CHECK(prom_counter_add(requests, 2.5, (const char *[]){"GET\"\n\\", "404"}) == 0);
    CHECK(prom_gauge_set(temperature, 20, NULL) == 0);
    CHECK(prom_gauge_inc(temperature, NULL) == 0);
    CHECK(prom_gauge_dec(temperature, NULL) == 0);
    CHECK(prom_gauge_add(temperature, 5, NULL) == 0);
    CHECK(prom_gauge_sub(temperature, 30, NULL) == 0);
}

static void plugin_metrics(void) {
    set_up();
    work();
    CHECK(prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT) == 0);
    CHECK(PROM_COLLECTOR_REGISTRY_DEFAULT == NULL);
}

static void test_metrics_flow_to_the_exporter(void) {
    run(plugin_metrics);
    TEST_ASSERT_EQUAL_DOUBLE(10,
                             push_peer_sum(&peer, "requests{\"code\":\"200\",\"method\":\"GET\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(
        2.5, push_peer_sum(&peer, "requests{\"code\":\"404\",\"method\":\"GET\\\"\\n\\\\\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(-5, push_peer_sum(&peer, "temperature"));
    TEST_ASSERT_EQUAL_DOUBLE(10, push_peer_sum(&peer, "latency{\"path\":\"/\"}_count"));
    TEST_ASSERT_EQUAL_DOUBLE(22.5, push_peer_sum(&peer, "latency{\"path\":\"/\"}_sum"));
    TEST_ASSERT_EQUAL_DOUBLE(5, push_peer_sum(&peer, "latency{\"path\":\"/\"}_bucket_1"));
    json_t *line = push_peer_find(&peer, "metric", "requests");
    TEST_ASSERT_EQUAL_STRING("Requests by method and code.",
                             json_string_value(json_object_get(line, "help")));
}

static const char page[] = "# HELP requests Requests by method and code.\n"
                           "# TYPE requests counter\n"
                           "requests{method=\"GET\\\"\\n\\\\\",code=\"404\"} 2.5\n"
                           "requests{method=\"GET\",code=\"200\"} 10\n"
                           "# HELP temperature In the\\nbox.\n"
                           "# TYPE temperature gauge\n"
                           "temperature -5\n"
                           "# HELP latency Seconds.\n"
                           "# TYPE latency histogram\n"
                           "latency_bucket{path=\"/\",le=\"1.0\"} 3\n"
                           "latency_bucket{path=\"/\",le=\"2.0\"} 5\n"
                           "latency_bucket{path=\"/\",le=\"3.0\"} 7\n"
                           "latency_bucket{path=\"/\",le=\"+Inf\"} 10\n"
                           "latency_count{path=\"/\"} 10\n"
                           "latency_sum{path=\"/\"} 22.5\n";

/* The values of a page's process_* families: those of the process come first. */
static size_t process_values(const char *text, double *values) {
    static const char *const families[][2] = {{"process_max_fds", "gauge"},
                                              {"process_virtual_memory_max_bytes", "gauge"},
                                              {"process_cpu_seconds_total", "counter"},
                                              {"process_virtual_memory_bytes", "gauge"},
                                              {"process_resident_memory_bytes", "gauge"},
                                              {"process_start_time_seconds", "gauge"},
                                              {"process_open_fds", "gauge"}};
    const char *at = text;
    for (size_t i = 0; i < 7; i++) {
        char type[128], value[128];
        snprintf(type, sizeof(type), "\n# TYPE %s %s\n", families[i][0], families[i][1]);
        snprintf(value, sizeof(value), "%s ", families[i][0]);
        CHECK(strncmp(at, "# HELP process_", strlen("# HELP process_")) == 0);
        at = strchr(at, '\n');
        CHECK(strncmp(at, type, strlen(type)) == 0);
        at += strlen(type);
        CHECK(strncmp(at, value, strlen(value)) == 0);
        values[i] = strtod(at + strlen(value), (char **)&at);
        CHECK(*at++ == '\n');
    }
    return (size_t)(at - text);
}

static void check_page(const char *text) {
    double values[7];
    const char *rest = text + process_values(text, values);
    if (strcmp(rest, page) != 0) {
        fputs(text, stderr);
    }
    CHECK(strcmp(rest, page) == 0);
}

static void plugin_process(void) {
    CHECK(prom_collector_registry_default_init() == 0);
    CHECK(prom_collector_registry_enable_process_metrics(PROM_COLLECTOR_REGISTRY_DEFAULT) == 0);
    const char *text = prom_collector_registry_bridge(PROM_COLLECTOR_REGISTRY_DEFAULT);
    double values[7];
    CHECK(process_values(text, values) == strlen(text));
    struct rlimit fds, memory;
    CHECK(getrlimit(RLIMIT_NOFILE, &fds) == 0 && getrlimit(RLIMIT_AS, &memory) == 0);
    CHECK(values[0] == (double)fds.rlim_cur);
    CHECK(values[1] == (memory.rlim_cur == RLIM_INFINITY ? INFINITY : (double)memory.rlim_cur));
    CHECK(values[2] >= 0 && values[2] < 100 && values[3] >= values[4]);
    /* qemu-user shows its guest a /proc/self/stat without them. */
    const char *emulator = getenv("WAAP_EMULATOR");
    if (emulator == NULL || emulator[0] == '\0') {
        CHECK(values[4] > 100000 && fmod(values[4], (double)sysconf(_SC_PAGESIZE)) == 0);
        CHECK(fabs(values[5] - (double)time(NULL)) < WAIT_LIMIT_S);
    }
    CHECK(values[6] >= 3 && values[6] < 100);
    free((char *)text);
    int fd = dup(0);
    double more[7];
    text = prom_collector_registry_bridge(PROM_COLLECTOR_REGISTRY_DEFAULT);
    process_values(text, more);
    CHECK(more[6] == values[6] + 1);
    close(fd);
    free((char *)text);
}

static void test_the_process_shows_itself(void) {
    run(plugin_process);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void plugin_process_files(void) {
    char limits[] = "/tmp/waap-limits-XXXXXX", stat[] = "/tmp/waap-stat-XXXXXX";
    CHECK(close(mkstemp(limits)) == 0 && close(mkstemp(stat)) == 0);
    write_text(limits,
               "Limit                     Soft Limit           Hard Limit           Units     \n"
               "Max open files            1024                 4096                 files     \n"
               "Max address space         unlimited            unlimited            bytes     \n");
    write_text(stat, "7 (a) b)) S 1 7 7 0 -1 4194304 1 2 3 4 150 50 7 8 20 0 1 0 1000 4096000 25 "
                     "18446744073709551615");
    prom_collector_registry_t *registry = prom_collector_registry_new("mine");
    CHECK(prom_collector_registry_register_collector(
              registry, prom_collector_process_new(limits, stat)) == 0);
    const char *text = prom_collector_registry_bridge(registry);
    double values[7], ticks = (double)sysconf(_SC_CLK_TCK);
    CHECK(process_values(text, values) == strlen(text));
    CHECK(values[0] == 1024 && values[1] == INFINITY && values[2] == 200 / ticks);
    CHECK(values[3] == 4096000 && values[4] == 25 * (double)sysconf(_SC_PAGESIZE));
    free((char *)text);
    CHECK(unlink(limits) == 0 && unlink(stat) == 0);
    text = prom_collector_registry_bridge(registry); /* what cannot be read is absent */
    CHECK(strncmp(text, "# HELP process_open_fds ", strlen("# HELP process_open_fds ")) == 0);
    free((char *)text);
    CHECK(prom_collector_registry_destroy(registry) == 0);
}

static void test_a_process_by_its_files(void) {
    run(plugin_process_files);
}

/* ---- destroyed and created again, as libprom's own tests do ---- */

static void plugin_created_again(void) {
    const char *a[] = {"f", "b"}, *b[] = {"o", "r"}, *keys[] = {"foo", "bar"};
    for (int i = 0; i < 3; i++) {
        prom_counter_t *counter = prom_counter_new("test_counter", "counter under test", 2, keys);
        CHECK(prom_counter_add(counter, 100000000.1, a) == 0 && prom_counter_inc(counter, a) == 0);
        CHECK(value_of(prom_metric_sample_from_labels(counter, a)) == 100000001.1);
        CHECK(value_of(prom_metric_sample_from_labels(counter, b)) == 0);
        CHECK(prom_counter_destroy(counter) == 0);
        prom_gauge_t *gauge = prom_gauge_new("test_gauge", "gauge under test", 2, keys);
        CHECK(value_of(prom_metric_sample_from_labels(gauge, b)) == 0);
        CHECK(prom_gauge_sub(gauge, 0.5, a) == 0);
        CHECK(value_of(prom_metric_sample_from_labels(gauge, a)) == -0.5);
        CHECK(prom_gauge_destroy(gauge) == 0);
        prom_histogram_t *histogram = prom_histogram_new(
            "test_histogram", "", prom_histogram_buckets_linear(5, 5, 3), 0, NULL);
        CHECK(prom_histogram_observe(histogram, 7, NULL) == 0);
        CHECK(prom_histogram_observe(histogram, 11, NULL) == 0);
        uint64_t counts[4];
        struct waap_metric *series =
            (struct waap_metric *)prom_metric_sample_histogram_from_labels(histogram, NULL);
        CHECK(waap_read(series) == 18 && waap_read_buckets(series, counts, 4) == 4);
        CHECK(counts[0] == 0 && counts[1] == 1 && counts[2] == 1 && counts[3] == 0);
        CHECK(prom_histogram_destroy(histogram) == 0);
    }
    CHECK(waap_flush(60000));
    CHECK(waap_get_stats().n_series == 0);
}

static void test_created_again_it_has_no_value(void) {
    run(plugin_created_again);
    TEST_ASSERT_EQUAL_DOUBLE(300000003.3,
                             push_peer_sum(&peer, "test_counter{\"bar\":\"b\",\"foo\":\"f\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(54, push_peer_sum(&peer, "test_histogram_sum"));
    TEST_ASSERT_EQUAL_DOUBLE(6, push_peer_sum(&peer, "test_histogram_count"));
    TEST_ASSERT_EQUAL_DOUBLE(3, push_peer_sum(&peer, "test_histogram_bucket_1"));
}

/* Destroyed ones take no room, but not for ever: their names stay known. */
static void plugin_many(void) {
    int n_rounds = 0;
    for (bool room = true; room; n_rounds++) {
        CHECK(prom_collector_registry_default_init() == 0 && n_rounds < 20);
        for (int i = 0; i < 1000 && room; i++) {
            char name[32];
            snprintf(name, sizeof(name), "many_%d_%d", n_rounds, i);
            prom_counter_t *counter = prom_counter_new(name, name, 0, NULL);
            room = counter != NULL && prom_collector_registry_register_metric(counter) == 0;
        }
        CHECK(!room || prom_counter_new("beyond", "", 0, NULL) == NULL);
        CHECK(prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT) == 0);
    }
    CHECK(n_rounds == 11);
}

static void test_destroyed_metrics_take_no_room(void) {
    run(plugin_many);
}

static void plugin_of_another_type(void) {
    prom_counter_t *counter = prom_counter_new("thing", "", 0, NULL);
    CHECK(prom_counter_inc(counter, NULL) == 0);
    CHECK(prom_gauge_new("thing", "", 0, NULL) == NULL);
    CHECK(prom_counter_destroy(counter) == 0);
    prom_gauge_t *gauge = prom_gauge_new("thing", "", 0, NULL);
    CHECK(prom_gauge_set(gauge, 5, NULL) == 0);
    CHECK(prom_counter_new("thing", "", 0, NULL) == NULL);
    CHECK(value_of(prom_metric_sample_from_labels(gauge, NULL)) == 5);
    /* Two that share a series: it has its value until both are destroyed. */
    prom_gauge_t *same = prom_gauge_new("thing", "", 0, NULL);
    CHECK(prom_gauge_destroy(gauge) == 0);
    CHECK(value_of(prom_metric_sample_from_labels(same, NULL)) == 5);
    CHECK(prom_gauge_destroy(same) == 0);
    prom_counter_t *again = prom_counter_new("thing", "", 0, NULL);
    CHECK(value_of(prom_metric_sample_from_labels(again, NULL)) == 0);
    CHECK(prom_counter_destroy(again) == 0);
}

static void test_created_again_it_may_have_another_type(void) {
    run(plugin_of_another_type);
}

static void plugin_bridge(void) {
    set_up();
    work();
    const char *text = prom_collector_registry_bridge(PROM_COLLECTOR_REGISTRY_DEFAULT);
    check_page(text);
    free((char *)text);
    prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT);
}

static void test_the_bridge_writes_the_text_format(void) {
    run(plugin_bridge);
}

static void plugin_bridge_without_numbers(void) {
    CHECK(prom_collector_registry_default_init() == 0);
    prom_collector_registry_must_register_metric(prom_gauge_new("unset", "", 0, NULL));
    prom_gauge_t *odd =
        prom_collector_registry_must_register_metric(prom_gauge_new("odd", "", 0, NULL));
    CHECK(prom_gauge_set(odd, NAN, NULL) == 0);
    const char *text = prom_collector_registry_bridge(PROM_COLLECTOR_REGISTRY_DEFAULT);
    double values[7];
    CHECK(strcmp(text + process_values(text, values),
                 "# HELP unset \n# TYPE unset gauge\n"
                 "# HELP odd \n# TYPE odd gauge\nodd NaN\n") == 0);
    free((char *)text);
    prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT);
}

static void test_the_bridge_writes_nan(void) {
    run(plugin_bridge_without_numbers);
}

/* ---- its own web server ---- */

static void plugin_http(void) {
    set_up();
    work();
    promhttp_set_active_collector_registry(NULL);
    struct MHD_Daemon *daemon =
        promhttp_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL);
    CHECK(daemon != NULL);
    char command[160], answer[4096] = "";
    snprintf(command, sizeof(command), "curl -s --noproxy '*' http://127.0.0.1:%d/metrics",
             MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    size_t len = fread(answer, 1, sizeof(answer) - 1, pipe);
    int status = pclose(pipe);
    MHD_stop_daemon(daemon);
    CHECK(status == 0 && len == strlen(answer));
    check_page(answer);
}

static void test_promhttp_serves_the_page(void) {
    if (system("curl --version >/dev/null 2>&1") != 0) {
        TEST_IGNORE_MESSAGE("SKIP: no curl");
    }
    run(plugin_http);
}

/* ---- collectors ---- */

static prom_gauge_t *asked;

static prom_map_t *collect(prom_collector_t *self) {
    (void)self;
    prom_gauge_set(asked, 42, NULL);
    return NULL;
}

static void plugin_collector(void) {
    prom_collector_registry_t *registry = prom_collector_registry_new("mine");
    prom_collector_t *collector = prom_collector_new("asks");
    asked = prom_gauge_new("asked", "Asked.", 0, NULL);
    CHECK(prom_collector_add_metric(collector, asked) == 0);
    CHECK(prom_collector_set_collect_fn(collector, collect) == 0);
    CHECK(prom_collector_registry_register_collector(registry, collector) == 0);
    CHECK(prom_collector_registry_register_collector(registry, collector) == 1);
    CHECK(prom_collector_registry_enable_process_metrics(registry) == 0);
    prom_collector_t *process = prom_collector_process_new(NULL, NULL);
    CHECK(prom_collector_registry_register_collector(registry, process) == 1);
    CHECK(prom_collector_destroy(process) == 0);
    CHECK(waap_flush(60000));
    promhttp_set_active_collector_registry(registry);
    CHECK(promhttp_get_active_collector_registry() == registry);
    CHECK(prom_collector_registry_destroy(registry) == 0);
    CHECK(promhttp_get_active_collector_registry() == NULL);
}

static void test_collectors_are_asked_before_sending(void) {
    run(plugin_collector);
    TEST_ASSERT_EQUAL_DOUBLE(42, push_peer_sum(&peer, "asked"));
}

static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER; /* the program's own */
static atomic_bool collecting, destroyed;

static void register_collector(prom_collect_fn *fn) {
    CHECK(prom_collector_registry_default_init() == 0);
    prom_collector_t *collector = prom_collector_new("asks");
    asked = prom_gauge_new("asked", "Asked.", 0, NULL);
    CHECK(prom_collector_add_metric(collector, asked) == 0);
    CHECK(prom_collector_set_collect_fn(collector, fn) == 0);
    CHECK(prom_collector_registry_register_collector(PROM_COLLECTOR_REGISTRY_DEFAULT, collector) ==
          0);
}

static void wait_for_collecting(void) {
    CHECK(BECOMES_TRUE(atomic_load(&collecting)));
}

static prom_map_t *collect_locked(prom_collector_t *self) {
    atomic_store(&collecting, true);
    pthread_mutex_lock(&mine);
    collect(self);
    pthread_mutex_unlock(&mine);
    return NULL;
}

static void plugin_registering_under_its_lock(void) {
    alarm(WAIT_LIMIT_S);
    pthread_mutex_lock(&mine);
    register_collector(collect_locked);
    wait_for_collecting();
    prom_collector_registry_must_register_metric(prom_gauge_new("other", "Other.", 0, NULL));
    pid_t pid = fork();
    if (pid == 0) {
        _exit(prom_histogram_buckets_destroy(prom_histogram_buckets_linear(1, 1, 2)));
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    pthread_mutex_unlock(&mine);
    CHECK(waap_flush(60000));
}

static void test_collect_functions_take_the_programs_locks(void) {
    run(plugin_registering_under_its_lock);
    TEST_ASSERT_EQUAL_DOUBLE(42, push_peer_sum(&peer, "asked"));
}

static prom_map_t *collect_slowly(prom_collector_t *self) {
    atomic_store(&collecting, true);
    pace_ms(100);
    CHECK(!atomic_load(&destroyed));
    return collect(self);
}

static void plugin_destroying(void) {
    register_collector(collect_slowly);
    wait_for_collecting();
    CHECK(prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT) == 0);
    atomic_store(&destroyed, true);
    pace_ms(200);
}

static void test_a_collector_outlives_its_call(void) {
    run(plugin_destroying);
}

static prom_map_t *collect_once(prom_collector_t *self) {
    CHECK(prom_collector_destroy(self) == 0);
    atomic_store(&collecting, true);
    return NULL;
}

static void plugin_destroying_itself(void) {
    register_collector(collect_once);
    wait_for_collecting();
    CHECK(waap_flush(60000));
}

static void test_a_collect_function_destroys_its_collector(void) {
    run(plugin_destroying_itself);
}

static atomic_int n_replaced;

static prom_map_t *replace_itself(prom_collector_t *self) {
    CHECK(prom_collector_destroy(self) == 0);
    CHECK(atomic_fetch_add(&n_replaced, 1) < 100);
    register_collector(replace_itself);
    atomic_store(&collecting, true);
    return NULL;
}

static void plugin_replacing_a_collector(void) {
    register_collector(replace_itself);
    wait_for_collecting();
    CHECK(waap_flush(60000));
    CHECK(atomic_load(&n_replaced) > 1); /* the new one is called in the next round */
}

static void test_a_collect_function_replaces_its_collector(void) {
    run(plugin_replacing_a_collector);
}

/* ---- mistakes ---- */

static void plugin_mistakes(void) {
    prom_counter_t *counter = prom_counter_new("counter", "", 1, (const char *[]){"a"});
    prom_gauge_t *gauge = prom_gauge_new("gauge", "", 0, NULL);
    prom_histogram_t *histogram = prom_histogram_new("histogram", "", NULL, 0, NULL);
    CHECK(prom_counter_inc(NULL, NULL) == 1);
    CHECK(prom_counter_inc(counter, NULL) == 1);
    CHECK(prom_counter_inc(counter, (const char *[]){NULL}) == 1);
    CHECK(prom_counter_add(counter, -1, (const char *[]){"x"}) == 1);
    CHECK(prom_counter_add(counter, NAN, (const char *[]){"x"}) == 1);
    CHECK(prom_counter_add(counter, INFINITY, (const char *[]){"x"}) == 1);
    CHECK(prom_gauge_add(gauge, NAN, NULL) == 1);
    CHECK(prom_gauge_sub(gauge, INFINITY, NULL) == 1);
    CHECK(prom_histogram_observe(histogram, NAN, NULL) == 1);
    prom_metric_sample_t *sample = prom_metric_sample_from_labels(counter, (const char *[]){"x"});
    CHECK(prom_metric_sample_add(sample, 1) == 0);
    CHECK(prom_metric_sample_add(sample, -1) == 1);
    CHECK(prom_metric_sample_sub(sample, 1) == 1);
    CHECK(prom_metric_sample_set(sample, 1) == 1);
    CHECK(prom_metric_sample_histogram_observe(NULL, 1) == 1);
    CHECK(prom_counter_inc(gauge, NULL) == 1);
    CHECK(prom_gauge_set(histogram, 1, NULL) == 1);
    CHECK(prom_histogram_observe(gauge, 1, NULL) == 1);
    CHECK(prom_counter_new(NULL, "", 0, NULL) == NULL);
    CHECK(prom_counter_new("", "", 0, NULL) == NULL);
    CHECK(prom_gauge_new("le_is_ours", "", 1, (const char *[]){"le"}) == NULL);
    CHECK(prom_gauge_new("null_key", "", 1, (const char *[]){NULL}) == NULL);
    CHECK(prom_histogram_buckets_linear(1, 0, 3) == NULL);
    CHECK(prom_histogram_buckets_exponential(0, 2, 3) == NULL);
    CHECK(prom_histogram_buckets_exponential(1, 1, 3) == NULL);
    CHECK(prom_histogram_buckets_new(0, 1.0) == NULL);
    prom_histogram_buckets_t *falling = prom_histogram_buckets_new(2, 2.0, 1.0);
    CHECK(prom_histogram_new("falling", "", falling, 0, NULL) == NULL);
    CHECK(prom_histogram_buckets_destroy(falling) == 0);
    CHECK(prom_collector_registry_register_metric(NULL) == 1);
    CHECK(prom_collector_registry_register_metric(counter) == 0);
    CHECK(prom_collector_registry_register_metric(counter) == 1);
    CHECK(prom_counter_destroy(counter) == 0);
    CHECK(prom_gauge_destroy(gauge) == 0);
    CHECK(prom_histogram_destroy(histogram) == 0);
    CHECK(prom_counter_destroy(NULL) == 0);
    CHECK(prom_gauge_destroy(NULL) == 0);
    CHECK(prom_histogram_destroy(NULL) == 0);
    CHECK(prom_histogram_buckets_destroy(NULL) == 0);
    CHECK(prom_collector_registry_destroy(NULL) == 0);
    CHECK(prom_collector_destroy(NULL) == 0);
    CHECK(prom_collector_destroy_generic(NULL) == 0);
    CHECK(prom_collector_new(NULL) == NULL);
    prom_collector_registry_destroy(PROM_COLLECTOR_REGISTRY_DEFAULT);
}

static void test_mistakes(void) {
    run(plugin_mistakes);
}

static void plugin_shared_buckets(void) {
    prom_histogram_buckets_t *buckets = prom_histogram_buckets_exponential(1, 2, 3);
    CHECK(prom_histogram_buckets_count(buckets) == 3 && buckets->upper_bounds[2] == 4);
    prom_histogram_t *one = prom_histogram_new("one", "", buckets, 0, NULL);
    prom_histogram_t *two = prom_histogram_new("two", "", buckets, 0, NULL);
    prom_histogram_t *three = prom_histogram_new("three", "", prom_histogram_default_buckets, 0, 0);
    CHECK(prom_histogram_observe(two, 3, NULL) == 0);
    CHECK(prom_histogram_destroy(one) == 0);
    CHECK(prom_histogram_observe(two, 3, NULL) == 0);
    CHECK(prom_histogram_destroy(two) == 0);
    CHECK(prom_histogram_destroy(three) == 0);
}

static void test_shared_buckets_are_freed_once(void) {
    run(plugin_shared_buckets);
    TEST_ASSERT_EQUAL_DOUBLE(2, push_peer_sum(&peer, "two_count"));
}

static void test_names(void) {
    static const struct {
        const char *name;
        int fault;
    } cases[] = {{"http_requests_total", 0},
                 {"a:b", 0},
                 {"_x9", 0},
                 {"9x", 1},
                 {"", 1},
                 {NULL, 1},
                 {"a-b", 1},
                 {"a b", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TEST_ASSERT_EQUAL_INT(cases[i].fault,
                              prom_collector_registry_validate_metric_name(NULL, cases[i].name));
    }
}

/* ---- threads ---- */

static void *hammer(void *unused) {
    (void)unused;
    static const char *const codes[] = {"200", "404", "500", "503"};
    for (int i = 0; i < 20000; i++) {
        prom_counter_inc(requests, (const char *[]){"GET", codes[i % 4]});
    }
    prom_metric_sample_t *sample =
        prom_metric_sample_from_labels(requests, (const char *[]){"GET", "200"});
    prom_metric_sample_add(sample, 1);
    prom_metric_sample_histogram_observe(
        prom_metric_sample_histogram_from_labels(latency, (const char *[]){"/"}), 1);
    return NULL;
}

static void plugin_threads(void) {
    set_up();
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
    }
    for (int i = 0; i < 20; i++) {
        free((char *)prom_collector_registry_bridge(PROM_COLLECTOR_REGISTRY_DEFAULT));
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    prom_metric_sample_t *sample = prom_metric_sample_from_labels(temperature, NULL);
    CHECK(prom_metric_sample_set(sample, 5) == 0 && prom_metric_sample_sub(sample, 6) == 0);
    CHECK(prom_metric_sample_from_labels(latency, (const char *[]){"/"}) == NULL);
}

static void test_threads(void) {
    run(plugin_threads);
    TEST_ASSERT_EQUAL_DOUBLE(20004,
                             push_peer_sum(&peer, "requests{\"code\":\"200\",\"method\":\"GET\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(20000,
                             push_peer_sum(&peer, "requests{\"code\":\"503\",\"method\":\"GET\"}"));
    TEST_ASSERT_EQUAL_DOUBLE(4, push_peer_sum(&peer, "latency{\"path\":\"/\"}_count"));
    TEST_ASSERT_EQUAL_DOUBLE(-1, push_peer_sum(&peer, "temperature"));
}

static pthread_barrier_t start;

static void *make_buckets(void *unused) {
    (void)unused;
    pthread_barrier_wait(&start);
    for (;;) {
        prom_histogram_buckets_destroy(prom_histogram_buckets_linear(1, 1, 2));
    }
    return NULL;
}

/* Children of a process in which others have the library's locks, from its very first use on. */
static void plugin_forking(void) {
    pthread_t threads[2];
    pthread_barrier_init(&start, NULL, 3);
    for (size_t i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, make_buckets, NULL) == 0);
    }
    pthread_barrier_wait(&start);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(WAIT_LIMIT_S);
            prom_histogram_buckets_t *buckets = prom_histogram_buckets_linear(1, 1, 2);
            _exit(prom_histogram_buckets_destroy(buckets));
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(status == 0);
    }
    _exit(0);
}

static void test_fork_while_other_threads_make_buckets(void) {
    if (SANITIZER) {
        TEST_IGNORE_MESSAGE("SKIP: sanitizers have locks of their own in children of many threads");
    }
    for (int i = 0; i < 50; i++) {
        run(plugin_forking);
    }
}
