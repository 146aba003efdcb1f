#include "exporter/core/file.h"
#include "tests/unit/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

static char temp_dir[] = "/tmp/test_file.XXXXXX";
static int temp_fd = -1;

static void write_file(const char *name, const void *data, size_t n) {
    int fd CLEANUP_CLOSE = openat(temp_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    TEST_ASSERT_TRUE(fd >= 0);
    TEST_ASSERT_EQUAL_INT64((int64_t)n, write(fd, data, n));
}

static void test_reads_what_is_there(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    buf_add_str(&out, "left over");
    write_file("some", "a\0b\n", 4);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read_at(temp_fd, "some", 100, &out, &err), err.text);
    TEST_ASSERT_EQUAL_UINT64(4, out.len);
    TEST_ASSERT_EQUAL_MEMORY("a\0b\n", out.data, 5);
    write_file("empty", "", 0);
    TEST_ASSERT_EQUAL_INT(0, file_read_at(temp_fd, "empty", 100, &out, &err));
    TEST_ASSERT_EQUAL_UINT64(0, out.len);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&out));
}

/* Sizes around a page and around the buffer's growth. */
static void test_reads_every_size(void) {
    static const size_t sizes[] = {1, 4095, 4096, 4097, 8191, 8192, 8193, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buf out CLEANUP_BUF = {0};
        char *data CLEANUP_FREE = malloc(sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            data[j] = (char)('a' + j % 23);
        }
        write_file("sized", data, sizes[i]);
        TEST_ASSERT_EQUAL_INT(0, file_read_at(temp_fd, "sized", sizes[i], &out, NULL));
        TEST_ASSERT_EQUAL_UINT64(sizes[i], out.len);
        TEST_ASSERT_EQUAL_MEMORY(data, out.data, sizes[i]);
        TEST_ASSERT_EQUAL_INT(-EFBIG, file_read_at(temp_fd, "sized", sizes[i] - 1, &out, NULL));
    }
}

static void test_names_the_path_in_errors(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    write_file("big", "12345", 5);
    TEST_ASSERT_EQUAL_INT(-EFBIG, file_read_at(temp_fd, "big", 4, &out, &err));
    TEST_ASSERT_EQUAL_STRING("read big: more than 4 bytes", err.text);
    TEST_ASSERT_EQUAL_INT(-ENOENT, file_read_at(temp_fd, "missing", 4, &out, &err));
    TEST_ASSERT_EQUAL_STRING("open missing: No such file or directory", err.text);
    TEST_ASSERT_EQUAL_INT(-EISDIR, file_read_at(temp_fd, ".", 4, &out, &err));
    TEST_ASSERT_EQUAL_STRING("read .: Is a directory", err.text);
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, file_read_at(temp_fd, "big/x", 4, &out, &err));
    TEST_ASSERT_EQUAL_STRING("open big/x: Not a directory", err.text);
}

static void test_a_pipe_does_not_hang(void) {
    struct buf out CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, mkfifoat(temp_fd, "pipe", 0600));
    alarm(WAIT_LIMIT_S);
    TEST_ASSERT_EQUAL_INT(-ESPIPE, file_read_at(temp_fd, "pipe", 4, &out, NULL));
    TEST_ASSERT_EQUAL_UINT64(0, out.len);
    int writer = openat(temp_fd, "pipe", O_RDWR | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT(-ESPIPE, file_read_at(temp_fd, "pipe", 4, &out, NULL));
    close(writer);
    alarm(0);
}

static void test_a_pipe_is_not_a_stored_file(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    char path[64];
    snprintf(path, sizeof(path), "%s/fifo", temp_dir);
    TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
    TEST_ASSERT_EQUAL_INT(-ESPIPE, file_read_stored(path, 100, &out, &err));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "fifo: a pipe, not a file"));
    TEST_ASSERT_EQUAL_INT(0, unlink(path));
    write_file("stored", "text", 4);
    snprintf(path, sizeof(path), "%s/stored", temp_dir);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read_stored(path, 4, &out, &err), err.text);
    TEST_ASSERT_EQUAL_STRING("text", buf_str(&out));
    TEST_ASSERT_EQUAL_INT(-EFBIG, file_read_stored(path, 3, &out, &err));
    TEST_ASSERT_EQUAL_INT(0, unlink(path));
    TEST_ASSERT_EQUAL_INT(-ENOENT, file_read_stored(path, 4, &out, &err));
    TEST_ASSERT_EQUAL_INT(0, file_read_stored("/dev/null", 4, &out, &err));
}

static void test_reads_proc(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read("/proc/self/stat", &out, &err), err.text);
    TEST_ASSERT_EQUAL_INT(getpid(), atoi(buf_str(&out)));
    TEST_ASSERT_EQUAL_CHAR('\n', out.data[out.len - 1]);
    TEST_ASSERT_EQUAL_INT(-ENOENT, file_read("/proc/self/nothing", &out, &err));
    TEST_ASSERT_EQUAL_STRING("open /proc/self/nothing: No such file or directory", err.text);
}

static void test_rereads_from_the_beginning(void) {
    struct buf out CLEANUP_BUF = {0};
    write_file("again", "first", 5);
    int fd CLEANUP_CLOSE = openat(temp_fd, "again", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(0, file_reread(fd, "again", 100, &out, NULL));
        TEST_ASSERT_EQUAL_STRING("first", buf_str(&out));
    }
    write_file("again", "two", 3);
    TEST_ASSERT_EQUAL_INT(0, file_reread(fd, "again", 100, &out, NULL));
    TEST_ASSERT_EQUAL_STRING("two", buf_str(&out));
    struct error err = {""};
    TEST_ASSERT_EQUAL_INT(-EFBIG, file_reread(fd, "again", 2, &out, &err));
    TEST_ASSERT_EQUAL_STRING("read again: more than 2 bytes", err.text);
    TEST_ASSERT_EQUAL_INT(-EBADF, file_reread(-1, "closed", 2, &out, &err));
    TEST_ASSERT_EQUAL_STRING("read closed: Bad file descriptor", err.text);
}

static void test_rereads_proc(void) {
    struct buf out CLEANUP_BUF = {0};
    int fd CLEANUP_CLOSE = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
    TEST_ASSERT_EQUAL_INT(0, file_reread(fd, "uptime", 100, &out, NULL));
    double first = atof(buf_str(&out));
    TEST_ASSERT_TRUE(BECOMES_TRUE(file_reread(fd, "uptime", 100, &out, NULL) == 0 &&
                                  atof(buf_str(&out)) > first));
}

static void test_joins_with_one_slash(void) {
    static const struct {
        const char *base;
        const char *name;
        const char *path;
    } table[] = {
        {"/proc", "stat", "/proc/stat"},
        {"/proc/", "stat", "/proc/stat"},
        {"/proc//", "//stat", "/proc/stat"},
        {"/proc", "/net/dev", "/proc/net/dev"},
        {"/", "stat", "/stat"},
        {"a", "b/c", "a/b/c"},
        {"/proc", "", "/proc/"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char *path CLEANUP_FREE = file_path_join(table[i].base, table[i].name);
        TEST_ASSERT_EQUAL_STRING(table[i].path, path);
    }
}

static void test_replaces_a_file(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    char *path CLEANUP_FREE = file_path_join(temp_dir, "state");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_replace(path, 0600, "first", 5, &err), err.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_replace(path, 0600, "2nd", 3, &err), err.text);
    TEST_ASSERT_EQUAL_INT(0, file_read(path, &out, &err));
    TEST_ASSERT_EQUAL_STRING("2nd", out.data);
    struct stat info;
    TEST_ASSERT_EQUAL_INT(0, stat(path, &info));
    TEST_ASSERT_EQUAL_UINT(0600, info.st_mode & 0777);
    TEST_ASSERT_EQUAL_INT(-1, faccessat(temp_fd, "state.new", F_OK, 0));
    TEST_ASSERT_EQUAL_INT(-ENOENT, file_replace("/nonexistent/x", 0600, "", 0, &err));
    TEST_ASSERT_EQUAL_STRING("create /nonexistent/x.new: No such file or directory", err.text);
}

static void test_a_failed_replacement_keeps_the_file(void) {
    struct buf out CLEANUP_BUF = {0};
    struct error err = {""};
    char *path CLEANUP_FREE = file_path_join(temp_dir, "state");
    write_file("state", "good", 4);
    TEST_ASSERT_EQUAL_INT(0, mkdirat(temp_fd, "state.new", 0700));
    TEST_ASSERT_EQUAL_INT(-EISDIR, file_replace(path, 0600, "bad", 3, &err));
    TEST_ASSERT_EQUAL_INT(0, file_read(path, &out, &err));
    TEST_ASSERT_EQUAL_STRING("good", out.data);
    unlinkat(temp_fd, "state.new", AT_REMOVEDIR);
}

/* The new file goes as well if it cannot take the place of the old one. */
static void test_a_failed_rename_leaves_nothing(void) {
    struct error err = {""};
    char *path CLEANUP_FREE = file_path_join(temp_dir, "directory");
    TEST_ASSERT_EQUAL_INT(0, mkdirat(temp_fd, "directory", 0700));
    TEST_ASSERT_EQUAL_INT(-EISDIR, file_replace(path, 0600, "x", 1, &err));
    TEST_ASSERT_EQUAL_INT(-1, faccessat(temp_fd, "directory.new", F_OK, 0));
    unlinkat(temp_fd, "directory", AT_REMOVEDIR);
}

static void remove_files(void) {
    static const char *const names[] = {"some", "empty", "sized", "big", "pipe", "again", "state"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unlinkat(temp_fd, names[i], 0);
    }
    close(temp_fd);
    rmdir(temp_dir);
}

void suiteSetUp(void) {
    if (mkdtemp(temp_dir) == NULL ||
        (temp_fd = open(temp_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        perror(temp_dir);
        exit(1);
    }
}

int suiteTearDown(int failures) {
    remove_files();
    return failures;
}
