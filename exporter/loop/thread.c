#include "exporter/loop/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/clock.h"

/* Collectors call into foreign libraries (NVML), which want more than the minimum. */
enum { THREAD_STACK = 256 * 1024, THREAD_NAME_MAX = 16 };

/* Docker of before 2021, as on JetPack 4, answers EPERM to system calls it does not know, and the C
 * library tries the older one after ENOSYS only. The kernel itself refuses no arguments at all with
 * EINVAL. */
static bool clone3_is_forbidden(void) {
    return syscall(SYS_clone3, NULL, 0) < 0 && errno == EPERM;
}

static int start_failed(int code, const char *name, struct error *err) {
    if (code == EPERM && clone3_is_forbidden()) {
        return error_set(err, -code,
                         "start thread %s: %s: the container's seccomp filter forbids clone3, as "
                         "Docker before 20.10.10 does; use a later one, or docker run "
                         "--security-opt seccomp=unconfined",
                         name, strerror(code));
    }
    return error_set(err, -code, "start thread %s: %s", name, strerror(code));
}

int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context,
                 struct error *err) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(ret_thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        return start_failed(code, name, err);
    }
    char short_name[THREAD_NAME_MAX];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(*ret_thread, short_name);
    return 0;
}

/* Asks again and again: threads seldom end, and the thread sanitizer knows this call but not the
 * one that waits by the monotonic clock. */
bool thread_join(pthread_t thread, int64_t timeout_ms) {
    static const struct timespec pause = {.tv_nsec = CLOCK_NS_PER_MS};
    int64_t until_ns = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (clock_monotonic_ns() >= until_ns) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}
