#include "profiler/record/read.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unity.h>

static char path[] = "/tmp/waap-test-record-XXXXXX";

void setUp(void) {
    strcpy(path + sizeof(path) - 7, "XXXXXX");
    int fd = mkstemp(path);
    TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
    close(fd);
}

void tearDown(void) {
    unlink(path);
}

static struct record *opened(const char *text, size_t len) {
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL(len, fwrite(text, 1, len, file));
    fclose(file);
    struct record *record = NULL;
    TEST_ASSERT_EQUAL(0, record_open(path, &record, NULL));
    return record;
}

static const char whole[] =
    "{\"kind\":\"run\",\"format\":\"waap-run/1\",\"application\":{\"name\":\"o\\\"c\"}}\n"
    "{\"kind\":\"target\",\"target\":\"cpu\",\"repeats\":5}\n"
    "{\"kind\":\"series\",\"key\":\"cpu.user_seconds\",\"type\":\"counter\",\"unit\":\"s\","
    "\"help\":\"h\"}\n"
    "{\"kind\":\"series\",\"key\":\"temperature.celsius{zone=\\\"cpu\\\"}\",\"type\":\"gauge\"}\n"
    "{\"kind\":\"phase\",\"target\":\"cpu\",\"run\":2,\"phase\":\"warmup\",\"t\":1.5,\"at\":9}\n"
    "{\"kind\":\"sample\",\"target\":\"cpu\",\"run\":2,\"t\":1.6,\"at\":9.1,\"more\":[1,{}],"
    "\"values\":{\"cpu.user_seconds\":0.5,\"temperature.celsius{zone=\\\"cpu\\\"}\":\"NaN\"}}\n"
    "{\"kind\":\"lost\",\"target\":\"cpu\",\"run\":2,\"samples\":3}\n"
    "{\"kind\":\"end\",\"target\":\"cpu\",\"run\":2,\"t\":2,\"exit\":0}\n"
    "{\"kind\":\"finished\",\"t\":3}\n";

static struct record_line expect(struct record *record, enum record_kind kind) {
    struct record_line line;
    struct error err = {0};
    TEST_ASSERT_EQUAL_MESSAGE(1, record_next(record, &line, &err), err.text);
    TEST_ASSERT_EQUAL(kind, line.kind);
    return line;
}

static void test_units_by_name(void) {
    static const char *const rows[][2] = {
        {"app.inference_seconds_sum", "s"},
        {"app.read_bytes_total", "B"},
        {"app.seconds", ""},
        {"app.x_ratio{le=\\\"_bytes\\\"}", "ratio"},
        {"app.inference_seconds_count", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{\"kind\":\"series\",\"key\":\"%s\",\"type\":\"gauge\"}\n",
                 rows[i][0]);
        struct record *record CLEANUP_RECORD = opened(text, strlen(text));
        expect(record, RECORD_SERIES);
        TEST_ASSERT_EQUAL_STRING(rows[i][1], record->series[0]->unit);
    }
}

static void check_sample(struct record *record) {
    struct record_line line = expect(record, RECORD_SAMPLE);
    TEST_ASSERT_EQUAL_STRING("cpu", line.target);
    TEST_ASSERT_EQUAL(2, line.run);
    TEST_ASSERT_EQUAL_DOUBLE(1.6, line.t);
    TEST_ASSERT_EQUAL_DOUBLE(9.1, line.at);
    TEST_ASSERT_EQUAL(2, line.n_values);
    TEST_ASSERT_EQUAL_STRING("cpu.user_seconds", line.values[0].series->key);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, line.values[0].value);
    TEST_ASSERT_EQUAL_STRING("temperature.celsius", line.values[1].series->name);
    TEST_ASSERT_EQUAL_STRING("zone=\"cpu\"", line.values[1].series->labels);
    TEST_ASSERT_TRUE(isnan(line.values[1].value));
}

static void test_a_whole_record(void) {
    struct record *record CLEANUP_RECORD = opened(whole, strlen(whole));
    struct record_line line = expect(record, RECORD_RUN);
    TEST_ASSERT_EQUAL_STRING("o\"c", json_string_value(json_object_get(
                                         json_object_get(line.object, "application"), "name")));
    expect(record, RECORD_TARGET);
    expect(record, RECORD_SERIES);
    expect(record, RECORD_SERIES);
    TEST_ASSERT_EQUAL(2, record->n_series);
    TEST_ASSERT_EQUAL(RECORD_COUNTER, record->series[0]->type);
    TEST_ASSERT_EQUAL_STRING("s", record->series[0]->unit);
    TEST_ASSERT_EQUAL_STRING("h", record->series[0]->help);
    line = expect(record, RECORD_PHASE);
    TEST_ASSERT_EQUAL(PHASE_WARMUP, line.phase);
    TEST_ASSERT_EQUAL_STRING("warmup", record_phases[line.phase]);
    check_sample(record);
    expect(record, RECORD_LOST);
    expect(record, RECORD_END);
    expect(record, RECORD_FINISHED);
    TEST_ASSERT_EQUAL(0, record_next(record, &line, NULL));
    TEST_ASSERT_FALSE(record->torn);
}

/* However a crash cuts the record, what is left can be read. */
static void test_torn_anywhere(void) {
    for (size_t len = 0; len < strlen(whole); len++) {
        struct record *record CLEANUP_RECORD = opened(whole, len);
        struct record_line line;
        struct error err = {0};
        size_t lines = 0, newlines = 0;
        int r;
        while ((r = record_next(record, &line, &err)) > 0) {
            lines++;
        }
        TEST_ASSERT_EQUAL_MESSAGE(0, r, err.text);
        for (size_t i = 0; i < len; i++) {
            newlines += whole[i] == '\n';
        }
        TEST_ASSERT_EQUAL(newlines, lines);
        TEST_ASSERT_EQUAL(len > 0 && whole[len - 1] != '\n', record->torn);
    }
}

static void test_bad_lines(void) {
    static const char *const bad[][2] = {
        {"\n", ":2: column 1: expected an object"},
        {"[]\n", ":2: column 1: expected an object"},
        {"{\"a\":1,\"kind\":\"run\"}\n", "expected \"kind\" first"},
        {"{}\n", "expected \"kind\" first"},
        {"{\"kind\":\"dance\"}\n", ":2: unknown kind \"dance\""},
        {"{\"kind\":\"end\"\n", ":2: column"},
        {"{\"kind\":\"sample\",\"values\":{\"a\":1}}\n", ": a: no series line before"},
        {"{\"kind\":\"sample\",\"values\":[]}\n", "expected values in an object"},
        {"{\"kind\":\"sample\",\"run\":-1}\n", "\"run\" is not a count"},
        {"{\"kind\":\"sample\",\"values\":{\"x\":true}}\n", "column"},
        {"{\"kind\":\"sample\"} {}\n", "expected the end of the line after the object"},
        {"{\"kind\":\"series\",\"key\":\"x\",\"type\":\"gauge\"}\n", "x: declared before"},
        {"{\"kind\":\"series\",\"key\":\"y\",\"type\":\"colour\"}\n", "unknown type \"colour\""},
        {"{\"kind\":\"series\",\"key\":\"y{\",\"type\":\"gauge\"}\n", "a series needs"},
        {"{\"kind\":\"series\",\"type\":\"gauge\"}\n", "a series needs"},
        {"{\"kind\":\"phase\",\"phase\":\"moon\"}\n", "unknown phase \"moon\""},
        {"{\"kind\":\"phase\"}\n", "unknown phase \"\""},
        {"{\"kind\":\"sample\",\"run\":1.5}\n", "\"run\" is not a count"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{\"kind\":\"series\",\"key\":\"x\",\"type\":\"counter\"}\n%s",
                 bad[i][0]);
        struct record *record CLEANUP_RECORD = opened(text, strlen(text));
        struct record_line line;
        struct error err = {0};
        TEST_ASSERT_EQUAL(1, record_next(record, &line, &err));
        TEST_ASSERT_EQUAL_MESSAGE(-EINVAL, record_next(record, &line, &err), bad[i][0]);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, bad[i][1]), err.text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, path), err.text);
    }
}

static void test_a_line_without_end(void) {
    size_t len = (size_t)RECORD_MAX_LINE * 2;
    char *text CLEANUP_FREE = malloc(len);
    memset(text, ' ', len);
    struct record *record CLEANUP_RECORD = opened(text, len);
    struct record_line line;
    struct error err = {0};
    TEST_ASSERT_EQUAL(-EFBIG, record_next(record, &line, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, ":1: a line of more than"));
}

/* Lines that cross the blocks in which the file is read. */
static void test_many_lines(void) {
    enum { LINES = 20000 };
    char *text CLEANUP_FREE = NULL;
    size_t len;
    FILE *file = open_memstream(&text, &len);
    fputs("{\"kind\":\"series\",\"key\":\"x\",\"type\":\"gauge\"}\n", file);
    for (int i = 0; i < LINES; i++) {
        fprintf(file, "{\"kind\":\"sample\",\"t\":%d,\"values\":{\"x\":%d}}\n", i, i * 7);
    }
    fclose(file);
    struct record *record CLEANUP_RECORD = opened(text, len);
    expect(record, RECORD_SERIES);
    for (int i = 0; i < LINES; i++) {
        struct record_line line = expect(record, RECORD_SAMPLE);
        TEST_ASSERT_EQUAL_DOUBLE(i, line.t);
        TEST_ASSERT_EQUAL_DOUBLE(i * 7, line.values[0].value);
    }
}

static void test_no_file(void) {
    struct record *record = NULL;
    struct error err = {0};
    TEST_ASSERT_EQUAL(-ENOENT, record_open("/proc/nowhere/samples.jsonl", &record, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "/proc/nowhere/samples.jsonl"));
    TEST_ASSERT_NULL(record);
}
