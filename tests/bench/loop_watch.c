#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Preloaded into a daemon, this measures every turn of its event loop: from the return of
 * epoll_wait(2) to the next call, without the time in which the thread was ready to run and the
 * kernel let another run. The longest goes to the file that LOOP_WATCH names, which the benchmark
 * reads and zeroes. */

struct watch {
    _Atomic uint64_t n_turns, longest_ns;
};

static struct watch *watch;
static int loop_fd = -1; /* the first one that the main thread waits for; others are within turns */
static uint64_t begin_ns;

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* "12345 678 9": nanoseconds on a processor, nanoseconds waiting for one, times. */
static uint64_t waited_ns(void) {
    static int fd = -1;
    char text[64] = "";
    unsigned long long waited = 0;
    fd = fd < 0 ? open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC) : fd;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    return n > 0 && sscanf(text, "%*u %llu", &waited) == 1 ? waited : 0;
}

/* Nanoseconds in which the thread was not kept waiting. The two clocks are read again where the
 * kernel let others run in between. */
static uint64_t served_ns(void) {
    uint64_t waited, now;
    do {
        waited = waited_ns();
        now = monotonic_ns();
    } while (waited_ns() != waited);
    return now - waited;
}

__attribute__((constructor)) static void open_watch(void) {
    const char *path = getenv("LOOP_WATCH");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *data = fd >= 0 ? mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                         : MAP_FAILED;
    watch = data != MAP_FAILED ? data : NULL;
    unsetenv("LD_PRELOAD");
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout) {
    bool is_main = gettid() == getpid();
    loop_fd = loop_fd < 0 && is_main ? fd : loop_fd;
    bool is_loop = watch != NULL && is_main && fd == loop_fd;
    if (is_loop && begin_ns != 0) {
        /* Less than nothing where the kernel counts late what it let others run. */
        int64_t turn_ns = (int64_t)(served_ns() - begin_ns);
        if (turn_ns > (int64_t)atomic_load(&watch->longest_ns)) {
            atomic_store(&watch->longest_ns, (uint64_t)turn_ns);
        }
        atomic_fetch_add(&watch->n_turns, 1);
    }
    int n = epoll_pwait(fd, events, max, timeout, NULL);
    begin_ns = is_loop ? served_ns() : begin_ns;
    return n;
}
