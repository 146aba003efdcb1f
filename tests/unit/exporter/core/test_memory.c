#include "exporter/core/memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unity.h>

static void test_nothing_is_something_to_free(void) {
    free(mem_alloc(0));
    free(mem_zalloc(0, 8));
    free(mem_dup(NULL, 0));
    free(mem_resize(NULL, 0, 8));
}

static void test_copies(void) {
    char *text = mem_strdup("abc"), *part = mem_strndup("abc", 2), *bytes = mem_dup("a\0b", 3);
    TEST_ASSERT_EQUAL_STRING("abc", text);
    TEST_ASSERT_EQUAL_STRING("ab", part);
    TEST_ASSERT_EQUAL_MEMORY("a\0b", bytes, 3);
    free(text);
    free(part);
    free(bytes);
}

static void test_an_array_doubles(void) {
    int *items = NULL;
    size_t capacity = 0, n_moves = 0;
    for (size_t n = 0; n < 1000; n++) {
        size_t before = capacity;
        ARRAY_GROW(&items, &capacity, n + 1);
        n_moves += capacity != before;
        items[n] = (int)n;
    }
    TEST_ASSERT_EQUAL_INT(999, items[999]);
    TEST_ASSERT_LESS_OR_EQUAL_size_t(10, n_moves);
    ARRAY_GROW(&items, &capacity, 5000);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(5000, capacity);
    free(items);
}

static void test_the_process_ends_with_one_line(void) {
    int ends[2];
    TEST_ASSERT_EQUAL_INT(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        mem_out();
    }
    close(ends[1]);
    char text[256] = "";
    TEST_ASSERT_GREATER_THAN_INT(0, (int)read(ends[0], text, sizeof(text) - 1));
    int status = 0;
    waitpid(child, &status, 0);
    TEST_ASSERT_TRUE(WIFSIGNALED(status));
    TEST_ASSERT_EQUAL_INT(SIGABRT, WTERMSIG(status));
    /* An emulator adds a line of its own. */
    TEST_ASSERT_EQUAL_STRING_LEN("waap: out of memory\n", text, strlen("waap: out of memory\n"));
    close(ends[0]);
}
