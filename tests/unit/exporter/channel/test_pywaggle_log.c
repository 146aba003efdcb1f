#include "exporter/channel/pywaggle_log.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/number.h"

/* "name{label=value} number", separated by " ; ". */
static void describe(const struct pywaggle_line *line, struct buf *out) {
    for (size_t i = 0; i < line->n_updates; i++) {
        const struct push_update *update = &line->updates[i];
        buf_printf(out, "%s%s{", i > 0 ? " ; " : "", update->name);
        for (size_t j = 0; j < update->n_labels; j++) {
            buf_printf(out, "%s%s=%s", j > 0 ? "," : "", update->labels[j].name,
                       update->labels[j].value);
        }
        char number[NUMBER_MAX_LEN + 1];
        number[number_format(update->values[0], number)] = '\0';
        buf_printf(out, "} %s", number);
    }
}

static void check(const char *text, const char *want) {
    char *copy CLEANUP_FREE = strdup(text);
    struct pywaggle_line line;
    struct error err = {0};
    struct buf got CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, pywaggle_line_read(copy, strlen(copy), &line, &err), text);
    describe(&line, &got);
    TEST_ASSERT_EQUAL_STRING_MESSAGE(want, buf_str(&got), text);
}

static void test_numbers(void) {
    check("{\"meta\":{\"camera\":\"top\",\"a\":\"1\"},\"name\":\"env.count.car\","
          "\"timestamp\":\"2024-05-01T12:00:00.123456789\",\"value\":3}",
          "plugin_publishes_total{name=env.count.car} 1 ; env_count_car{a=1,camera=top} 3");
    check("{\"name\":\"x\",\"value\":-2.5e3}", "plugin_publishes_total{name=x} 1 ; x{} -2500");
    check("{\"name\":\"3d.count\",\"value\":1}",
          "plugin_publishes_total{name=3d.count} 1 ; _3d_count{} 1");
    /* As Python writes them. */
    check("{\"name\":\"x\",\"value\": NaN}", "plugin_publishes_total{name=x} 1 ; x{} NaN");
    check("{\"value\":Infinity,\"name\":\"x\"}", "plugin_publishes_total{name=x} 1 ; x{} +Inf");
    check("{\"value\":-Infinity,\"name\":\"x\"}", "plugin_publishes_total{name=x} 1 ; x{} -Inf");
}

static void test_durations(void) {
    check("{\"meta\":{},\"name\":\"plugin.duration.inference\",\"value\":31000000}",
          "plugin_publishes_total{name=plugin.duration.inference} 1 ; "
          "plugin_duration_seconds{name=inference} 0.031");
    check("{\"meta\":{\"name\":\"other\"},\"name\":\"plugin.duration.a.b\",\"value\":1}",
          "plugin_publishes_total{name=plugin.duration.a.b} 1 ; "
          "plugin_duration_seconds{name=a.b} 1e-09");
    check("{\"name\":\"plugin.duration.\",\"value\":5}",
          "plugin_publishes_total{name=plugin.duration.} 1 ; plugin_duration_{} 5");
}

static void test_what_only_counts(void) {
    static const char *const values[] = {"\"text\"", "true", "null", "[1]", "{\"a\":1}", "1e400"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct buf text CLEANUP_BUF = {0};
        buf_printf(&text, "{\"name\":\"x.y\",\"value\":%s}", values[i]);
        check(buf_str(&text), "plugin_publishes_total{name=x.y} 1");
    }
    check("{\"name\":\"x.y\"}", "plugin_publishes_total{name=x.y} 1");
}

static void test_meta_that_makes_no_label(void) {
    check("{\"meta\":{\"__x\":\"1\",\"a-b\":\"1\",\"a "
          "b\":\"1\",\"e\":\"\",\"n\":5,\"node\":\"x\",\"ok\":\"1\","
          "\"ok\":\"2\"},"
          "\"name\":\"x\",\"value\":1}",
          "plugin_publishes_total{name=x} 1 ; x{a_b=1,ok=2} 1");
}

static void test_bad(void) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "expected an object"},
        {"[]", "expected an object"},
        {"{\"value\":1}", "no name"},
        {"{\"name\":5}", "column"},
        {"{\"name\":\"x\"", "column"},
        {"{\"name\":\"x\"} x", "end of the line"},
        {"{\"name\":\"x\",\"meta\":[]}", "expected an object as meta"},
        {"{\"name\":\"1 x\"}", "makes no metric name"},
        {"{\"name\":\"\"}", "makes no metric name"},
        {"{\"name\":\"x y\"}", "makes no metric name"},
        {"{\"name\":\"x\",\"value\":1e}", "column"},
        {"{\"name\":\"x\",\"value\":Nan}", "column"},
        {"{\"name\":\"x\",\"value\":-Inf}", "column"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *copy CLEANUP_FREE = strdup(rows[i].text);
        struct pywaggle_line line;
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, pywaggle_line_read(copy, strlen(copy), &line, &err),
                                      rows[i].text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, rows[i].words), err.text);
        TEST_ASSERT_EQUAL_size_t(0, line.n_updates);
    }
}

static void test_long_name(void) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "{\"name\":\"");
    for (int i = 0; i <= PYWAGGLE_MAX_NAME_LEN; i++) {
        buf_add_char(&text, 'a');
    }
    buf_add_str(&text, "\"}");
    struct pywaggle_line line;
    struct error err = {0};
    TEST_ASSERT_EQUAL_INT(-EINVAL, pywaggle_line_read(text.data, text.len, &line, &err));
    TEST_ASSERT_EQUAL_STRING("name is longer than 128 bytes", err.text);
}

/* ---- logs ---- */

static const struct pywaggle_span followed = {.begin_ns = 1000, .end_ns = 2000};

static void test_where_a_log_is_read_from(void) {
    const struct pywaggle_sight known = {.device = 1, .inode = 7, .birth_ns = 500, .size = 90};
    const struct {
        const char *what;
        bool is_first_search;
        struct pywaggle_sight before, now;
        off_t want;
    } rows[] = {
        {"there before us", false, {0}, {1, 7, 500, 90}, 90},
        {"as old as we are", false, {0}, {1, 7, 1000, 90}, 90},
        {"of another's clock", false, {0}, {1, 7, 2001, 90}, 90},
        {"younger than us", true, {0}, {1, 7, 1001, 90}, 0},
        {"of an unknown age", true, {0}, {1, 7, 0, 90}, 90},
        {"of an unknown age, later", false, {0}, {1, 7, 0, 90}, 0},
        {"as it was", false, known, {1, 7, 500, 90}, 50},
        {"back by another mount", true, known, {2, 7, 500, 90}, 50},
        {"cut", false, known, {1, 7, 500, 49}, 0},
        {"new file", false, known, {1, 8, 1500, 90}, 0},
        {"new file with its old inode", false, known, {1, 7, 1500, 90}, 0},
        {"another in another directory", false, known, {1, 8, 400, 90}, 90},
        {"of an unknown age by another mount", false, {1, 7, 0, 90}, {2, 7, 0, 90}, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pywaggle_log log = {.last = rows[i].before,
                                   .offset = rows[i].before.inode != 0 ? 50 : 0};
        pywaggle_log_meet(&log, &rows[i].now, &followed, rows[i].is_first_search);
        TEST_ASSERT_EQUAL_INT64_MESSAGE(rows[i].want, log.offset, rows[i].what);
    }
}
