#include "exporter/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIN_CAPACITY = 8 };

void mem_out(void) {
    static const char text[] = "waap: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
        /* There is no other way to report it. */
    }
    abort();
}

static void *or_out(void *memory) {
    if (memory == NULL) {
        mem_out();
    }
    return memory;
}

/* For 0 bytes the C library may return NULL, so no call asks for less than one. */
void *mem_alloc(size_t n) {
    return or_out(malloc(n > 0 ? n : 1));
}

void *mem_zalloc(size_t n, size_t size) {
    return or_out(calloc(n > 0 ? n : 1, size));
}

void *mem_dup(const void *data, size_t n) {
    void *copy = mem_alloc(n);
    return n > 0 ? memcpy(copy, data, n) : copy;
}

char *mem_strdup(const char *text) {
    return or_out(strdup(text));
}

char *mem_strndup(const char *text, size_t n) {
    return or_out(strndup(text, n));
}

void *mem_resize(void *items, size_t n, size_t size) {
    return or_out(reallocarray(items, n > 0 ? n : 1, size));
}

void *mem_grow(void *items, size_t *capacity, size_t n, size_t size) {
    if (n <= *capacity) {
        return items;
    }
    size_t doubled = *capacity < MIN_CAPACITY / 2 ? MIN_CAPACITY : 2 * *capacity;
    *capacity = doubled > n ? doubled : n;
    return mem_resize(items, *capacity, size);
}
