#include "profiler/run/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_stat_lines(void) {
    struct run_stat stat;
    TEST_ASSERT_EQUAL_INT(0, run_stat_parse("7 (a) (b) R x) S 1 6 5 0 -1 4194560 10 20 30 40 100 "
                                            "50 7 3 20 0 1 0 123 8192 25 18446744073709551615\n",
                                            &stat));
    TEST_ASSERT_EQUAL_INT(7, stat.pid);
    TEST_ASSERT_EQUAL_INT(1, stat.parent);
    TEST_ASSERT_EQUAL_INT(6, stat.group);
    TEST_ASSERT_EQUAL_CHAR('S', stat.state);
    TEST_ASSERT_EQUAL_DOUBLE(107, stat.cpu_ticks);
    TEST_ASSERT_EQUAL_DOUBLE(53, stat.system_ticks);
    TEST_ASSERT_EQUAL_DOUBLE(25, stat.rss_pages);
    static const char *const bad[] = {
        "", "7", "7 (a", "7 (a) S", "x (a) S 1 2 3", "7 (a) S 1 2 3 4"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, run_stat_parse(bad[i], &stat), bad[i]);
    }
}

/* A child and its child, in a process group of their own, are seen and killed. */
static void test_family(void) {
    int ends[2];
    char byte;
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        pid_t grandchild = fork();
        if (write(ends[1], grandchild == 0 ? "b" : "a", 1) == 1) {
            pause();
        }
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(1, read(ends[0], &byte, 1));
    }
    struct run_tree tree;
    struct run_usage usage;
    run_tree_init(&tree, "/proc", child);
    run_tree_read(&tree, &usage);
    TEST_ASSERT_EQUAL_DOUBLE(2, usage.processes);
    TEST_ASSERT_TRUE(usage.memory_bytes > 0);
    TEST_ASSERT_TRUE(usage.memory_peak_bytes >= usage.memory_bytes);
    TEST_ASSERT_EQUAL_UINT(2, run_tree_signal(&tree, SIGKILL));
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
    run_tree_finish(&tree);
    close(ends[0]);
    close(ends[1]);
}
