#include "profiler/run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectors/source/entries.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* What went wrong between fork and exec. */
struct fault {
    int code; /* errno */
    int step;
};

enum { STEP_CGROUP, STEP_DIRECTORY, STEP_EXEC };

/* Whether `env` has a variable of this name. */
static bool overrides(const char *const *env, const char *variable) {
    size_t len = strcspn(variable, "=");
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, variable, len) == 0 && (*env)[len] == '=') {
            return true;
        }
    }
    return false;
}

/* Our environment, overridden by `env`. */
static const char **make_environment(const char *const *env) {
    const char **all = NULL;
    size_t n = 0, cap = 0;
    for (char **ours = environ; *ours != NULL; ours++) {
        ARRAY_GROW(&all, &cap, n + 1);
        all[n] = *ours;
        n += !overrides(env, *ours);
    }
    do {
        ARRAY_GROW(&all, &cap, n + 1);
        all[n++] = env != NULL ? *env : NULL;
    } while (env != NULL && *env++ != NULL);
    return all;
}

static void reset_signals(void) {
    for (int i = 1; i < NSIG; i++) {
        signal(i, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child, where only async-signal-safe calls are allowed. */
static void exec_command(const struct run_command *command, const char *const *environment,
                         int null_fd, int fault_fd) {
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

static int describe_fault(const struct run_command *command, const struct fault *fault,
                          struct error *err) {
    const char *const operands[] = {
        [STEP_CGROUP] = "the cgroup of the run",
        [STEP_DIRECTORY] = command->dir,
        [STEP_EXEC] = command->argv[0],
    };
    return error_set(err, -fault->code, "%s %s: %s", fault->step == STEP_EXEC ? "start" : "enter",
                     operands[fault->step], strerror(fault->code));
}

int run_child_start(const struct run_command *command, pid_t *ret_pid, struct error *err) {
    const char **environment CLEANUP_FREE = make_environment(command->env);
    int ends[2];
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
        exec_command(command, environment, null_fd, write_end);
    }
    close(TAKE_FD(write_end));
    struct fault fault;
    ssize_t n = TEMP_FAILURE_RETRY(read(read_end, &fault, sizeof(fault)));
    if (n == (ssize_t)sizeof(fault)) {
        waitpid(pid, NULL, 0);
        return describe_fault(command, &fault, err);
    }
    *ret_pid = pid;
    return 0;
}

bool run_process_is_gone(long pid) {
    return pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

#define LIST_INTERVAL_NS CLOCK_NS_PER_SEC

int run_stat_parse(const char *text, struct run_stat *ret_stat) {
    const char *name_end = strrchr(text, ')'); /* "7 (a) b) S 1 7 7 0 …" */
    int pid, parent, group;
    char state;
    double user, system, reaped_user, reaped_system, pages;
    if (name_end == NULL || sscanf(text, "%d (", &pid) != 1 ||
        sscanf(name_end + 1,
               " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf %lf %lf %*d %*d %*d %*d %*u %*u "
               "%lf",
               &state, &parent, &group, &user, &system, &reaped_user, &reaped_system,
               &pages) != 8) {
        return -EINVAL;
    }
    *ret_stat = (struct run_stat){
        .pid = pid,
        .parent = parent,
        .group = group,
        .state = state,
        .cpu_ticks = user + reaped_user,
        .system_ticks = system + reaped_system,
        .rss_pages = pages,
    };
    return 0;
}

static int read_stat(struct run_tree *tree, const char *pid, struct run_stat *ret_stat) {
    char path[512];
    int len = snprintf(path, sizeof(path), "%s/%s/stat", tree->procfs, pid);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return -ENAMETOOLONG;
    }
    int r = file_read(path, &tree->text, NULL);
    return r < 0 ? r : run_stat_parse(buf_str(&tree->text), ret_stat);
}

static bool has(const struct run_pids *list, pid_t pid) {
    for (size_t i = 0; i < list->n_pids; i++) {
        if (list->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static void add(struct run_pids *list, pid_t pid) {
    ARRAY_GROW(&list->pids, &list->cap_pids, list->n_pids + 1);
    list->pids[list->n_pids++] = pid;
}

/* Repeated until no process is added, since children may be listed before their parents. */
static void choose(struct run_tree *tree, const struct run_stat *stats, size_t n_stats) {
    struct run_pids *chosen = &tree->pids;
    pid_t self = getpid();
    chosen->n_pids = 0;
    for (size_t n_before = SIZE_MAX; n_before != chosen->n_pids;) {
        n_before = chosen->n_pids;
        for (size_t i = 0; i < n_stats; i++) {
            const struct run_stat *stat = &stats[i];
            bool adopted = stat->parent == self && !has(&tree->others, stat->pid);
            bool belongs = stat->pid == tree->root || stat->group == tree->root || adopted ||
                           has(chosen, stat->parent);
            if (belongs && stat->state != 'Z' && !has(chosen, stat->pid)) {
                add(chosen, stat->pid);
            }
        }
    }
}

static void list(struct run_tree *tree) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, tree->procfs, "");
    struct run_stat *stats CLEANUP_FREE = mem_alloc(entries.n_names * sizeof(*stats));
    size_t n_stats = 0;
    for (size_t i = 0; i < entries.n_names; i++) {
        const char *name = entries.names[i];
        if (name[0] >= '1' && name[0] <= '9' && read_stat(tree, name, &stats[n_stats]) == 0) {
            n_stats++;
        }
    }
    choose(tree, stats, n_stats);
    tree->listed_ns = clock_monotonic_ns();
}

void run_tree_init(struct run_tree *tree, const char *procfs, pid_t root) {
    *tree = (struct run_tree){.procfs = procfs, .root = root};
    list(tree); /* all our children and their descendants */
    for (size_t i = 0; i < tree->pids.n_pids; i++) {
        if (tree->pids.pids[i] != root) {
            add(&tree->others, tree->pids.pids[i]);
        }
    }
    tree->listed_ns = 0;
}

void run_tree_finish(struct run_tree *tree) {
    free(tree->pids.pids);
    free(tree->others.pids);
    buf_finish(&tree->text);
    *tree = (struct run_tree){0};
}

void run_tree_read(struct run_tree *tree, struct run_usage *ret_usage) {
    if (tree->listed_ns == 0 || clock_monotonic_ns() - tree->listed_ns >= LIST_INTERVAL_NS) {
        list(tree);
    }
    double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    double user = 0, system = 0, memory = 0;
    size_t n = 0;
    for (size_t i = 0; i < tree->pids.n_pids; i++) {
        char name[16];
        struct run_stat stat;
        snprintf(name, sizeof(name), "%d", (int)tree->pids.pids[i]);
        if (read_stat(tree, name, &stat) == 0) {
            user += stat.cpu_ticks / ticks;
            system += stat.system_ticks / ticks;
            memory += stat.rss_pages * page;
            n++;
        }
    }
    tree->peak_bytes = memory > tree->peak_bytes ? memory : tree->peak_bytes;
    *ret_usage = (struct run_usage){
        .cpu_seconds = n > 0 ? user + system : NAN,
        .user_seconds = n > 0 ? user : NAN,
        .system_seconds = n > 0 ? system : NAN,
        .throttled_seconds = NAN,
        .memory_bytes = n > 0 ? memory : NAN,
        .memory_peak_bytes = tree->peak_bytes > 0 ? tree->peak_bytes : NAN,
        .read_bytes = NAN,
        .written_bytes = NAN,
        .processes = n > 0 ? (double)n : NAN,
    };
}

bool run_tree_has(const struct run_tree *tree, pid_t pid) {
    return has(&tree->pids, pid);
}

size_t run_tree_signal(struct run_tree *tree, int signal) {
    list(tree);
    for (size_t i = 0; i < tree->pids.n_pids; i++) {
        kill(tree->pids.pids[i], signal);
    }
    return tree->pids.n_pids;
}
