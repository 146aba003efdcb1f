#include "exporter/gateway/body.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "tests/unit/exporter/gateway/gateway_updates.h"

static const struct exposition_limits limits = {
    .max_families = 1000,
    .max_samples = 1000,
    .max_labels = 8,
    .max_name_len = 100,
    .max_value_len = 100,
};

static struct gateway_body body;

/* The updates point into a copy of the text that stays until the next check. */
static void check(const char *text, const char *want) {
    static char data[1024];
    strcpy(data, text);
    struct error err = {0};
    int r = gateway_text_read(data, strlen(text), &limits, &body, &err);
    TEST_ASSERT_EQUAL_STRING_MESSAGE("", err.text, text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, text);
    struct buf got CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_STRING_MESSAGE(want, gateway_updates_text(&got, &body), text);
}

static void test_simple(void) {
    check("", "");
    check("a 3\n", "untyped a{} 3\n");
    check("# TYPE a counter\na{y=\"2\",x=\"1\"} 3\n# HELP b so so\n# TYPE b gauge\nb NaN\n",
          "counter a{x=1,y=2} 3\ngauge b{} NaN \"so so\"\n");
}

static void test_histogram(void) {
    check(
        "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4.5\nh_count 3\n",
        "histogram h{} 1:2 | 3 4.5\n");
    /* Out of order, two series in a muddle, one without count. */
    check("# TYPE h histogram\nh_sum{a=\"2\"} 1\nh_bucket{a=\"2\",le=\"+Inf\"} 7\n"
          "h_bucket{a=\"1\",le=\"5\"} 4\nh_bucket{a=\"2\",le=\"0.5\"} 6\n"
          "h_bucket{a=\"1\",le=\"-1\"} 2\nh_count{a=\"1\"} 4\nx 1\n",
          "untyped x{} 1\nhistogram h{a=1} -1:2 5:4 | 4 0\nhistogram h{a=2} 0.5:6 | 7 1\n");
    check("# TYPE h histogram\nh_count 0\n", "histogram h{} | 0 0\n");
}

static void test_summary(void) {
    check("# TYPE s summary\ns{quantile=\"0.9\"} 8\ns{quantile=\"0.5\"} 7\ns_sum 3\ns_count 9\n",
          "summary s{} 0.5:7 0.9:8 | 9 3\n");
    /* Two families do not mix, though their labels are the same. */
    check("# TYPE s summary\ns_count 1\n# TYPE t summary\nt_count 2\n",
          "summary s{} | 1 0\nsummary t{} | 2 0\n");
}

static void test_timestamps_are_noticed(void) {
    check("a 1\n", "untyped a{} 1\n");
    TEST_ASSERT_FALSE(body.has_timestamps);
    check("a 1\nb 2 1000\n", "untyped a{} 1\nuntyped b{} 2\n");
    TEST_ASSERT_TRUE(body.has_timestamps);
}

static void test_labels_of_the_group_win(void) {
    static const struct label group[] = {{"job", "j"}, {"zone", "z"}};
    check("a{job=\"x\",k=\"v\",zone=\"y\"} 1\nb{k=\"v\"} 2\n",
          "untyped a{job=x,k=v,zone=y} 1\nuntyped b{k=v} 2\n");
    struct buf got CLEANUP_BUF = {0};
    gateway_body_drop_labels(&body, group, ARRAY_LEN(group));
    TEST_ASSERT_EQUAL_STRING("untyped a{k=v} 1\nuntyped b{k=v} 2\n",
                             gateway_updates_text(&got, &body));
}

static void check_bad(const char *text, const char *words) {
    char *data CLEANUP_FREE = strdup(text);
    struct error err = {0};
    TEST_ASSERT_LESS_THAN_INT(0, gateway_text_read(data, strlen(text), &limits, &body, &err));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_EQUAL_size_t(0, body.n_updates);
}

static void test_bad(void) {
    check_bad("a\n", "line 1");
    check_bad("a 1\na 2\n", "line 2");
    check_bad("# TYPE h histogram\nh_bucket 1\n", "le");
}

int suiteTearDown(int failures) {
    gateway_body_finish(&body);
    return failures;
}

#define TYPE "application/vnd.google.protobuf"
#define PROTO "io.prometheus.client.MetricFamily"

static void test_types(void) {
    enum { TEXT, PROTOBUF, BAD };
    static const struct {
        const char *type;
        int want;
    } rows[] = {
        {NULL, TEXT},
        {"", TEXT},
        {"text/plain; version=0.0.4", TEXT},
        {"application/x-www-form-urlencoded", TEXT},
        {TYPE "x; proto=" PROTO "; encoding=delimited", TEXT},
        {TYPE "; proto=" PROTO "; encoding=delimited", PROTOBUF},
        {TYPE ";proto=" PROTO ";encoding=delimited", PROTOBUF},
        {" " TYPE " ; encoding=delimited ; proto=" PROTO " ", PROTOBUF},
        {TYPE "; proto=\"" PROTO "\"; encoding=\"delimited\"", PROTOBUF},
        {"Application/Vnd.Google.Protobuf; Proto=" PROTO "; ENCODING=delimited", PROTOBUF},
        {TYPE, BAD},
        {TYPE ";", BAD},
        {TYPE "; proto; encoding", BAD},
        {TYPE "; proto=" PROTO, BAD},
        {TYPE "; proto=" PROTO "; encoding=text", BAD},
        {TYPE "; proto=" PROTO "; encoding=delimite", BAD},
        {TYPE "; proto=\"" PROTO "\\", BAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool protobuf = false;
        struct error err = {0};
        int r = gateway_type_parse(rows[i].type, &protobuf, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].want == BAD ? -EINVAL : 0, r, rows[i].type);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].want != TEXT, protobuf, rows[i].type);
        TEST_ASSERT_EQUAL_MESSAGE(
            rows[i].want == BAD, strstr(err.text, "encoding=delimited, got") != NULL, rows[i].type);
    }
}
