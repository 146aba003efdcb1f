#include "exporter/metrics/exposition.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

#include "exporter/core/file.h"
#include "tests/fakes/collectors_fake.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

/* One family with one sample, and the collector it comes from: a page is a list of these. */
struct row {
    size_t part;
    struct metric_desc desc;
    const char *suffix;
    const char *label; /* value of the label "x"; NULL: no labels */
    double value;      /* negative: the family stays empty */
};

enum { MAX_PARTS = 3, MAX_ROWS = 16 };

static struct labels *labels[MAX_ROWS];
static struct exposition_part *parts[MAX_PARTS];
static uint64_t duplicates[MAX_PARTS];
static struct buf page;

void setUp(void) {
    memset(duplicates, 0, sizeof(duplicates));
}

void tearDown(void) {
    for (size_t i = 0; i < MAX_ROWS; i++) {
        labels_destroy(TAKE(labels[i]));
    }
    for (size_t i = 0; i < MAX_PARTS; i++) {
        exposition_part_unref(TAKE(parts[i]));
    }
    buf_finish(&page);
}

/* Descriptions are compared by address: rows of one part that belong to one family share it. */
static const struct metric_desc *desc_of(const struct row *rows, size_t number) {
    for (size_t i = 0; i < number; i++) {
        if (rows[i].part == rows[number].part && rows[i].desc.type == rows[number].desc.type &&
            strcmp(rows[i].desc.name, rows[number].desc.name) == 0) {
            return &rows[i].desc;
        }
    }
    return &rows[number].desc;
}

static void prepare(const struct row *rows, size_t n) {
    struct snapshot snapshots[MAX_PARTS] = {0};
    tearDown();
    setUp();
    for (size_t i = 0; i < n; i++) {
        struct snapshot *out = &snapshots[rows[i].part];
        const struct metric_desc *desc = desc_of(rows, i);
        if (rows[i].value < 0) {
            snapshot_append(out, desc, NULL, 0);
            continue;
        }
        labels[i] = rows[i].label != NULL ? labels_render("x", rows[i].label) : NULL;
        snapshot_add_suffixed(out, desc, rows[i].suffix != NULL ? rows[i].suffix : "", labels[i],
                              rows[i].value);
    }
    for (size_t i = 0; i < MAX_PARTS; i++) {
        parts[i] = exposition_part_create(&snapshots[i], NULL);
        snapshot_finish(&snapshots[i]);
    }
}

static void assert_page(enum exposition_format format, const char *expected) {
    buf_reset(&page);
    memset(duplicates, 0, sizeof(duplicates));
    exposition_text(&page, (struct exposition_choice){.format = format}, parts, MAX_PARTS,
                    duplicates);
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&page));
}

#define PREPARE(...)                                                                               \
    const struct row rows[] = {__VA_ARGS__};                                                       \
    prepare(rows, ARRAY_LEN(rows))

#define GAUGE(name_)                                                                               \
    { .name = name_, .help = "H.", .type = METRIC_GAUGE }
#define COUNTER(name_)                                                                             \
    { .name = name_, .help = "H.", .type = METRIC_COUNTER }
#define INFO(name_)                                                                                \
    { .name = name_, .help = "H.", .type = METRIC_INFO }
#define HISTOGRAM(name_)                                                                           \
    { .name = name_, .help = "H.", .type = METRIC_HISTOGRAM }
#define SUMMARY(name_)                                                                             \
    { .name = name_, .help = "H.", .type = METRIC_SUMMARY }
#define UNTYPED(name_)                                                                             \
    { .name = name_, .help = "H.", .type = METRIC_UNTYPED }

static void test_an_empty_page(void) {
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT}, NULL, 0, NULL);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&page));
    assert_page(EXPOSITION_TEXT, ""); /* three parts, all NULL */
    assert_page(EXPOSITION_OPENMETRICS, "# EOF\n");
    assert_page(EXPOSITION_OPENMETRICS_0_0_1, "# EOF\n");
}

static void test_appends_to_what_is_there(void) {
    PREPARE({0, GAUGE("a"), NULL, NULL, 1});
    buf_add_str(&page, "before\n");
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT}, parts, MAX_PARTS, NULL);
    TEST_ASSERT_EQUAL_STRING("before\n# HELP a H.\n# TYPE a gauge\na 1\n", buf_str(&page));
}

static void test_every_type_in_both_formats(void) {
    PREPARE({0, {"c_seconds_total", "C.", METRIC_COUNTER, "seconds"}, NULL, "1", 1},
            {0, {"g_ratio", "G.", METRIC_GAUGE, "ratio"}, NULL, NULL, 0.5},
            {0, {"h_bytes", "H.", METRIC_HISTOGRAM, "bytes"}, "_sum", NULL, 2},
            {0, {"h_bytes", "H.", METRIC_HISTOGRAM, "bytes"}, "_count", NULL, 3},
            {0, INFO("i_info"), NULL, "v", 1}, {0, SUMMARY("s"), "_count", NULL, 4},
            {0, UNTYPED("u"), NULL, NULL, 5});
    assert_page(EXPOSITION_TEXT, "# HELP c_seconds_total C.\n"
                                 "# TYPE c_seconds_total counter\n"
                                 "c_seconds_total{x=\"1\"} 1\n"
                                 "# HELP g_ratio G.\n"
                                 "# TYPE g_ratio gauge\n"
                                 "g_ratio 0.5\n"
                                 "# HELP h_bytes H.\n"
                                 "# TYPE h_bytes histogram\n"
                                 "h_bytes_sum 2\n"
                                 "h_bytes_count 3\n"
                                 "# HELP i_info H.\n"
                                 "# TYPE i_info gauge\n"
                                 "i_info{x=\"v\"} 1\n"
                                 "# HELP s H.\n"
                                 "# TYPE s summary\n"
                                 "s_count 4\n"
                                 "# HELP u H.\n"
                                 "# TYPE u untyped\n"
                                 "u 5\n");
    assert_page(EXPOSITION_OPENMETRICS, "# TYPE c_seconds counter\n"
                                        "# UNIT c_seconds seconds\n"
                                        "# HELP c_seconds C.\n"
                                        "c_seconds_total{x=\"1\"} 1\n"
                                        "# TYPE g_ratio gauge\n"
                                        "# UNIT g_ratio ratio\n"
                                        "# HELP g_ratio G.\n"
                                        "g_ratio 0.5\n"
                                        "# TYPE h_bytes histogram\n"
                                        "# UNIT h_bytes bytes\n"
                                        "# HELP h_bytes H.\n"
                                        "h_bytes_sum 2\n"
                                        "h_bytes_count 3\n"
                                        "# TYPE i info\n"
                                        "# HELP i H.\n"
                                        "i_info{x=\"v\"} 1\n"
                                        "# TYPE s summary\n"
                                        "# HELP s H.\n"
                                        "s_count 4\n"
                                        "# TYPE u unknown\n"
                                        "# HELP u H.\n"
                                        "u 5\n"
                                        "# EOF\n");
}

static void test_units_that_do_not_fit_are_left_out(void) {
    PREPARE({0, {"amilliseconds", "A.", METRIC_GAUGE, "seconds"}, NULL, NULL, 1},
            {0, {"b", "B.", METRIC_GAUGE, "seconds"}, NULL, NULL, 1},
            {0, {"c_total", "C.", METRIC_COUNTER, "total"}, NULL, NULL, 1},
            {0, {"d_info", "D.", METRIC_INFO, "info"}, NULL, NULL, 1},
            {0, {"e_", "E.", METRIC_GAUGE, ""}, NULL, NULL, 1},
            {0, {"seconds", "F.", METRIC_GAUGE, "seconds"}, NULL, NULL, 1});
    assert_page(EXPOSITION_OPENMETRICS,
                "# TYPE amilliseconds gauge\n# HELP amilliseconds A.\namilliseconds 1\n"
                "# TYPE b gauge\n# HELP b B.\nb 1\n"
                "# TYPE c counter\n# HELP c C.\nc_total 1\n"
                "# TYPE d info\n# HELP d D.\nd_info 1\n"
                "# TYPE e_ gauge\n# HELP e_ E.\ne_ 1\n"
                "# TYPE seconds gauge\n# HELP seconds F.\nseconds 1\n"
                "# EOF\n");
}

static void test_help_and_labels_are_escaped(void) {
    PREPARE({0, {"a", "a \"b\" \\ c\n2 \xff", METRIC_GAUGE}, NULL, "\"q\" \\ \n \xff", 1},
            {0, {"b", "", METRIC_GAUGE}, NULL, "} 7 # {", 2},
            {0, {"c", "100% %s %n", METRIC_GAUGE}, NULL, "%d%n", 3});
    assert_page(EXPOSITION_TEXT, "# HELP a a \"b\" \\\\ c\\n2 \xef\xbf\xbd\n"
                                 "# TYPE a gauge\n"
                                 "a{x=\"\\\"q\\\" \\\\ \\n \xef\xbf\xbd\"} 1\n"
                                 "# TYPE b gauge\n"
                                 "b{x=\"} 7 # {\"} 2\n"
                                 "# HELP c 100% %s %n\n"
                                 "# TYPE c gauge\n"
                                 "c{x=\"%d%n\"} 3\n");
    assert_page(EXPOSITION_OPENMETRICS, "# TYPE a gauge\n"
                                        "# HELP a a \\\"b\\\" \\\\ c\\n2 \xef\xbf\xbd\n"
                                        "a{x=\"\\\"q\\\" \\\\ \\n \xef\xbf\xbd\"} 1\n"
                                        "# TYPE b gauge\n"
                                        "b{x=\"} 7 # {\"} 2\n"
                                        "# TYPE c gauge\n"
                                        "# HELP c 100% %s %n\n"
                                        "c{x=\"%d%n\"} 3\n"
                                        "# EOF\n");
}

/* Names of our alphabet are the same under every scheme. */
static void test_escaping_schemes_leave_names_alone(void) {
    PREPARE({0, COUNTER("a_b:c_total"), NULL, "a_b", 1});
    for (int escaping = 0; escaping <= EXPOSITION_ESCAPING_VALUES; escaping++) {
        struct exposition_choice choice = {EXPOSITION_TEXT, (enum exposition_escaping)escaping};
        buf_reset(&page);
        exposition_text(&page, choice, parts, MAX_PARTS, NULL);
        TEST_ASSERT_EQUAL_STRING("# HELP a_b:c_total H.\n# TYPE a_b:c_total counter\n"
                                 "a_b:c_total{x=\"a_b\"} 1\n",
                                 buf_str(&page));
    }
}

static void test_empty_families_show_what_they_are(void) {
    PREPARE({0, COUNTER("a_total"), NULL, NULL, -1}, {1, COUNTER("a_total"), NULL, NULL, -1},
            {1, GAUGE("b"), NULL, NULL, -1});
    assert_page(EXPOSITION_TEXT, "# HELP a_total H.\n# TYPE a_total counter\n"
                                 "# HELP b H.\n# TYPE b gauge\n");
    assert_page(EXPOSITION_OPENMETRICS, "# TYPE a counter\n# HELP a H.\n"
                                        "# TYPE b gauge\n# HELP b H.\n# EOF\n");
}

static void test_parts_merge_by_name(void) {
    PREPARE({2, GAUGE("a"), NULL, NULL, 1}, {1, GAUGE("b"), NULL, "late", 2},
            {0, {"b", "First help.", METRIC_GAUGE}, NULL, "early", 3},
            {2, GAUGE("b"), NULL, "last", 4}, {0, GAUGE("c"), NULL, NULL, 5},
            {1, GAUGE("b_more"), NULL, NULL, 6});
    assert_page(EXPOSITION_TEXT, "# HELP a H.\n# TYPE a gauge\na 1\n"
                                 "# HELP b First help.\n# TYPE b gauge\n"
                                 "b{x=\"early\"} 3\nb{x=\"late\"} 2\nb{x=\"last\"} 4\n"
                                 "# HELP b_more H.\n# TYPE b_more gauge\nb_more 6\n"
                                 "# HELP c H.\n# TYPE c gauge\nc 5\n");
    TEST_ASSERT_EACH_EQUAL_UINT64(0, duplicates, MAX_PARTS);
}

static void test_duplicates_are_dropped_and_counted(void) {
    PREPARE({0, GAUGE("a"), NULL, "1 ", 1}, {0, GAUGE("a"), NULL, "1", 2},
            {1, GAUGE("a"), NULL, "1", 3}, {1, GAUGE("a"), NULL, "1 2", 4},
            {1, GAUGE("a"), NULL, NULL, 5}, {2, GAUGE("a"), NULL, NULL, 6},
            {2, GAUGE("a"), NULL, "1 2", 7}, {2, GAUGE("a"), NULL, "9", 8});
    assert_page(EXPOSITION_TEXT,
                "# HELP a H.\n# TYPE a gauge\n"
                "a{x=\"1 \"} 1\na{x=\"1\"} 2\na{x=\"1 2\"} 4\na 5\na{x=\"9\"} 8\n");
    static const uint64_t expected[MAX_PARTS] = {0, 1, 2};
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, duplicates, MAX_PARTS);
}

static void test_of_two_types_the_earlier_part_wins(void) {
    PREPARE({1, COUNTER("a_total"), NULL, "1", 1}, {2, GAUGE("a_total"), NULL, "2", 2},
            {2, GAUGE("a_total"), NULL, "3", 3}, {0, GAUGE("b"), NULL, NULL, -1},
            {1, UNTYPED("b"), NULL, NULL, 4});
    assert_page(EXPOSITION_TEXT, "# HELP a_total H.\n# TYPE a_total counter\na_total{x=\"1\"} 1\n"
                                 "# HELP b H.\n# TYPE b gauge\n");
    static const uint64_t expected[MAX_PARTS] = {0, 1, 2};
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, duplicates, MAX_PARTS);
}

/* Counters and infos whose short name is taken keep the long one. */
static void test_short_names_that_clash(void) {
    PREPARE({0, COUNTER("fps_total"), NULL, NULL, 1}, {1, GAUGE("fps"), NULL, NULL, 2},
            {0, INFO("fps_info"), NULL, NULL, 1}, {2, COUNTER("dev_total"), NULL, NULL, 3},
            {1, INFO("dev_info"), NULL, NULL, 1}, {0, COUNTER("plain"), NULL, NULL, 4},
            {0, INFO("bare"), NULL, NULL, 1}, {0, COUNTER("_total"), NULL, NULL, 5});
    assert_page(EXPOSITION_OPENMETRICS,
                "# TYPE _total unknown\n# HELP _total H.\n_total 5\n"
                "# TYPE bare gauge\n# HELP bare H.\nbare 1\n"
                "# TYPE dev_info gauge\n# HELP dev_info H.\ndev_info 1\n"
                "# TYPE dev counter\n# HELP dev H.\ndev_total 3\n"
                "# TYPE fps gauge\n# HELP fps H.\nfps 2\n"
                "# TYPE fps_info gauge\n# HELP fps_info H.\nfps_info 1\n"
                "# TYPE fps_total unknown\n# HELP fps_total H.\nfps_total 1\n"
                "# TYPE plain unknown\n# HELP plain H.\nplain 4\n"
                "# EOF\n");
    TEST_ASSERT_EACH_EQUAL_UINT64(0, duplicates, MAX_PARTS);
    assert_page(EXPOSITION_TEXT, "# HELP _total H.\n# TYPE _total counter\n_total 5\n"
                                 "# HELP bare H.\n# TYPE bare gauge\nbare 1\n"
                                 "# HELP dev_info H.\n# TYPE dev_info gauge\ndev_info 1\n"
                                 "# HELP dev_total H.\n# TYPE dev_total counter\ndev_total 3\n"
                                 "# HELP fps H.\n# TYPE fps gauge\nfps 2\n"
                                 "# HELP fps_info H.\n# TYPE fps_info gauge\nfps_info 1\n"
                                 "# HELP fps_total H.\n# TYPE fps_total counter\nfps_total 1\n"
                                 "# HELP plain H.\n# TYPE plain counter\nplain 4\n");
}

static void test_short_names_that_are_sample_names(void) {
    PREPARE({0, HISTOGRAM("h"), "_count", NULL, 1}, {0, COUNTER("h_bucket_total"), NULL, NULL, 2},
            {0, INFO("h_sum_info"), NULL, NULL, 1});
    assert_page(EXPOSITION_OPENMETRICS,
                "# TYPE h histogram\n# HELP h H.\nh_count 1\n"
                "# TYPE h_bucket_total unknown\n# HELP h_bucket_total H.\nh_bucket_total 2\n"
                "# TYPE h_sum_info gauge\n# HELP h_sum_info H.\nh_sum_info 1\n"
                "# EOF\n");
}

/* A gauge x_count would be taken for a sample of the histogram x. */
static void test_families_named_like_samples(void) {
    PREPARE({0, HISTOGRAM("a"), "_count", NULL, 1}, {0, GAUGE("a_count"), NULL, NULL, 2},
            {1, GAUGE("a_sum"), NULL, "1", 3}, {2, GAUGE("a_sum"), NULL, "2", 3},
            {0, GAUGE("b_bucket"), NULL, NULL, 4}, {1, HISTOGRAM("b"), "_count", NULL, 5},
            {1, SUMMARY("c"), "_count", NULL, 6}, {2, GAUGE("c_count"), NULL, NULL, 7},
            {0, GAUGE("m"), NULL, NULL, 8}, {0, GAUGE("m_count"), NULL, NULL, 9});
    assert_page(EXPOSITION_TEXT, "# HELP a H.\n# TYPE a histogram\na_count 1\n"
                                 "# HELP b_bucket H.\n# TYPE b_bucket gauge\nb_bucket 4\n"
                                 "# HELP c H.\n# TYPE c summary\nc_count 6\n"
                                 "# HELP m H.\n# TYPE m gauge\nm 8\n"
                                 "# HELP m_count H.\n# TYPE m_count gauge\nm_count 9\n");
    static const uint64_t expected[MAX_PARTS] = {1, 2, 2};
    TEST_ASSERT_EQUAL_UINT64_ARRAY(expected, duplicates, MAX_PARTS);
}

static void test_creation_times_only_in_text(void) {
    PREPARE({0, COUNTER("a_total"), NULL, NULL, 1}, {1, GAUGE("a_created"), NULL, NULL, 2},
            {0, SUMMARY("b"), "_count", NULL, 3}, {0, GAUGE("b_created"), NULL, NULL, 4},
            {0, GAUGE("c"), NULL, NULL, 5}, {0, GAUGE("c_created"), NULL, NULL, 6},
            {0, GAUGE("d_created"), NULL, NULL, 7});
    assert_page(EXPOSITION_OPENMETRICS, "# TYPE a counter\n# HELP a H.\na_total 1\n"
                                        "# TYPE b summary\n# HELP b H.\nb_count 3\n"
                                        "# TYPE c gauge\n# HELP c H.\nc 5\n"
                                        "# TYPE c_created gauge\n# HELP c_created H.\nc_created 6\n"
                                        "# TYPE d_created gauge\n# HELP d_created H.\nd_created 7\n"
                                        "# EOF\n");
    TEST_ASSERT_EACH_EQUAL_UINT64(0, duplicates, MAX_PARTS);
    assert_page(EXPOSITION_TEXT, "# HELP a_created H.\n# TYPE a_created gauge\na_created 2\n"
                                 "# HELP a_total H.\n# TYPE a_total counter\na_total 1\n"
                                 "# HELP b H.\n# TYPE b summary\nb_count 3\n"
                                 "# HELP b_created H.\n# TYPE b_created gauge\nb_created 4\n"
                                 "# HELP c H.\n# TYPE c gauge\nc 5\n"
                                 "# HELP c_created H.\n# TYPE c_created gauge\nc_created 6\n"
                                 "# HELP d_created H.\n# TYPE d_created gauge\nd_created 7\n");
}

static struct exposition_part *large_part(const struct metric_desc *desc, int from, int to) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    size_t n = (size_t)(to - from);
    struct labels **sets = calloc(n, sizeof(*sets));
    for (size_t i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", from + (int)i);
        sets[i] = labels_render("x", text);
        snapshot_add(&snapshot, desc, sets[i], (double)i);
    }
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    for (size_t i = 0; i < n; i++) {
        labels_destroy(sets[i]);
    }
    free(sets);
    return part;
}

static size_t count_lines(const struct buf *text) {
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        n += text->data[i] == '\n';
    }
    return n;
}

static void test_a_hundred_thousand_series_of_two_parts(void) {
    const struct metric_desc desc = {"many", "Many.", METRIC_GAUGE};
    parts[0] = large_part(&desc, 0, 60000);
    parts[1] = large_part(&desc, 40000, 100000);
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT}, parts, MAX_PARTS,
                    duplicates);
    TEST_ASSERT_EQUAL_UINT64(100000 + 2, count_lines(&page));
    TEST_ASSERT_EQUAL_UINT64(20000, duplicates[1]);
    TEST_ASSERT_NOT_NULL(strstr(page.data, "\nmany{x=\"59999\"} 59999\n"));
    TEST_ASSERT_NOT_NULL(strstr(page.data, "\nmany{x=\"60000\"} 20000\n"));
}

/* Long families stay where they are; the pieces in their order are the page. */
static void test_a_page_in_pieces(void) {
    const struct metric_desc small = {"a_small", "Small.", METRIC_GAUGE};
    const struct metric_desc large = {"b_large", "Large.", METRIC_GAUGE};
    const struct metric_desc last = {"c_last", "Last.", METRIC_GAUGE};
    parts[0] = large_part(&large, 0, 5000);
    parts[1] = large_part(&small, 0, 3);
    parts[2] = large_part(&last, 0, 5000);
    struct exposition_choice choice = {EXPOSITION_OPENMETRICS, EXPOSITION_ESCAPING_NONE};
    struct exposition_page pieces CLEANUP_EXPOSITION_PAGE = {0};
    exposition_page_write(&pieces, choice, parts, MAX_PARTS, NULL);

    struct buf joined CLEANUP_BUF = {0};
    for (size_t i = 0; i < pieces.n_pieces; i++) {
        buf_add(&joined, pieces.pieces[i].iov_base, pieces.pieces[i].iov_len);
    }
    TEST_ASSERT_EQUAL_UINT64(joined.len, pieces.len);
    assert_page(EXPOSITION_OPENMETRICS, buf_str(&joined));
    TEST_ASSERT_EQUAL_UINT64(3 + 2 * 5000 + 3 * 2 + 1, count_lines(&joined));

    /* head, lines of b, head, lines of c, the end */
    TEST_ASSERT_EQUAL_UINT64(5, pieces.n_pieces);
    size_t n = 0;
    TEST_ASSERT_EQUAL_PTR(exposition_part_blocks(parts[0], &n)->pieces[0].iov_base,
                          pieces.pieces[1].iov_base);
    TEST_ASSERT_EQUAL_PTR(exposition_part_blocks(parts[2], &n)->pieces[0].iov_base,
                          pieces.pieces[3].iov_base);
    TEST_ASSERT_EQUAL_STRING_LEN("# EOF\n", pieces.pieces[4].iov_base, pieces.pieces[4].iov_len);
}

static void test_an_empty_page_has_no_pieces(void) {
    struct exposition_page pieces CLEANUP_EXPOSITION_PAGE = {0};
    struct exposition_choice choice = {EXPOSITION_TEXT, EXPOSITION_ESCAPING_NONE};
    exposition_page_write(&pieces, choice, parts, MAX_PARTS, NULL);
    TEST_ASSERT_EQUAL_UINT64(0, pieces.n_pieces);
    TEST_ASSERT_EQUAL_UINT64(0, pieces.len);
}

/* The zoo's page as the judges of the end-to-end tests have seen it. */
static void test_the_zoo_is_golden(void) {
    static const struct {
        enum exposition_format format;
        const char *file;
    } cases[] = {
        {EXPOSITION_TEXT, "zoo.prom"},
        {EXPOSITION_OPENMETRICS, "zoo.om"},
        {EXPOSITION_OPENMETRICS_0_0_1, "zoo.om"},
    };
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    void *state;
    TEST_ASSERT_EQUAL_INT(0, collector_zoo.open(NULL, &state, NULL));
    TEST_ASSERT_EQUAL_INT(0, collector_zoo.collect(state, &snapshot, NULL));
    parts[1] = exposition_part_create(&snapshot, NULL);
    collector_zoo.close(state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[512];
        struct buf golden CLEANUP_BUF = {0};
        snprintf(path, sizeof(path), "%s/tests/fixtures/golden/%s", getenv("WAAP_SOURCE_ROOT"),
                 cases[i].file);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read(path, &golden, NULL), path);
        assert_page(cases[i].format, buf_str(&golden));
        TEST_ASSERT_EQUAL_UINT64(golden.len, page.len);
    }
}
