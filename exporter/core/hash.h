#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a folded to 32 bits: for tables of what we rendered ourselves. */
static inline uint32_t hash_bytes(const void *data, size_t n) {
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return (uint32_t)(hash ^ hash >> 32);
}
