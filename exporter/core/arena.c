#include "exporter/core/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

/* The address sanitizer watches over pieces as over memory of malloc, with a gap behind each. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GAP 16
#endif
#endif
#ifndef GAP
#define GAP 0
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

enum { BLOCK_MIN = 4096, ALIGN = 8 };

_Static_assert(ALIGN >= _Alignof(void *) && ALIGN >= _Alignof(double), "pieces hold both");

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    _Alignas(max_align_t) char data[];
};

static struct arena_block *block_create(size_t size) {
    struct arena_block *block = mem_alloc(sizeof(*block) + size);
    *block = (struct arena_block){.size = size};
    ASAN_POISON_MEMORY_REGION(block->data, size);
    return block;
}

/* The next block that has room for `n` bytes, kept from before or made. */
static struct arena_block *advance(struct arena *arena, size_t n) {
    struct arena_block **link = arena->current != NULL ? &arena->current->next : &arena->first;
    while (*link != NULL && (*link)->size < n) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        size_t twice = arena->current != NULL ? 2 * arena->current->size : BLOCK_MIN;
        *link = block_create(n > twice ? n : twice);
    }
    arena->current = *link;
    return *link;
}

bool arena_charge(struct arena *arena, size_t n) {
    if (arena->max > 0 && n > arena->max - arena->taken) {
        return false;
    }
    arena->taken += n;
    return true;
}

int arena_fail(const struct arena *arena, struct error *err) {
    return error_set(err, -EFBIG, "more than %zu bytes of memory are needed", arena->max);
}

void *arena_take(struct arena *arena, size_t n) {
    if (n > SIZE_MAX / 4) {
        mem_out();
    }
    size_t room = (n + GAP + ALIGN - 1) / ALIGN * ALIGN;
    if (!arena_charge(arena, room)) {
        return NULL;
    }
    struct arena_block *block = arena->current;
    if (block == NULL || block->size - block->used < room) {
        block = advance(arena, room);
    }
    void *taken = block->data + block->used;
    block->used += room;
    ASAN_UNPOISON_MEMORY_REGION(taken, n);
    return taken;
}

void *arena_copy(struct arena *arena, const void *data, size_t n) {
    void *copy = arena_take(arena, n);
    return copy != NULL && n > 0 ? memcpy(copy, data, n) : copy;
}

void arena_reset(struct arena *arena, size_t max_kept) {
    size_t kept = 0;
    struct arena_block **link = &arena->first;
    while (*link != NULL) {
        struct arena_block *block = *link;
        if (kept + block->size > max_kept) {
            *link = block->next;
            free(block);
            continue;
        }
        kept += block->size;
        block->used = 0;
        ASAN_POISON_MEMORY_REGION(block->data, block->size);
        link = &block->next;
    }
    arena->current = arena->first;
    arena->taken = 0;
}

void arena_finish(struct arena *arena) {
    arena_reset(arena, 0);
}
