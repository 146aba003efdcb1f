/* Containers that are killed as soon as they run: churn PARENT CYCLES LIVES_MS. Eight at a time
 * live for LIVES_MS or less in cgroups of their own below PARENT, named "%064x" by their number,
 * and hold some memory until they are killed. Prints how many there were and the CPU seconds
 * that they used. */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIVE = 8, HELD_BYTES = 1 << 18 };

struct victim {
    pid_t pid;
    char name[65];
};

static double used_seconds;

static void work(void) {
    char *memory =
        mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        memset(memory, 1, HELD_BYTES);
    }
    for (;;) {
        pause();
    }
}

/* In its cgroup from the first instruction on. */
static pid_t start_in(int cgroup) {
    struct clone_args arguments = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

static struct victim start(unsigned number) {
    struct victim victim = {0};
    snprintf(victim.name, sizeof(victim.name), "%064x", number);
    if (mkdir(victim.name, 0755) < 0) {
        err(1, "mkdir %s", victim.name);
    }
    int fd = open(victim.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    victim.pid = fd >= 0 ? start_in(fd) : -1;
    if (victim.pid < 0) {
        err(1, "clone3");
    }
    if (victim.pid == 0) {
        work();
    }
    close(fd);
    return victim;
}

static void end(const struct victim *victim) {
    struct rusage usage;
    kill(victim->pid, SIGKILL);
    if (wait4(victim->pid, NULL, 0, &usage) != victim->pid) {
        err(1, "wait4");
    }
    used_seconds += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    while (rmdir(victim->name) < 0) {
        if (errno != EBUSY) {
            err(1, "rmdir %s", victim->name);
        }
    }
}

static void wait_ns(long ns) {
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

int main(int argc, char **argv) {
    if (argc != 4 || chdir(argv[1]) < 0) {
        errx(2, "usage: churn PARENT CYCLES LIVES_MS");
    }
    unsigned n_cycles = (unsigned)atoi(argv[2]);
    long lives_ns = atol(argv[3]) * 1000000;
    struct victim victims[LIVE] = {0};
    for (unsigned i = 0; i < n_cycles + LIVE; i++) {
        struct victim *victim = &victims[i % LIVE];
        if (victim->pid > 0) {
            end(victim);
            victim->pid = 0;
        }
        if (i < n_cycles) {
            *victim = start(i);
        }
        /* At random, so that there is no common rhythm with the scrapes. */
        wait_ns((long)(drand48() * (double)lives_ns) / LIVE);
    }
    printf("%u %.6f\n", n_cycles, used_seconds);
    return 0;
}
