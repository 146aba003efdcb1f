#include "profiler/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/run/args.h"

/* What went wrong between fork and exec. */
struct fault {
    int code; /* errno */
    int step;
};

enum { STEP_CGROUP, STEP_DIRECTORY, STEP_EXEC };

static bool same_name(const char *a, const char *b) {
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && b[len] == '=';
}

/* Ours, with those of `env` added or in the place of those of the same name. */
static const char *const *make_environment(const char *const *env, struct arena *arena) {
    struct buf words CLEANUP_BUF = {0};
    for (char **ours = environ; *ours != NULL; ours++) {
        bool replaced = false;
        for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
            replaced = replaced || same_name(env[i], *ours);
        }
        if (!replaced) {
            buf_add(&words, ours, sizeof(*ours));
        }
    }
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        buf_add(&words, &env[i], sizeof(env[i]));
    }
    return run_args_list(&words, arena);
}

static void reset_signals(void) {
    for (int i = 1; i < NSIG; i++) {
        signal(i, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child, where only calls that are safe in a copy of a process with threads may be made. */
static void become(const struct run_command *command, const char *const *environment, int null_fd,
                   int fault_fd) {
    struct fault fault = {0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    int r = command->cgroup != NULL ? run_cgroup_enter(command->cgroup) : 0;
    if (r < 0) {
        fault = (struct fault){-r, STEP_CGROUP};
    } else if (command->dir != NULL && chdir(command->dir) < 0) {
        fault = (struct fault){errno, STEP_DIRECTORY};
    } else {
        dup2(null_fd, STDIN_FILENO);
        dup2(command->output_fd, STDOUT_FILENO);
        dup2(command->output_fd, STDERR_FILENO);
        execvpe(command->argv[0], (char *const *)command->argv, (char *const *)environment);
        fault = (struct fault){errno, STEP_EXEC};
    }
    ssize_t n = write(fault_fd, &fault, sizeof(fault));
    _exit(n > 0 ? 127 : 126);
}

static int word_fault(const struct run_command *command, const struct fault *fault,
                      struct error *err) {
    const char *why = strerror(fault->code);
    switch (fault->step) {
    case STEP_CGROUP:
        return error_set(err, -fault->code, "enter the cgroup of the run: %s", why);
    case STEP_DIRECTORY:
        return error_set(err, -fault->code, "enter %s: %s", command->dir, why);
    default:
        return error_set(err, -fault->code, "start %s: %s", command->argv[0], why);
    }
}

int run_child_start(const struct run_command *command, pid_t *ret_pid, struct error *err) {
    struct arena arena CLEANUP_ARENA = {0};
    const char *const *environment = make_environment(command->env, &arena);
    int ends[2];
    if (environment == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return error_set(err, -errno, "pipe: %m");
    }
    int read_end CLEANUP_CLOSE = ends[0];
    int write_end CLEANUP_CLOSE = ends[1];
    int null_fd CLEANUP_CLOSE = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t pid = fork();
    if (pid < 0) {
        return error_set(err, -errno, "fork: %m");
    }
    if (pid == 0) {
        become(command, environment, null_fd, write_end);
    }
    close(TAKE_FD(write_end));
    struct fault fault;
    ssize_t n;
    do {
        n = read(read_end, &fault, sizeof(fault));
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof(fault)) {
        waitpid(pid, NULL, 0);
        return word_fault(command, &fault, err);
    }
    *ret_pid = pid;
    return 0;
}
