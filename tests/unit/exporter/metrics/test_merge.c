#include "exporter/metrics/exposition.h"

#include <unity.h>

enum { MAX_BLOCKS = 3 };

static size_t count_lines(const char *text) {
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

/* Behind the first line. */
static void cut(const char *lines, struct iovec pieces[2]) {
    size_t first = lines[0] != '\0' ? (size_t)(strchr(lines, '\n') + 1 - lines) : 0;
    pieces[0] = (struct iovec){(char *)lines, first};
    pieces[1] = (struct iovec){(char *)lines + first, strlen(lines) - first};
}

static void check(enum metric_type type, const char *const lines[MAX_BLOCKS], const char *expected,
                  const uint64_t expected_dropped[MAX_BLOCKS]) {
    struct exposition_block blocks[MAX_BLOCKS];
    const struct exposition_block *pointers[MAX_BLOCKS] = {0};
    struct iovec pieces[MAX_BLOCKS][2];
    for (size_t i = 0; i < MAX_BLOCKS; i++) {
        if (lines[i] != NULL) {
            cut(lines[i], pieces[i]);
            blocks[i] = (struct exposition_block){
                .name = "x",
                .type = type,
                .pieces = pieces[i],
                .n_pieces = 2,
                .len = strlen(lines[i]),
                .n_samples = count_lines(lines[i]),
            };
            pointers[i] = &blocks[i];
        }
    }
    struct buf out CLEANUP_BUF = {0};
    uint64_t dropped[MAX_BLOCKS] = {0};
    exposition_merge(&out, pointers, MAX_BLOCKS, dropped);
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&out));
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected_dropped, dropped, MAX_BLOCKS);
}

struct merge_case {
    const char *lines[MAX_BLOCKS];
    const char *expected;
    uint64_t dropped[MAX_BLOCKS];
};

static void check_all(enum metric_type type, const struct merge_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        check(type, cases[i].lines, cases[i].expected, cases[i].dropped);
    }
}

static void test_series(void) {
    static const struct merge_case cases[] = {
        {{NULL, NULL, NULL}, "", {0}},
        {{"", "", ""}, "", {0}},
        {{NULL, "x 1\n", NULL}, "x 1\n", {0}},
        {{"x 1\n", NULL, "x 2\n"}, "x 1\n", {0, 0, 1}},
        {{"x{a=\"1\"} 1\n", "x 2\n", "x{a=\"2\"} 3\n"}, "x{a=\"1\"} 1\nx 2\nx{a=\"2\"} 3\n", {0}},
        /* labels that look like the end of a line, or like one of a histogram */
        {{"x{a=\"1 2\"} 3\n", "x{a=\"1\"} 2\nx{a=\"1 2\"} 4\n", NULL},
         "x{a=\"1 2\"} 3\nx{a=\"1\"} 2\n",
         {0, 1, 0}},
        {{"x{le=\"1\"} 1\n", "x{le=\"2\"} 2\n", NULL}, "x{le=\"1\"} 1\nx{le=\"2\"} 2\n", {0}},
    };
    check_all(METRIC_GAUGE, cases, ARRAY_LEN(cases));
    check_all(METRIC_COUNTER, cases, ARRAY_LEN(cases));
}

/* Buckets of two sources must not end up in one histogram. */
static void test_histograms_stay_whole(void) {
#define FIRST "x_bucket{le=\"1.0\"} 1\nx_bucket{le=\"+Inf\"} 2\nx_sum 3\nx_count 2\n"
#define NORTH "x_bucket{gate=\"n\",le=\"+Inf\"} 7\nx_sum{gate=\"n\"} 7\nx_count{gate=\"n\"} 7\n"
#define SOUTH "x_bucket{gate=\"s\",le=\"+Inf\"} 8\nx_sum{gate=\"s\"} 8\nx_count{gate=\"s\"} 8\n"
    static const struct merge_case cases[] = {
        {{FIRST, "x_bucket{le=\"0.5\"} 5\nx_bucket{le=\"+Inf\"} 6\nx_sum 6\nx_count 6\n", NULL},
         FIRST,
         {0, 4, 0}},
        {{NORTH, FIRST SOUTH, NORTH SOUTH}, NORTH FIRST SOUTH, {0, 0, 6}},
        /* the bound may stand anywhere, and values may look like one */
        {{NORTH, "x_bucket{le=\"9.0\",gate=\"n\"} 1\n", NULL}, NORTH, {0, 1, 0}},
        {{"x_bucket{a=\"1\",le=\"1.0\",b=\"2\"} 1\n", "x_count{a=\"1\",b=\"2\"} 1\n", NULL},
         "x_bucket{a=\"1\",le=\"1.0\",b=\"2\"} 1\n",
         {0, 1, 0}},
        {{"x_count{a=\"\\\",le=\\\"1\"} 1\n", "x_count{a=\"\\\",le=\\\"2\"} 2\n", NULL},
         "x_count{a=\"\\\",le=\\\"1\"} 1\nx_count{a=\"\\\",le=\\\"2\"} 2\n",
         {0}},
        {{"x_count{a=\"\\\\\"} 1\n", "x_bucket{a=\"\\\\\",le=\"1.0\"} 2\n", NULL},
         "x_count{a=\"\\\\\"} 1\n",
         {0, 1, 0}},
        {{"x_count{file=\"1\"} 1\n", "x_count{file=\"2\"} 2\n", NULL},
         "x_count{file=\"1\"} 1\nx_count{file=\"2\"} 2\n",
         {0}},
        {{"x_bucket{a=\"1\",le=\"1.0\"} 1\n", "x_bucket{quantile=\"1\",le=\"1.0\"} 1\n", NULL},
         "x_bucket{a=\"1\",le=\"1.0\"} 1\nx_bucket{quantile=\"1\",le=\"1.0\"} 1\n",
         {0}},
    };
    check_all(METRIC_HISTOGRAM, cases, ARRAY_LEN(cases));
}

static void test_summaries_stay_whole(void) {
    static const struct merge_case cases[] = {
        {{"x{quantile=\"0.5\"} 1\nx_sum 1\nx_count 1\n", "x{quantile=\"0.9\"} 2\nx_sum 2\n", NULL},
         "x{quantile=\"0.5\"} 1\nx_sum 1\nx_count 1\n",
         {0, 2, 0}},
        {{"x_sum{a=\"1\"} 1\n", "x{a=\"2\",quantile=\"0.9\"} 2\n",
          "x{a=\"1\",quantile=\"1.0\"} 3\n"},
         "x_sum{a=\"1\"} 1\nx{a=\"2\",quantile=\"0.9\"} 2\n",
         {0, 0, 1}},
    };
    check_all(METRIC_SUMMARY, cases, ARRAY_LEN(cases));
}

static void test_the_first_type_counts(void) {
    struct iovec one = {"x 1\n", 4};
    struct iovec two = {"x{a=\"1\"} 1\nx{a=\"2\"} 2\n", 24};
    const struct exposition_block gauge = {.name = "x",
                                           .type = METRIC_GAUGE,
                                           .pieces = &one,
                                           .n_pieces = 1,
                                           .len = one.iov_len,
                                           .n_samples = 1};
    const struct exposition_block counter = {.name = "x",
                                             .type = METRIC_COUNTER,
                                             .pieces = &two,
                                             .n_pieces = 1,
                                             .len = two.iov_len,
                                             .n_samples = 2};
    const struct exposition_block *blocks[] = {NULL, &gauge, &counter};
    uint64_t dropped[MAX_BLOCKS] = {0};
    struct buf out CLEANUP_BUF = {0};
    exposition_merge(&out, blocks, MAX_BLOCKS, dropped);
    TEST_ASSERT_EQUAL_STRING("x 1\n", buf_str(&out));
    TEST_ASSERT_EQUAL_UINT64(2, dropped[2]);
}
