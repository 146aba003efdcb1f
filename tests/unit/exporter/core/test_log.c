#include "exporter/core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

/* Standard error goes into a pipe while a test runs. */
static int saved_stderr = -1;
static int pipe_end = -1;
static char text[65536];

void setUp(void) {
    int ends[2];
    TEST_ASSERT_EQUAL_INT(0, pipe2(ends, O_CLOEXEC));
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    pipe_end = ends[0];
    fcntl(pipe_end, F_SETFL, O_NONBLOCK);
}

void tearDown(void) {
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_end);
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
}

/* What was logged since the last call. */
static const char *logged(void) {
    ssize_t n = read(pipe_end, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The line without its timestamp, whose form and value are checked. */
static const char *after_timestamp(const char *line, const char *before) {
    TEST_ASSERT_EQUAL_STRING_LEN(before, line, strlen(before));
    struct tm utc = {0};
    const char *rest = strptime(line + strlen(before), "%Y-%m-%dT%H:%M:%S", &utc);
    TEST_ASSERT_NOT_NULL_MESSAGE(rest, line);
    TEST_ASSERT_INT64_WITHIN(2, (int64_t)time(NULL), (int64_t)timegm(&utc));
    TEST_ASSERT_EQUAL_CHAR('.', rest[0]);
    TEST_ASSERT_EQUAL_UINT64(4, 1 + strspn(rest + 1, "0123456789"));
    TEST_ASSERT_EQUAL_CHAR('Z', rest[4]);
    return rest + 5;
}

static void test_logfmt(void) {
    log_info("listening on %s:%d", "127.0.0.1", 9090);
    TEST_ASSERT_EQUAL_STRING(" level=info msg=\"listening on 127.0.0.1:9090\"\n",
                             after_timestamp(logged(), "ts="));
}

static void test_json(void) {
    log_configure(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_error("bye");
    TEST_ASSERT_EQUAL_STRING("\",\"level\":\"error\",\"msg\":\"bye\"}\n",
                             after_timestamp(logged(), "{\"ts\":\""));
}

static void test_messages_stay_one_quoted_line(void) {
    static const struct {
        const char *message;
        const char *quoted;
    } table[] = {
        {"", "\"\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"C:\\x", "\"C:\\\\x\""},
        {"a\nlevel=error", "\"a\\u000alevel=error\""},
        {"\t\r\x1b[2J\x7f", "\"\\u0009\\u000d\\u001b[2J\\u007f\""},
        {"gr\xc3\xbcn \xf0\x9f\x90\x9d", "\"gr\xc3\xbcn \xf0\x9f\x90\x9d\""},
        {"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\"\\u0080\\u009b\\u009f\xc2\xa0\""},
        {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae", "\"\xe2\x80\xa7\\u2028\\u202e\""},
        {"\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa\xd8\x9c", "\"\\u2066\\u2069\xe2\x81\xaa\\u061c\""},
        {"bad \xff\xc3", "\"bad \xef\xbf\xbd\xef\xbf\xbd\""},
        {"100 %", "\"100 %\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char expected[256];
        snprintf(expected, sizeof(expected), " level=warn msg=%s\n", table[i].quoted);
        log_warn("%s", table[i].message);
        TEST_ASSERT_EQUAL_STRING(expected, after_timestamp(logged(), "ts="));
    }
}

static void test_levels(void) {
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (int limit = LOG_LEVEL_DEBUG; limit <= LOG_LEVEL_ERROR; limit++) {
        log_configure((enum log_level)limit, LOG_FORMAT_LOGFMT);
        for (int level = LOG_LEVEL_DEBUG; level <= LOG_LEVEL_ERROR; level++) {
            log_write((enum log_level)level, "x");
            const char *line = logged();
            TEST_ASSERT_EQUAL(level >= limit, log_enabled((enum log_level)level));
            TEST_ASSERT_EQUAL(level >= limit, line[0] != '\0');
            TEST_ASSERT_TRUE(level < limit || strstr(line, names[level]) != NULL);
        }
    }
}

static void test_errno_is_told_and_kept(void) {
    errno = ENOENT;
    log_warn("open x: %m");
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
    TEST_ASSERT_NOT_NULL(strstr(logged(), "open x: No such file or directory"));
    close(STDERR_FILENO);
    errno = ENOENT;
    log_warn("nobody listens");
    TEST_ASSERT_EQUAL_INT(ENOENT, errno);
}

static void test_long_messages_are_whole(void) {
    log_info("%10000d!", 7);
    const char *line = logged();
    TEST_ASSERT_EQUAL_STRING("7!\"\n", line + strlen(line) - 4);
    TEST_ASSERT_GREATER_THAN(10000, strlen(line));
}

static void *log_many(void *name) {
    for (int i = 0; i < 50; i++) {
        log_info("%s %s %s %s", (char *)name, (char *)name, (char *)name, (char *)name);
    }
    return NULL;
}

static void test_lines_of_threads_do_not_mix(void) {
    static char names[4][8] = {"aaaaaaa", "bbbbbbb", "ccccccc", "ddddddd"};
    pthread_t threads[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, log_many, names[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        pthread_join(threads[i], NULL);
    }
    logged();
    size_t n_lines = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0'; n_lines++) {
        const char *message = strstr(line, " level=info msg=\"");
        TEST_ASSERT_NOT_NULL_MESSAGE(message, line);
        message += strlen(" level=info msg=\"");
        TEST_ASSERT_EQUAL_UINT64(strlen("aaaaaaa aaaaaaa aaaaaaa aaaaaaa\""), strlen(message));
        char alphabet[] = {message[0], ' ', '"', '\0'};
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(strlen(message), strspn(message, alphabet), line);
    }
    TEST_ASSERT_EQUAL_UINT64(4 * 50, n_lines);
}
