#include "placement/control/waggle.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/metrics/parse.h"

static struct waggle *waggle;
static struct buf said;

void setUp(void) {
    waggle = waggle_create();
    TEST_ASSERT_NOT_NULL(waggle);
}

void tearDown(void) {
    waggle_destroy(waggle);
    buf_finish(&said);
}

static void note(void *context, const char *name, const struct buf *json) {
    (void)context;
    TEST_ASSERT_NOT_NULL(strstr(buf_str(json), name));
    buf_printf(&said, "%s\n", buf_str(json));
}

/* What it says of a page at that second; wall time is 1000 seconds ahead. */
static const char *take(const char *namespace, int64_t second, const char *text) {
    static const struct exposition_limits limits = {.max_families = 100,
                                                    .max_samples = 100,
                                                    .max_labels = 10,
                                                    .max_name_len = 100,
                                                    .max_value_len = 100};
    struct exposition_doc page CLEANUP_EXPOSITION_DOC = {0};
    struct error error;
    char *copy CLEANUP_FREE = strdup(text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, exposition_parse(copy, strlen(copy), &limits, &page, &error),
                                  error.text);
    buf_reset(&said);
    waggle_take(waggle, &page, namespace, (1000 + second) * CLOCK_NS_PER_SEC,
                second * CLOCK_NS_PER_SEC, note, NULL);
    return buf_str(&said);
}

#define CPU(id, rest, value)                                                                       \
    "container_cpu_usage_seconds_total{id=\"" id "\",cpu=\"total\"" rest "} " value "\n"
#define A ",container=\"a\",namespace=\"ses\",image=\"r/a:1\""

static void test_cpu_is_a_rate(void) {
    TEST_ASSERT_EQUAL_STRING("", take("ses", 1, CPU("/a", A, "10")));
    TEST_ASSERT_EQUAL_STRING("{\"name\":\"sys.plugin.perf.cpu\",\"ts\":1011000000000,"
                             "\"meta\":{\"plugin\":\"r/a:1\",\"task\":\"a\"},\"val\":150}\n",
                             take("ses", 11, CPU("/a", A, "25")));
    /* The counter has started again. */
    TEST_ASSERT_EQUAL_STRING("", take("ses", 21, CPU("/a", A, "1")));
    TEST_ASSERT_NOT_NULL(strstr(take("ses", 31, CPU("/a", A, "1")), "\"val\":0}"));
    /* It was gone in between. */
    take("ses", 41, CPU("/b", A, "1"));
    TEST_ASSERT_NULL(strstr(take("ses", 51, CPU("/a", A, "9")), "perf.cpu"));
}

static void test_who_is_meant(void) {
    static const char page[] = CPU("/a", A, "1") CPU("/b", ",container=\"b\",namespace=\"x\"",
                                                     "1") CPU("/c", ",name=\"c\"", "1")
        CPU("/d", "",
            "1") "container_cpu_usage_seconds_total{id=\"/a\",cpu=\"cpu00\",container=\"a\"} 1\n"
                 "container_memory_working_set_bytes{id=\"/a\"} 100\n"
                 "container_memory_working_set_bytes{id=\"/b\"} 200\n"
                 "container_memory_working_set_bytes{id=\"/c\"} 300\n"
                 "container_memory_working_set_bytes{id=\"/d\"} 400\n";
    TEST_ASSERT_EQUAL_STRING("{\"name\":\"sys.plugin.perf.mem\",\"ts\":1001000000000,"
                             "\"meta\":{\"plugin\":\"r/a:1\",\"task\":\"a\"},\"val\":100}\n",
                             take("ses", 1, page));
    const char *all = take("", 1, page);
    TEST_ASSERT_NOT_NULL(strstr(all, "\"val\":200}"));
    TEST_ASSERT_NOT_NULL(strstr(all, "{\"task\":\"c\"},\"val\":300}"));
    TEST_ASSERT_NULL(strstr(all, "400"));
}

static void test_names_of_the_scheduler(void) {
    const char *text = take("ses", 1,
                            CPU("/a",
                                A ",container_label_sagecontinuum_org_plugin_task=\"t\\\"\","
                                  "container_label_sagecontinuum_org_plugin_job=\"cars\"",
                                "1") "container_memory_working_set_bytes{id=\"/a\"} 1.5e+09\n");
    TEST_ASSERT_NOT_NULL_MESSAGE(
        strstr(text, "\"meta\":{\"job\":\"cars\",\"plugin\":\"r/a:1\",\"task\":\"t\\\"\"},"
                     "\"val\":1500000000}"),
        text);
}

static void test_gpu(void) {
    static const char gpus[] = "gpu_utilization_ratio{gpu=\"0\"} 0.25\n"
                               "gpu_utilization_ratio{gpu=\"1\"} 0.5\n";
    static const char containers[] = CPU("/a", A, "1") CPU("/b", A, "1");
    struct buf page CLEANUP_BUF = {0};
    /* No GPU, nothing said. */
    TEST_ASSERT_NULL(strstr(take("ses", 1, containers), "gpu"));
    /* Nobody knows whose it is: the node's for all. */
    buf_printf(&page, "%s%s", containers, gpus);
    const char *text = strstr(take("ses", 1, buf_str(&page)), "perf.gpu");
    TEST_ASSERT_NOT_NULL(text);
    TEST_ASSERT_NOT_NULL(strstr(text, "\"val\":50}"));
    TEST_ASSERT_NOT_NULL(strstr(text + 1, "perf.gpu"));
    /* It is known who has memory on it. */
    buf_printf(&page, "container_gpu_memory_bytes{id=\"/a\",gpu=\"0\"} 1\n");
    text = strstr(take("ses", 1, buf_str(&page)), "perf.gpu");
    TEST_ASSERT_NOT_NULL(text);
    TEST_ASSERT_NULL(strstr(text + 1, "perf.gpu"));
    /* It is known how much who uses. */
    buf_printf(&page, "container_gpu_utilization_ratio{id=\"/b\",gpu=\"0\"} 0.125\n");
    text = take("ses", 1, buf_str(&page));
    TEST_ASSERT_NOT_NULL(strstr(text, "\"val\":12.5}"));
    TEST_ASSERT_NOT_NULL(strstr(text, "\"val\":50}"));
}

static void test_values_that_are_none(void) {
    TEST_ASSERT_EQUAL_STRING(
        "", take("ses", 1,
                 CPU("/a", A, "1") "container_memory_working_set_bytes{id=\"/a\"} NaN\n"
                                   "gpu_utilization_ratio{gpu=\"0\"} +Inf\n"));
    TEST_ASSERT_EQUAL_STRING("", take("ses", 1, "up 1\n"));
}

/* The messages of an answer with these series. */
static const char *take_answer(const char *series, int code, const char *words) {
    struct promql_answer answer CLEANUP_PROMQL_ANSWER = {0};
    struct error error = {0};
    buf_printf(&answer.text,
               "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
               series);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, promql_answer_parse(&answer, 10, &error), error.text);
    buf_reset(&said);
    TEST_ASSERT_EQUAL_INT(code, waggle_take_answer("sys.a", &answer, 5, note, NULL, &error));
    TEST_ASSERT_EQUAL_STRING(words, error.text);
    return buf_str(&said);
}

#define SERIES(labels, value)                                                                      \
    "{\"metric\":{\"__name__\":\"a:b\"" labels "},\"value\":[1,\"" value "\"]}"

static void test_labels_are_meta_data(void) {
    TEST_ASSERT_EQUAL_STRING(
        "{\"name\":\"sys.a\",\"ts\":5,\"meta\":{\"plugin\":\"cars\",\"pod\":\"c-1\",\"task\":"
        "\"cars\"},"
        "\"val\":12.5}\n"
        "{\"name\":\"sys.a\",\"ts\":5,\"meta\":{\"task\":\"t\",\"plugin\":\"cars\"},\"val\":0}\n"
        "{\"name\":\"sys.a\",\"ts\":5,\"meta\":{\"gpu\":\"0\"},\"val\":-1}\n",
        take_answer(SERIES(",\"plugin\":\"cars\",\"pod\":\"c-1\"",
                           "12.5") "," SERIES(",\"task\":\"t\",\"plugin\":\"cars\"",
                                              "0") "," SERIES(",\"gpu\":\"0\"", "-1"),
                    0, ""));
    TEST_ASSERT_EQUAL_STRING("", take_answer("", 0, ""));
}

static void test_missing_values_are_not_sent(void) {
    TEST_ASSERT_EQUAL_STRING("{\"name\":\"sys.a\",\"ts\":5,\"meta\":{},\"val\":1}\n",
                             take_answer(SERIES("", "NaN") "," SERIES("", "+Inf") "," SERIES(
                                             "", "1") "," SERIES("", "-Inf"),
                                         0, ""));
}

#define X32 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X256 X32 X32 X32 X32 X32 X32 X32 X32
#define E4 "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"

/* What Waggle's loader drops without a word; it counts characters. */
static void test_limits_of_the_loader(void) {
    TEST_ASSERT_EQUAL_STRING("{\"name\":\"sys.a\",\"ts\":5,\"meta\":{},\"val\":2}\n",
                             take_answer(SERIES(",\"pod\":\"" X256 "y\"", "1") "," SERIES("", "2"),
                                         -EINVAL, "label pod: longer than Waggle takes"));
    take_answer(SERIES(",\"" X32 X32 "y\":\"a\"", "1"), -EINVAL,
                "label " X32 X32 ": longer than Waggle takes");
    TEST_ASSERT_NOT_NULL(strstr(take_answer(SERIES(",\"" X32 X32 "\":\"" X32 X32 X32 X32 X32 X32 X32
                                                   "xxxxxxxxxxxxxxxxxxxxxxxxxxxx" E4 "\"",
                                                   "1"),
                                            0, ""),
                                "\"val\":1}"));
}
