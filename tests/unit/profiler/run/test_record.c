#include "profiler/run/record.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/file.h"
#include "profiler/analysis/report_text.h"
#include "profiler/record/read.h"

static char path[64];

void setUp(void) {
    strcpy(path, "/tmp/test_run_record.XXXXXX");
    int fd = mkstemp(path);
    TEST_ASSERT_TRUE(fd >= 0);
    close(fd);
}

void tearDown(void) {
    unlink(path);
}

/* The record so far, with its times as "T". */
static void check(const char *expected) {
    struct buf text CLEANUP_BUF = {0};
    struct buf shown CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, file_read(path, &text, NULL));
    for (const char *c = buf_str(&text); *c != '\0';) {
        bool time = strncmp(c, "\"t\":", 4) == 0 || strncmp(c, "\"at\":", 5) == 0;
        if (time) {
            size_t len = strcspn(c, ",}");
            buf_add_str(&shown, "T");
            c += len;
        } else {
            buf_add_char(&shown, *c++);
        }
    }
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&shown));
}

static void test_lines(void) {
    struct run_record record;
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, path, &err));
    record.target = "c\"pu";
    record.run = 2;
    run_record_begin(&record, "x");
    run_record_text(&record, "a", "q\"\n");
    run_record_text(&record, "none", NULL);
    text_put_list(&record.line, "l", (const char *const[]){"1", "2", NULL});
    text_put_list(&record.line, "e", (const char *const[]){NULL});
    json_open(&record.line, "o", '{');
    run_record_number(&record, "n", 0.1);
    run_record_number(&record, "nan", NAN);
    run_record_number(&record, "inf", -INFINITY);
    json_close(&record.line, '}');
    json_put_bool(&record.line, "b", true);
    TEST_ASSERT_EQUAL_INT(0, run_record_end(&record));
    TEST_ASSERT_EQUAL_INT(0, run_record_phase(&record, "run"));
    check("{\"kind\":\"x\",\"a\":\"q\\\"\\u000a\",\"l\":[\"1\",\"2\"],\"e\":[],\"o\":{\"n\":0.1,"
          "\"inf\":"
          "\"-Inf\"},\"b\":true}\n"
          "{\"kind\":\"phase\",\"phase\":\"run\",\"target\":\"c\\\"pu\",\"run\":2,T,T}\n");
    run_record_close(&record);
}

/* Keys are explained once, before their first use; what is not known is left out. */
static void test_samples(void) {
    static const struct run_series b = {"b_total", RECORD_COUNTER, "", "B."};
    static const struct run_series a = {"a{x=\"1\"}", RECORD_GAUGE, "s", "A."};
    struct run_record record;
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, path, &err));
    record.target = "c";
    record.run = 1;
    for (int i = 0; i < 3; i++) {
        run_record_begin_sample(&record, record.began_ns);
        run_record_value(&record, &b, i < 2 ? i : NAN);
        run_record_value(&record, &a, i == 1 ? 5 : NAN);
        TEST_ASSERT_EQUAL_INT(0, run_record_end_sample(&record));
    }
    check("{\"kind\":\"series\",\"key\":\"b_total\",\"type\":\"counter\",\"unit\":\"\",\"help\":"
          "\"B.\"}\n"
          "{\"kind\":\"sample\",\"target\":\"c\",\"run\":1,T,T,\"values\":{\"b_total\":0}}\n"
          "{\"kind\":\"series\",\"key\":\"a{x=\\\"1\\\"}\",\"type\":\"gauge\",\"unit\":\"s\","
          "\"help\":\"A.\"}\n"
          "{\"kind\":\"sample\",\"target\":\"c\",\"run\":1,T,T,\"values\":{\"b_total\":1,\"a{x="
          "\\\"1\\\"}\":5}}\n");
    run_record_close(&record);
}

/* How many lines a reader finds. */
static size_t count_lines(void) {
    struct record *reader CLEANUP_RECORD = NULL;
    struct record_line line;
    struct error err = {0};
    size_t n = 0;
    TEST_ASSERT_EQUAL_INT(0, record_open(path, &reader, &err));
    while (record_next(reader, &line, &err) > 0) {
        n++;
    }
    TEST_ASSERT_EQUAL_STRING("", err.text);
    return n;
}

/* An application can have more series than a reader takes, and names as long as it likes. */
static void test_what_readers_take(void) {
    static const struct {
        size_t n, padding;
        bool left_out;
    } rows[] = {
        {RECORD_MAX_SERIES, 1, false},
        {RECORD_MAX_SERIES + 10, 1, true},
        {RECORD_MAX_SERIES, 500, true},
    };
    for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) {
        struct run_record record;
        struct error err;
        TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, path, &err));
        for (int sample = 0; sample < 2; sample++) {
            run_record_begin_sample(&record, record.began_ns);
            for (size_t i = 0; i < rows[row].n; i++) {
                char key[600];
                snprintf(key, sizeof(key), "track{id=\"%0*zu\"}", (int)rows[row].padding, i);
                const struct run_series series = {key, RECORD_GAUGE, "", ""};
                run_record_value(&record, &series, 1);
            }
            TEST_ASSERT_EQUAL_INT(0, run_record_end_sample(&record));
        }
        TEST_ASSERT_EQUAL(rows[row].left_out, record.left_out);
        TEST_ASSERT_EQUAL_size_t(RECORD_MAX_SERIES + 2, count_lines());
        run_record_close(&record);
    }
}

/* A second run leaves it as it is. */
static void test_one_writer(void) {
    struct run_record record, second;
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, path, &err));
    TEST_ASSERT_EQUAL_INT(0, run_record_phase(&record, "run"));
    TEST_ASSERT_EQUAL_INT(-EBUSY, run_record_open(&second, path, &err));
    TEST_ASSERT_EQUAL_size_t(1, count_lines());
    run_record_close(&record);
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&second, path, &err));
    TEST_ASSERT_EQUAL_size_t(0, count_lines());
    run_record_close(&second);
}

static void test_full_disk(void) {
    struct run_record record;
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, "/dev/full", &err));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, run_record_phase(&record, "run"));
    TEST_ASSERT_NOT_NULL(strstr(record.error.text, "write the record"));
    run_record_close(&record);
    TEST_ASSERT_EQUAL_INT(-ENOENT, run_record_open(&record, "/nonexistent/x", &err));
}

/* There is room for a line and a half, and for another later on. */
static void test_half_a_line(void) {
    struct run_record record;
    struct error err;
    struct rlimit limit;
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_FSIZE, &limit));
    signal(SIGXFSZ, SIG_IGN);
    TEST_ASSERT_EQUAL_INT(0, run_record_open(&record, path, &err));
    TEST_ASSERT_EQUAL_INT(0, run_record_phase(&record, "run"));
    const struct rlimit less = {(rlim_t)record.n_bytes + 20, limit.rlim_max};
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &less));
    int r = run_record_phase(&record, "stop");
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
    TEST_ASSERT_EQUAL_INT(-EFBIG, r);
    TEST_ASSERT_EQUAL_INT(0, run_record_phase(&record, "cooldown"));
    TEST_ASSERT_EQUAL_size_t(2, count_lines());
    run_record_close(&record);
}
