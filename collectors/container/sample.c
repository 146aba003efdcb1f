#include "collectors/container/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "collectors/cgroup/parse.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

/* Closer than this the kernel's own steps show. */
#define MIN_INTERVAL_NS (20 * CLOCK_NS_PER_MS)

static size_t cpu_row(const struct cgroup_tree *tree) {
    for (size_t i = 0; i < tree->n_rows; i++) {
        if ((tree->rows[i].controllers & CGROUP_CPUACCT) != 0) {
            return i;
        }
    }
    return tree->primary;
}

static int open_cpu(const struct container *container, const struct cgroup_tree *tree, size_t row) {
    if (container->place.fds[row] < 0) {
        return -1;
    }
    const char *name = tree->rows[row].unified ? "cpu.stat" : "cpuacct.usage";
    return openat(container->place.fds[row], name, O_RDONLY | O_CLOEXEC);
}

/* NaN where it cannot be read. */
static double read_cpu(int fd, bool unified) {
    static const struct cgroup_key usage[] = {CGROUP_KEY("usage_usec", CGROUP_CPU_USAGE, 1e6)};
    struct cgroup_stats stats = {.values[CGROUP_CPU_USAGE] = NAN};
    char text[512];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        return NAN;
    }
    text[n] = '\0';
    if (unified) {
        cgroup_parse_keyed(text, usage, ARRAY_LEN(usage), &stats);
    } else {
        cgroup_parse_scalar(text, CGROUP_CPU_USAGE, 1e9, &stats);
    }
    return stats.values[CGROUP_CPU_USAGE];
}

static void take(struct container *container, double seconds, int64_t now_ns) {
    container->used_seconds = seconds;
    int64_t interval_ns = now_ns - container->cpu_ns;
    if (container->cpu_ns != 0 && interval_ns < MIN_INTERVAL_NS) {
        return;
    }
    if (container->cpu_ns != 0 && seconds >= container->cpu_seconds) {
        double cores = (seconds - container->cpu_seconds) * 1e9 / (double)interval_ns;
        peak_add(&container->peak, now_ns, cores);
    }
    container->cpu_seconds = seconds;
    container->cpu_ns = now_ns;
}

void container_sample_cpu(struct container *container, const struct cgroup_tree *tree,
                          bool keep_open, int64_t now_ns) {
    size_t row = cpu_row(tree);
    if (container->cpu_fd < 0) {
        container->cpu_fd = open_cpu(container, tree, row);
    }
    if (container->cpu_fd < 0) {
        return;
    }
    double seconds = read_cpu(container->cpu_fd, tree->rows[row].unified);
    if (isfinite(seconds)) {
        take(container, seconds, now_ns);
    }
    if (!isfinite(seconds) || !keep_open) {
        close(TAKE_FD(container->cpu_fd));
    }
}
