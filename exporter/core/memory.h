#pragma once

#include <stddef.h>

/* If the system has no memory, these calls end the process with one line on standard error. Sizes
 * that a peer chooses are checked against their limits before. */

/* `n` bytes; the caller frees them. */
void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull));

/* `n` zeroed elements of `size` bytes. */
void *mem_zalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* A copy of `n` bytes. */
void *mem_dup(const void *data, size_t n) __attribute__((malloc, returns_nonnull));

/* A copy of a string, or of its first `n` bytes. */
char *mem_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *mem_strndup(const char *text, size_t n) __attribute__((malloc, returns_nonnull));

/* Resizes an array, which may be NULL, to `n` elements of `size` bytes. */
void *mem_resize(void *items, size_t n, size_t size) __attribute__((returns_nonnull));

/* The same for at least `n` elements, by doubling; `*capacity` is how many there is room for. */
void *mem_grow(void *items, size_t *capacity, size_t n, size_t size);

/* Makes room for at least `n` elements: ARRAY_GROW(&list->items, &list->capacity, list->n + 1). */
#define ARRAY_GROW(items, capacity, n)                                                             \
    ({                                                                                             \
        size_t needed_ = (n);                                                                      \
        if (needed_ > *(capacity)) {                                                               \
            *(items) = mem_grow(*(items), (capacity), needed_, sizeof(**(items)));                 \
        }                                                                                          \
    })

/* Ends the process as above. */
_Noreturn void mem_out(void);
