#include "collectors/source/child.h"
#include "tests/unit/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

enum { PATIENCE_MS = 60000 };

static struct child child = CHILD_NONE;
static struct error err;

void tearDown(void) {
    child_finish(&child);
}

static void start_shell(const char *script) {
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    int shell CLEANUP_CLOSE = open(argv[0], O_PATH | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, child_start(&child, shell, argv, &err), err.text);
}

/* What the program has written once there is something. */
static void read_output(char *out, size_t len) {
    struct pollfd ready = {.fd = child.output_fd, .events = POLLIN};
    TEST_ASSERT_EQUAL_INT(1, poll(&ready, 1, PATIENCE_MS));
    ssize_t n = read(child.output_fd, out, len - 1);
    TEST_ASSERT_GREATER_THAN(0, n);
    out[n] = '\0';
}

static int wait_for_status(void) {
    int status = -1;
    TEST_ASSERT_TRUE_MESSAGE(BECOMES_TRUE(child_ended(&child, &status)), "it goes on");
    return status;
}

/* As when we die: the kernel closes what we hold. It ignores all that can be ignored, SIGIO first,
 * which is what the kernel sends unless asked for another. */
static void test_nothing_survives_the_end_of_the_leash(void) {
    char text[16];
    start_shell("trap '' HUP INT IO PIPE TERM; echo ready; while :; do sleep 1; done");
    read_output(text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("ready\n", text);
    cleanup_close(&child.leash_fd);
    child.leash_fd = -1;
    int status = wait_for_status();
    TEST_ASSERT_TRUE(WIFSIGNALED(status));
    TEST_ASSERT_EQUAL_INT(SIGKILL, WTERMSIG(status));
}

static void test_it_leads_a_group_of_its_own(void) {
    char text[32], expected[32];
    start_shell("echo $$; exec sleep 60");
    snprintf(expected, sizeof(expected), "%d\n", (int)child.pid);
    read_output(text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING(expected, text);
    TEST_ASSERT_EQUAL_INT(child.pid, getpgid(child.pid));
}

static void test_its_environment_is_not_ours(void) {
    char text[64];
    setenv("SECRET", "x", 1);
    start_shell("echo \"[$SECRET] $LC_ALL\"");
    read_output(text, sizeof(text));
    TEST_ASSERT_EQUAL_STRING("[] C\n", text);
    TEST_ASSERT_EQUAL_INT(0, wait_for_status());
}

static void write_script(const char *path, const char *text) {
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    fprintf(file, "#!/bin/sh\necho %s \"$@\"\n", text);
    TEST_ASSERT_EQUAL_INT(0, fchmod(fileno(file), 0755));
}

static void test_the_open_file_runs_whatever_has_its_name(void) {
    char directory[] = "/tmp/waap-child-XXXXXX", path[64], other[64], text[32];
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/program", directory);
    snprintf(other, sizeof(other), "%s/other", directory);
    write_script(path, "checked");
    write_script(other, "replaced");
    int program CLEANUP_CLOSE = open(path, O_PATH | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT(0, rename(other, path));
    const char *const argv[] = {path, "argument", NULL};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, child_start(&child, program, argv, &err), err.text);
    read_output(text, sizeof(text));
    unlink(path);
    rmdir(directory);
    TEST_ASSERT_EQUAL_STRING("checked argument\n", text);
}

static void test_what_cannot_be_executed(void) {
    const char *emulator = getenv("WAAP_EMULATOR");
    if (emulator != NULL && emulator[0] != '\0') {
        TEST_IGNORE_MESSAGE("qemu-user's vfork does not tell the parent that exec failed");
    }
    const char *const argv[] = {"/etc/passwd", NULL};
    int program CLEANUP_CLOSE = open(argv[0], O_PATH | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT(-EACCES, child_start(&child, program, argv, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "start /etc/passwd"));
    child = CHILD_NONE;
    TEST_ASSERT_EQUAL_INT(-EBADF, child_start(&child, -1, argv, &err));
}
