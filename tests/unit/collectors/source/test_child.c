#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "collectors/source/child.h"
#include "exporter/core/cleanup.h"
#include "tests/unit/waiting.h"

enum { PATIENCE_MS = 60000, NOBODY = 65534 };

static struct child child = CHILD_NONE;
static struct error err;
static char directory[32], inner[48], path[64];

void setUp(void) {
    strcpy(directory, "/tmp/waap-program-XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    snprintf(inner, sizeof(inner), "%s/inner", directory);
    snprintf(path, sizeof(path), "%s/program", inner);
    TEST_ASSERT_EQUAL_INT(0, mkdir(inner, 0755));
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_INT(0, fchmod(fileno(file), 0755));
    err.text[0] = '\0';
}

void tearDown(void) {
    child_finish(&child);
    unlink(path);
    rmdir(inner);
    rmdir(directory);
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

static void write_script(const char *script, const char *text) {
    FILE *file CLEANUP_FCLOSE = fopen(script, "we");
    TEST_ASSERT_NOT_NULL(file);
    fprintf(file, "#!/bin/sh\necho %s \"$@\"\n", text);
    TEST_ASSERT_EQUAL_INT(0, fchmod(fileno(file), 0755));
}

static void test_the_open_file_runs_whatever_has_its_name(void) {
    char other[64], text[32];
    snprintf(other, sizeof(other), "%s/other", inner);
    write_script(path, "checked");
    write_script(other, "replaced");
    int program CLEANUP_CLOSE = open(path, O_PATH | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT(0, rename(other, path));
    const char *const argv[] = {path, "argument", NULL};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, child_start(&child, program, argv, &err), err.text);
    read_output(text, sizeof(text));
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

static int open_it(const char *name) {
    int fd = program_open(name, &err);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return fd;
}

static void assert_refused(const char *name, const char *reason, const char *where) {
    char expected[256];
    snprintf(expected, sizeof(expected), "%s: not run: %s %s", name, where, reason);
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EPERM, open_it(name), name);
    TEST_ASSERT_EQUAL_STRING(expected, err.text);
}

static void test_modes(void) {
    static const struct {
        const char *file;
        mode_t mode;
        bool trusted;
    } cases[] = {
        {path, 0755, true},      {path, 0700, true},       {path, 0775, false},
        {path, 0757, false},     {path, 01757, false},     {path, 0755, true},
        {inner, 0700, true},     {inner, 0775, false},     {inner, 0757, false},
        {inner, 0755, true},     {directory, 0775, false}, {directory, 0777, false},
        {directory, 0700, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT(0, chmod(cases[i].file, cases[i].mode));
        if (cases[i].trusted) {
            TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
        } else {
            assert_refused(path, "is writable by others than its owner", cases[i].file);
        }
    }
}

static void test_owners(void) {
    if (geteuid() != 0) {
        TEST_IGNORE_MESSAGE("SKIP: only root can give files away");
    }
    const char *const files[] = {path, inner, directory};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        TEST_ASSERT_EQUAL_INT(0, chown(files[i], NOBODY, NOBODY));
        assert_refused(path, "belongs to user 65534", files[i]);
        TEST_ASSERT_EQUAL_INT(0, chown(files[i], 0, 0));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
    }
}

/* A user may run a program of root or of its own. */
static void test_a_user_that_is_not_root(void) {
    if (geteuid() != 0) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(path), err.text);
        return;
    }
    TEST_ASSERT_EQUAL_INT(0, chmod(directory, 0755));
    TEST_ASSERT_EQUAL_INT(0, seteuid(NOBODY));
    int of_root = open_it(path);
    TEST_ASSERT_EQUAL_INT(0, seteuid(0));
    TEST_ASSERT_EQUAL_INT(0, chown(path, NOBODY, NOBODY));
    TEST_ASSERT_EQUAL_INT(0, seteuid(NOBODY));
    int own = open_it(path);
    TEST_ASSERT_EQUAL_INT(0, seteuid(0));
    TEST_ASSERT_EQUAL_INT(0, of_root);
    TEST_ASSERT_EQUAL_INT(0, own);
}

static void test_links(void) {
    char link[64], through[96];
    snprintf(link, sizeof(link), "%s/link", directory);
    snprintf(through, sizeof(through), "%s/program", link);
    TEST_ASSERT_EQUAL_INT(0, symlink(path, link));
    assert_refused(link, "is a symbolic link", link);
    unlink(link);
    TEST_ASSERT_EQUAL_INT(0, symlink(inner, link));
    assert_refused(through, "is a symbolic link", link);
    unlink(link);
}

static void test_what_is_no_program(void) {
    char name[96];
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it(inner));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "not a regular file"));
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it("/"));
    snprintf(name, sizeof(name), "%s/", inner);
    TEST_ASSERT_EQUAL_INT(-EACCES, open_it(name));
    snprintf(name, sizeof(name), "%s/missing", inner);
    TEST_ASSERT_EQUAL_INT(-ENOENT, open_it(name));
    snprintf(name, sizeof(name), "%s/below", path);
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, open_it(name));
    TEST_ASSERT_EQUAL_INT(-EINVAL, open_it("program"));
    TEST_ASSERT_EQUAL_STRING("program: not an absolute path", err.text);
    TEST_ASSERT_EQUAL_INT(-EINVAL, open_it(""));
    snprintf(name, sizeof(name), "%s//../inner/./program", inner);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, open_it(name), err.text);
}
