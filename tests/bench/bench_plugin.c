#include <stdio.h>
#include <stdlib.h>
#include <waap/plugin.h>

#include "prom.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one record in a plugin, the library's thread included, with no exporter there. */

enum { N_RECORDS = 5000000 };

static struct waap_metric *counter, *gauge, *histogram;
static struct waap_param *param;
static prom_counter_t *requests;
static volatile int64_t sink; /* keeps the loops from being optimised away */

static void record_inc(int i) {
    (void)i;
    waap_inc(counter);
}

static void record_add(int i) {
    waap_add(counter, i);
}

static void record_set(int i) {
    waap_set(gauge, i);
}

static void record_observe(int i) {
    waap_observe(histogram, (i & 1023) / 1000.0);
}

static void record_get(int i) {
    (void)i;
    sink = waap_get_int(param);
}

static void record_prom(int i) {
    (void)i;
    prom_counter_inc(requests, (const char *[]){"GET", "200"});
}

static void measure(const char *what, void (*record)(int i)) {
    const int n_records = stopwatch_count(N_RECORDS);
    double began = stopwatch_cpu_seconds();
    for (int i = 0; i < n_records; i++) {
        record(i);
    }
    printf("plugin, C: %s\t%.3g\n", what, (stopwatch_cpu_seconds() - began) / n_records);
}

int main(void) {
    setenv("WAAP_PUSH_SOCKET", "/nonexistent/push.sock", 1);
    counter = waap_counter("frames_total", NULL, NULL);
    gauge = waap_gauge("queue_length", NULL, NULL);
    histogram = waap_histogram("inference_seconds", NULL, NULL);
    param = waap_param_int("res", 720, 240, 1080, NULL);
    requests = prom_counter_new("requests_total", "", 2, (const char *[]){"method", "code"});
    measure("inc()", record_inc);
    measure("add()", record_add);
    measure("set()", record_set);
    measure("observe(), 13 buckets", record_observe);
    measure("get()", record_get);
    measure("prom_counter_inc(), 2 labels", record_prom);
    return 0;
}
