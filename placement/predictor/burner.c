#include "placement/predictor/burner.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/source/procfs.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"

/* One round of work and sleep: short, so that no run of a model falls between two of them. */
enum { ROUND_MS = 20 };

static void sleep_ns(int64_t ns) {
    struct timespec time = {ns / CLOCK_NS_PER_SEC, ns % CLOCK_NS_PER_SEC};
    while (nanosleep(&time, &time) < 0 && errno == EINTR) {
    }
}

static _Noreturn void burn(double percent, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0);
    }
    int64_t busy_ns = (int64_t)(percent / 100 * ROUND_MS * CLOCK_NS_PER_MS);
    for (;;) {
        int64_t start_ns = clock_monotonic_ns();
        while (clock_monotonic_ns() - start_ns < busy_ns) {
        }
        sleep_ns(ROUND_MS * CLOCK_NS_PER_MS - busy_ns);
    }
}

int burner_start(struct burner *burner, double percent, struct error *err) {
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *burner = (struct burner){.n_children = 0};
    if (percent <= 0) {
        return 0;
    }
    burner->children = calloc((size_t)(n_cpus > 0 ? n_cpus : 1), sizeof(*burner->children));
    if (burner->children == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    pid_t parent = getpid();
    for (long i = 0; i < n_cpus; i++) {
        pid_t child = fork();
        if (child < 0) {
            int r = error_set(err, -errno, "fork: %m");
            burner_stop(burner);
            return r;
        }
        if (child == 0) {
            burn(percent < 100 ? percent : 100, parent);
        }
        burner->children[burner->n_children++] = child;
    }
    return 0;
}

void burner_stop(struct burner *burner) {
    for (size_t i = 0; i < burner->n_children; i++) {
        kill(burner->children[i], SIGKILL);
        waitpid(burner->children[i], NULL, 0);
    }
    free(burner->children);
    *burner = (struct burner){.n_children = 0};
}

/* All and idle ticks of the first line of /proc/stat, "cpu  1266 0 1180 85363 …": its columns are
 * those of the others. */
static int read_ticks(uint64_t *ret_all, uint64_t *ret_idle, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read("/proc/stat", &text, err);
    if (r < 0) {
        return r;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    struct buf line CLEANUP_BUF = {0};
    struct cpu_stat_line stat;
    buf_printf(&line, "cpu0%s", strncmp(text.data, "cpu ", 4) == 0 ? text.data + 4 : "");
    if (cpu_stat_parse(buf_str(&line), &stat) < 0) {
        return error_set(err, -EINVAL, "/proc/stat: no line of all CPUs");
    }
    *ret_all = 0;
    for (size_t i = 0; i < stat.n_modes && i <= CPU_STAT_STEAL; i++) {
        *ret_all += stat.ticks[i];
    }
    *ret_idle = stat.ticks[CPU_STAT_IDLE];
    return 0;
}

int burner_measure(double seconds, double *ret_percent, struct error *err) {
    uint64_t all[2], idle[2];
    int r = read_ticks(&all[0], &idle[0], err);
    if (r < 0) {
        return r;
    }
    sleep_ns((int64_t)(seconds * 1e9));
    r = read_ticks(&all[1], &idle[1], err);
    if (r < 0) {
        return r;
    }
    if (all[1] <= all[0] || idle[1] < idle[0]) {
        return error_set(err, -ENODATA, "/proc/stat: no time has passed");
    }
    *ret_percent = 100 * (1 - (double)(idle[1] - idle[0]) / (double)(all[1] - all[0]));
    return 0;
}
