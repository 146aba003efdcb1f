#include "exporter/push/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

/* Standard error goes into a pipe while a test runs. */
static int saved_stderr = -1;
static int pipe_end = -1;
static char text[65536];
static struct loop *loop;
static struct push_log *log_of_pushes;

void setUp(void) {
    int ends[2];
    TEST_ASSERT_EQUAL_INT(0, pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    pipe_end = ends[0];
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, NULL));
    log_of_pushes = push_log_create(loop);
    TEST_ASSERT_NOT_NULL(log_of_pushes);
}

void tearDown(void) {
    push_log_destroy(log_of_pushes);
    loop_destroy(loop);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_end);
}

/* The messages since the last call, one behind the other. */
static const char *logged(void) {
    static char lines[65536];
    ssize_t n = read(pipe_end, lines, sizeof(lines) - 1);
    lines[n > 0 ? n : 0] = '\0';
    text[0] = '\0';
    for (char *rest = lines, *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
        const char *message = strstr(line, " level=warn msg=");
        TEST_ASSERT_NOT_NULL_MESSAGE(message, line);
        strcat(text, message + strlen(" level=warn msg="));
    }
    return text;
}

static size_t n_logged(void) {
    char lines[65536];
    ssize_t n = read(pipe_end, lines, sizeof(lines));
    size_t n_lines = 0;
    for (ssize_t i = 0; i < n; i++) {
        n_lines += lines[i] == '\n';
    }
    return n_lines;
}

static void refuse(const char *who, int code) {
    push_log_refused(log_of_pushes, who, code, NULL, "no");
}

static void test_one_line_names_peer_reason_and_metric(void) {
    static const struct {
        const char *who, *metric, *why;
        int code;
        const char *line;
    } table[] = {
        {"plugin a", NULL, "fps: no", -EINVAL, "\"push: plugin a: refused (invalid): fps: no\""},
        {"plugin b", "fps", "fps: no", -EPERM, "\"push: plugin b: refused (reserved): fps: no\""},
        {"plugin c", "fps", "no", -E2BIG, "\"push: plugin c: refused (limit): metric fps: no\""},
        {"plugin \"\n\x1b\xff", "\xc2\x9b", "\n", -EBADMSG,
         "\"push: plugin \\\"\\u000a\\u001b\xef\xbf\xbd: refused (unreadable): metric \\u009b: "
         "\\u000a\""},
        {"plugin d", NULL, "?", -ENOENT, "\"push: plugin d: refused (invalid): ?\""},
        {"plugin e", NULL, "?", -EBUSY, "\"push: plugin e: refused (rate): ?\""},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        push_log_refused(log_of_pushes, table[i].who, table[i].code, table[i].metric, table[i].why);
        TEST_ASSERT_EQUAL_STRING(table[i].line, logged());
    }
}

static void test_the_first_of_a_kind_then_how_many_more(void) {
    for (int i = 0; i < 38; i++) {
        refuse("plugin a", -EINVAL);
    }
    refuse("plugin a", -EEXIST);
    refuse("plugin b", -EINVAL);
    TEST_ASSERT_EQUAL_STRING("\"push: plugin a: refused (invalid): no\""
                             "\"push: plugin a: refused (conflict): no\""
                             "\"push: plugin b: refused (invalid): no\"",
                             logged());
    push_log_sum_up(log_of_pushes);
    TEST_ASSERT_EQUAL_STRING("\"push: plugin a: refused (invalid): and 37 more\"", logged());

    refuse("plugin a", -EINVAL); /* goes on: no first again */
    TEST_ASSERT_EQUAL_STRING("", logged());
    refuse("plugin b", -EINVAL); /* had been over */
    TEST_ASSERT_EQUAL_STRING("\"push: plugin b: refused (invalid): no\"", logged());
    push_log_sum_up(log_of_pushes);
    TEST_ASSERT_EQUAL_STRING("\"push: plugin a: refused (invalid): and 1 more\"", logged());
    push_log_sum_up(log_of_pushes);
    refuse("plugin a", -EINVAL);
    TEST_ASSERT_EQUAL_STRING("\"push: plugin a: refused (invalid): no\"", logged());
}

static void test_many_peers_do_not_flood(void) {
    for (int i = 0; i < 10000; i++) {
        char who[32];
        snprintf(who, sizeof(who), "plugin p%d", i);
        refuse(who, -EINVAL);
    }
    TEST_ASSERT_EQUAL_UINT64(16, n_logged());
    push_log_sum_up(log_of_pushes);
    TEST_ASSERT_EQUAL_STRING(
        "\"push: others: refused: and 9984 more (see waap_push_refused_total)\"", logged());
    refuse("plugin p0", -EINVAL);
    TEST_ASSERT_EQUAL_UINT64(1, n_logged());
}

static void test_long_names_are_cut_but_the_same(void) {
    static char name[100000];
    memset(name, 'x', sizeof(name) - 1);
    push_log_refused(log_of_pushes, name, -E2BIG, name, "no");
    push_log_refused(log_of_pushes, name, -E2BIG, name, "no");
    TEST_ASSERT_LESS_THAN(400, strlen(logged()));
    push_log_sum_up(log_of_pushes);
    TEST_ASSERT_NOT_NULL(strstr(logged(), "and 1 more"));
}

static void test_what_is_left_is_said_at_the_end(void) {
    refuse("plugin a", -EINVAL);
    refuse("plugin a", -EINVAL);
    logged();
    push_log_destroy(log_of_pushes);
    log_of_pushes = NULL;
    TEST_ASSERT_EQUAL_STRING("\"push: plugin a: refused (invalid): and 1 more\"", logged());
    refuse("plugin a", -EINVAL); /* without a log */
    TEST_ASSERT_EQUAL_STRING("", logged());
}
