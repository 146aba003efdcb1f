#include "exporter/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"

/* Collectors call into foreign libraries (NVML), which want more than the minimum. */
enum { THREAD_STACK = 256 * 1024, THREAD_NAME_MAX = 16 };

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
        return error_set(err, -code, "start thread %s: %s", name, strerror(code));
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
