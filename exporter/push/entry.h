#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the push store keeps beyond its own life, as it lies in memory and in files: entries in
 * pages. No entry crosses a page, so that a damaged one costs the rest of its page at most. All is
 * in the machine's byte order. */

enum { PUSH_PAGE_SIZE = 4096 };

enum push_entry_type {
    PUSH_ENTRY_NONE,
    PUSH_ENTRY_OWNER,  /* words: time of the last push, of the last refusal. key: group, labels */
    PUSH_ENTRY_FAMILY, /* detail: type; owner: PUSH_FAMILY_…. key: name, help */
    PUSH_ENTRY_SERIES, /* detail: family. words: time to live, values. key: bounds, labels */
    PUSH_ENTRY_TOTAL,  /* detail: series. words: the last figures. key: number of the start */
    PUSH_ENTRY_NOTE,   /* key: its key, its text */
};

enum { PUSH_FAMILY_PLAIN = 1 /* counters keep their names */ };

struct push_entry {
    uint32_t commit; /* push_entry_check; 0: not there yet. Stored last */
    uint16_t size;   /* of all, a multiple of 8 */
    uint8_t type;
    uint8_t unused;
    uint16_t n_words;
    uint16_t key_len;
    uint32_t id; /* its own number; 0: none */
    uint32_t owner;
    uint32_t detail;
    uint32_t dead; /* not 0: removed. From here on the check covers only the key */
    uint32_t unused_too;
    uint64_t words[]; /* then the key */
};

static inline double *push_entry_values(struct push_entry *entry) {
    return (double *)(void *)entry->words;
}

static inline char *push_entry_key(struct push_entry *entry) {
    return (char *)(entry->words + entry->n_words);
}

/* What `commit` must be: of the key and all that never changes. Never 0. */
uint32_t push_entry_check(const struct push_entry *entry);

/* Calls `visit` for each living entry of `len` bytes of pages, which must be aligned to 8. Returns
 * how many pages are damaged: what follows the damage in them is left out. */
size_t push_pages_scan(const void *pages, size_t len,
                       void (*visit)(const struct push_entry *entry, void *context), void *context);
