#define _GNU_SOURCE 1
#include "plugin_thread.h"

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

/* The application's functions are called on it and find what other threads have: memory is taken as
 * it is used. The program's thread-local variables lie on every stack, and may be larger. */
static size_t stack_size(const pthread_attr_t *attributes) {
    size_t size;
    pthread_attr_getstacksize(attributes, &size);
    size = size < LEAST_STACK ? LEAST_STACK : size;
    dl_iterate_phdr(add_thread_local, &size);
    return size;
}

int waap_thread_start(pthread_t *ret_thread, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size(&attributes));
    int r = pthread_create(ret_thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

void waap_thread_dress(void) {
    /* Numbers on the wire have a point, whatever the application's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (plain != NULL) {
        uselocale(plain);
    }
    prctl(PR_SET_NAME, "waap-plugin");
}
