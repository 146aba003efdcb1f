#include "collectors/source/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* In a directory with the sticky bit only the owner of an entry can replace it. */
static bool others_can_write(const struct stat *info) {
    bool sticky = S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0;
    return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky;
}

/* `checked` is the part of `path` that ends with the file that `fd` refers to. */
static int check(int fd, const char *path, int checked, struct error *err) {
    struct stat info;
    if (fstat(fd, &info) < 0) {
        return error_set(err, -errno, "%s: %m", path);
    }
    if (S_ISLNK(info.st_mode)) {
        return error_set(err, -EPERM, "%s: not run: %.*s is a symbolic link", path, checked, path);
    }
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        return error_set(err, -EPERM, "%s: not run: %.*s belongs to user %u", path, checked, path,
                         (unsigned)info.st_uid);
    }
    if (others_can_write(&info)) {
        return error_set(err, -EPERM, "%s: not run: %.*s is writable by others than its owner",
                         path, checked, path);
    }
    bool last = path[checked + (int)strspn(path + checked, "/")] == '\0';
    if (last && !S_ISREG(info.st_mode)) {
        return error_set(err, -EACCES, "%s: not a regular file", path);
    }
    return 0;
}

int program_open(const char *path, struct error *err) {
    if (path[0] != '/') {
        return error_set(err, -EINVAL, "%s: not an absolute path", path);
    }
    char *names CLEANUP_FREE = mem_strdup(path);
    int fd CLEANUP_CLOSE = open("/", O_PATH | O_CLOEXEC);
    int r = fd < 0 ? error_set(err, -errno, "/: %m") : check(fd, path, 1, err);
    char *rest = NULL;
    for (char *name = strtok_r(names, "/", &rest); r == 0 && name != NULL;
         name = strtok_r(NULL, "/", &rest)) {
        int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            return error_set(err, -errno, "%s: %m", path);
        }
        close(fd);
        fd = next;
        r = check(fd, path, (int)(name - names + (ptrdiff_t)strlen(name)), err);
    }
    return r < 0 ? r : TAKE_FD(fd);
}

enum {
    LEASH_FD = 3, /* in the child */
    PROGRAM_FD = 4,
    POLITE_MS = 80,
    KILL_MS = 20,
};

/* The program gets a copy of the descriptor under one of the first few numbers. The original must
 * not have one of them, which happens if we were started without standard input or output. */
static int copy_high(int fd, int *ret_fd, struct error *err) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, PROGRAM_FD + 1);
    if (copy < 0) {
        return error_set(err, -errno, "dup: %m");
    }
    *ret_fd = copy;
    return 0;
}

static int open_pipe(int ret_ends[static 2], struct error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set(err, -errno, "pipe: %m");
    }
    int r = copy_high(ends[1], &ret_ends[1], err);
    close(ends[1]);
    if (r < 0) {
        close(ends[0]);
        return r;
    }
    ret_ends[0] = ends[0];
    return 0;
}

/* Our descriptors are all closed on exec. Our threads block signals and ignore SIGPIPE; the program
 * does not inherit that. The open file is executed, whatever its name refers to by then; the
 * descriptor stays open because the interpreter of a script opens the script by it. */
static int spawn(int program_fd, const char *const *argv, int output_fd, int leash_fd,
                 pid_t *ret_pid) {
    static const char program[] = "/proc/self/fd/4";
    _Static_assert(PROGRAM_FD == 4, "named in the path");
    static const char *const environment[] = {"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                              "TZ=UTC", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, leash_fd, LEASH_FD);
    posix_spawn_file_actions_adddup2(&actions, program_fd, PROGRAM_FD);
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    int code = posix_spawn(ret_pid, program, &actions, &attributes, (char *const *)argv,
                           (char *const *)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -code;
}

/* The program holds the writing end of an unused pipe, and we hold the reading end. When we close
 * it or die, the kernel signals the owner of the writing end: the signal is set to SIGKILL, for the
 * program's group. (PR_SET_PDEATHSIG must be set between fork and exec, which posix_spawn does not
 * allow, and is sent when the thread ends, not the process.) On a kernel without this, the program
 * dies of SIGPIPE at its next output. */
static void put_on_leash(int leash_fd, pid_t pid) {
    (void)fcntl(leash_fd, F_SETOWN, -pid);
    (void)fcntl(leash_fd, F_SETSIG, SIGKILL);
    (void)fcntl(leash_fd, F_SETFL, O_ASYNC);
}

int child_start(struct child *child, int program_fd, const char *const *argv, struct error *err) {
    int output[2] = {-1, -1};
    int leash[2] = {-1, -1};
    pid_t pid;
    int r = open_pipe(output, err);
    if (r < 0) {
        return r;
    }
    int output_read CLEANUP_CLOSE = output[0];
    int output_write CLEANUP_CLOSE = output[1];
    r = open_pipe(leash, err);
    if (r < 0) {
        return r;
    }
    int leash_read CLEANUP_CLOSE = leash[0];
    int leash_write CLEANUP_CLOSE = leash[1];
    if (fcntl(output_read, F_SETFL, O_NONBLOCK) < 0) {
        return error_set(err, -errno, "fcntl: %m");
    }
    int program CLEANUP_CLOSE = -1;
    r = copy_high(program_fd, &program, err);
    if (r < 0) {
        return r;
    }
    r = spawn(program, argv, output_write, leash_write, &pid);
    if (r < 0) {
        return error_set(err, r, "start %s: %s", argv[0], strerror(-r));
    }
    put_on_leash(leash_write, pid);
    *child = (struct child){
        .pid = pid,
        .output_fd = TAKE_FD(output_read),
        .leash_fd = TAKE_FD(leash_read),
    };
    return 0;
}

void child_signal(const struct child *child, int signal) {
    if (child->pid > 0) {
        kill(-child->pid, signal);
    }
}

bool child_ended(struct child *child, int *ret_status) {
    if (child->pid == 0) {
        return false;
    }
    pid_t pid = waitpid(child->pid, ret_status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
        return false;
    }
    if (pid < 0) { /* another thread has waited for it */
        *ret_status = 0;
    }
    child->pid = 0;
    return true;
}

static bool wait_ended(struct child *child, int64_t timeout_ms) {
    static const struct timespec pause = {.tv_nsec = CLOCK_NS_PER_MS};
    int64_t until_ns = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    int status;
    while (!child_ended(child, &status)) {
        if (clock_monotonic_ns() >= until_ns) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* A process that survives SIGKILL hangs in a driver; it ends when the driver returns. */
void child_finish(struct child *child) {
    if (child->pid > 0) {
        child_signal(child, SIGTERM);
        if (!wait_ended(child, POLITE_MS)) {
            child_signal(child, SIGKILL);
            wait_ended(child, KILL_MS);
        }
    }
    cleanup_close(&child->output_fd);
    cleanup_close(&child->leash_fd);
    *child = CHILD_NONE;
}
