#include "plugin/c/plugin_line.h"

#include <math.h>
#include <stdlib.h>
#include <unity.h>

#include "plugin/c/plugin_client.h"

static struct waap_text out;
static bool holds; /* the lock, so that the thread leaves the metrics alone */

void setUp(void) {
    setenv("WAAP_PUSH_SOCKET", "/nonexistent/push.sock", 1);
}

static void release(void) {
    pthread_mutex_unlock(&waap_lock);
    holds = false;
}

void tearDown(void) {
    if (holds) {
        release();
    }
    waap_text_finish(&out);
}

/* The metric as if it had never been told of, until the test ends. */
static struct waap_metric *hold(struct waap_metric *metric) {
    pthread_mutex_lock(&waap_lock);
    holds = true;
    metric->declared = false;
    return metric;
}

#define ASSERT_LINE(text)                                                                          \
    do {                                                                                           \
        TEST_ASSERT_EQUAL_STRING(text "\n", out.data);                                             \
        out.len = 0;                                                                               \
    } while (0)

static void test_hello(void) {
    waap_line_hello(&out, &(struct waap_settings){.plugin = (char[]){"objcounter"}}, 0xabc);
    ASSERT_LINE("{\"hello\":{\"plugin\":\"objcounter\",\"start\":\"0000000000000abc\"}}");

    waap_line_hello(&out,
                    &(struct waap_settings){.plugin = (char[]){"a\"b"},
                                            .job = (char[]){"cars"},
                                            .labels = (char[]){"{\"cam\":\"top\"}"}},
                    UINT64_MAX);
    ASSERT_LINE(
        "{\"hello\":{\"plugin\":\"a\\u0022b\",\"job\":\"cars\",\"labels\":{\"cam\":\"top\"},"
        "\"start\":\"ffffffffffffffff\"}}");
}

static void test_seq(void) {
    waap_line_seq(&out, 7);
    ASSERT_LINE("{\"seq\":7}");
}

static void test_counter(void) {
    struct waap_metric *frames = hold(waap_counter("frames_total", "Frames \"seen\".", NULL));
    waap_line_metric(&out, frames);
    ASSERT_LINE("{\"metric\":\"frames_total\",\"type\":\"counter\",\"help\":\"Frames "
                "\\u0022seen\\u0022.\",\"total\":0}");
    waap_inc(frames);
    waap_inc(frames);
    waap_line_metric(&out, frames);
    ASSERT_LINE("{\"metric\":\"frames_total\",\"total\":2}");
    waap_add(frames, 0.5);
    waap_line_metric(&out, frames);
    ASSERT_LINE("{\"metric\":\"frames_total\",\"total\":2.5}");
}

static void test_gauge_with_labels(void) {
    struct waap_metric *queue =
        hold(waap_gauge("queue", NULL, "stage", "detect", "cam", "top", NULL));
    waap_set(queue, -1.5);
    waap_line_metric(&out, queue);
    ASSERT_LINE("{\"metric\":\"queue\",\"type\":\"gauge\",\"labels\":{\"cam\":\"top\","
                "\"stage\":\"detect\"},\"set\":-1.5}");
}

static void test_gauges_beyond_json(void) {
    struct waap_metric *odd = hold(waap_gauge("odd", NULL, NULL));
    static const struct {
        double value;
        const char *line;
    } cases[] = {
        {NAN, "{\"metric\":\"odd\",\"set\":\"NaN\"}\n"},
        {INFINITY, "{\"metric\":\"odd\",\"set\":\"+Inf\"}\n"},
        {-INFINITY, "{\"metric\":\"odd\",\"set\":\"-Inf\"}\n"},
    };
    odd->declared = true;
    for (size_t i = 0; i < 3; i++) {
        waap_set(odd, cases[i].value);
        TEST_ASSERT_TRUE(waap_metric_changed(odd));
        waap_line_metric(&out, odd);
        TEST_ASSERT_FALSE(waap_metric_changed(odd));
        TEST_ASSERT_EQUAL_STRING(cases[i].line, out.data);
        out.len = 0;
    }
}

static void test_a_series_that_stays(void) {
    struct waap_metric *stays = waap_metric_new(
        &(struct waap_metric_spec){.name = "stays_total", .ttl_seconds = WAAP_TTL_NEVER});
    TEST_ASSERT_NOT_NULL(stays);
    waap_line_metric(&out, hold(stays));
    ASSERT_LINE("{\"metric\":\"stays_total\",\"type\":\"counter\",\"total\":0,\"ttl\":0}");
}

static void test_rate_with_ttl(void) {
    struct waap_metric *fps = waap_metric_new(
        &(struct waap_metric_spec){.type = WAAP_RATE, .name = "fps", .ttl_seconds = 60});
    hold(fps);
    waap_inc(fps);
    waap_line_metric(&out, fps);
    ASSERT_LINE("{\"metric\":\"fps\",\"type\":\"rate\",\"total\":1,\"ttl\":60}");
}

static void test_histogram_counts_are_cumulative(void) {
    static const double bounds[] = {0.01, 0.03, 0.1};
    struct waap_metric *seconds = waap_metric_new(&(struct waap_metric_spec){
        .type = WAAP_HISTOGRAM, .name = "inference_seconds", .bounds = bounds, .n_bounds = 3});
    hold(seconds);
    static const double values[] = {0.01, 0.02, 0.03, 0.25, -1};
    for (size_t i = 0; i < 5; i++) {
        waap_observe(seconds, values[i]);
    }
    waap_line_metric(&out, seconds);
    ASSERT_LINE(
        "{\"metric\":\"inference_seconds\",\"type\":\"histogram\",\"buckets\":[0.01,0.03,0.1],"
        "\"total\":{\"counts\":[2,4,4],\"count\":5,\"sum\":-0.69}}");
}

/* What the thread has told of a parameter does not matter here, but it must not do so now. */
static struct waap_param *hold_param(struct waap_param *param) {
    pthread_mutex_lock(&waap_lock);
    holds = true;
    return param;
}

static void test_param_declarations(void) {
    static const char *const modes[] = {"fast", "good", NULL};
    const struct {
        struct waap_param_spec spec;
        const char *line;
    } cases[] = {
        {{.type = WAAP_INT,
          .name = "res",
          .help = "Lines.",
          .unit = "pixels",
          .number = 720,
          .min = 240,
          .max = 1080,
          .step = 120},
         "{\"param\":\"res\",\"type\":\"int\",\"default\":720,\"min\":240,\"max\":1080,"
         "\"step\":120,\"unit\":\"pixels\",\"help\":\"Lines.\"}\n"
         "{\"param\":\"res\",\"applied\":720}\n"},
        {{.type = WAAP_FLOAT, .name = "gain", .number = 0.5},
         "{\"param\":\"gain\",\"type\":\"float\",\"default\":0.5}\n"
         "{\"param\":\"gain\",\"applied\":0.5}\n"},
        {{.type = WAAP_FLOAT, .name = "from", .max = INFINITY},
         "{\"param\":\"from\",\"type\":\"float\",\"default\":0,\"min\":0}\n"
         "{\"param\":\"from\",\"applied\":0}\n"},
        {{.type = WAAP_FLOAT, .name = "up to", .min = -INFINITY, .max = 5},
         "{\"param\":\"up to\",\"type\":\"float\",\"default\":0,\"max\":5}\n"
         "{\"param\":\"up to\",\"applied\":0}\n"},
        {{.type = WAAP_FLOAT, .name = "any", .min = -INFINITY, .max = INFINITY},
         "{\"param\":\"any\",\"type\":\"float\",\"default\":0}\n"
         "{\"param\":\"any\",\"applied\":0}\n"},
        {{.type = WAAP_BOOL, .name = "on", .number = 1},
         "{\"param\":\"on\",\"type\":\"bool\",\"default\":true}\n"
         "{\"param\":\"on\",\"applied\":true}\n"},
        {{.type = WAAP_STRING, .name = "model", .text = "yolo\n"},
         "{\"param\":\"model\",\"type\":\"string\",\"default\":\"yolo\\u000a\"}\n"
         "{\"param\":\"model\",\"applied\":\"yolo\\u000a\"}\n"},
        {{.type = WAAP_ENUM, .name = "mode", .text = "good", .values = modes},
         "{\"param\":\"mode\",\"type\":\"enum\",\"default\":\"good\","
         "\"values\":[\"fast\",\"good\"]}\n"
         "{\"param\":\"mode\",\"applied\":\"good\"}\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct waap_param *param = hold_param(waap_param_new(&cases[i].spec));
        TEST_ASSERT_NOT_NULL(param);
        waap_line_param(&out, param);
        waap_line_applied(&out, param);
        release();
        TEST_ASSERT_EQUAL_STRING(cases[i].line, out.data);
        out.len = 0;
    }
}
