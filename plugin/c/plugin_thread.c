#define _GNU_SOURCE 1
#include "plugin_thread.h"

#include <errno.h>
#include <link.h>
#include <locale.h>
#include <sys/prctl.h>

enum { LEAST_STACK = 256 * 1024 };

static int add_thread_local(struct dl_phdr_info *object, size_t size, void *total) {
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_TLS) {
            *(size_t *)total += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
        }
    }
    return 0;
}

/* The program's thread-local variables lie on every stack, and may be larger. */
static int start_with(size_t size, pthread_t *ret_thread, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    dl_iterate_phdr(add_thread_local, &size);
    pthread_attr_setstacksize(&attributes, size);
    int r = pthread_create(ret_thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

static size_t usual_size(void) {
    pthread_attr_t attributes;
    size_t size;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size < LEAST_STACK ? LEAST_STACK : size;
}

/* The application's functions are called on it and find what other threads have: memory is taken as
 * it is used. But where memory is bounded (ulimit -v), a small stack is better than no thread. */
int waap_thread_start(pthread_t *ret_thread, void *(*run)(void *)) {
    int r = start_with(usual_size(), ret_thread, run);
    return r == EAGAIN || r == ENOMEM ? start_with(LEAST_STACK, ret_thread, run) : r;
}

void waap_thread_dress(void) {
    /* Numbers on the wire have a point, whatever the application's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (plain != NULL) {
        uselocale(plain);
    }
    prctl(PR_SET_NAME, "waap-plugin");
}
