#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* The entries of the push store in a mapped file on tmpfs. The process may be killed at any
 * instruction: each complete update is in the file, and none in part. Space is allocated before it
 * is used, so that a full disk is an error and not a signal. One thread writes. Without a path the
 * table is plain memory.
 *
 * The file is always a new one, which only root and the daemon's user can open, so the sizes of
 * its entries are trusted. The file of an earlier process is not mapped: it is read to memory, and
 * each entry is checked there (push_pages_scan, load.c).
 *
 * If another process truncates the file, or the medium fails, SIGBUS kills the daemon, and a
 * supervisor starts it again. */

/* No entry crosses a page, so that damage to one costs no more than the rest of its page. Numbers
 * are in the machine's byte order. */
enum { PUSH_PAGE_SIZE = 4096 };

enum push_entry_type {
    PUSH_ENTRY_NONE,
    PUSH_ENTRY_OWNER,  /* words: see owner.c. key: labels */
    PUSH_ENTRY_FAMILY, /* detail: type. key: name */
    PUSH_ENTRY_HELP,   /* detail: family. key: text */
    PUSH_ENTRY_SERIES, /* detail: family. words: time to live, values. key: bounds, labels */
    PUSH_ENTRY_TOTAL,  /* detail: series. words: last figures, rank. key: start */
    PUSH_ENTRY_NOTE,   /* key: its key, its text */
    PUSH_ENTRY_MEAN,   /* detail: series, a counter that is a rate */
};

/* Flags of entries. */
enum {
    PUSH_FAMILY_SHORT_NAME = 1,
    PUSH_FAMILY_OF_GROUP = 2,
    PUSH_OWNER_GROUP = 1,
};

struct push_entry {
    uint32_t
        commit; /* push_entry_check, PUSH_ENTRY_FREE or …_TAKEN; 0: the page ends. Stored last */
    uint16_t size; /* of all, a multiple of 8 */
    uint8_t type;
    uint8_t flags;
    uint16_t n_words;
    uint16_t key_len;
    uint32_t owner;   /* id of the owner's entry */
    uint32_t detail;  /* number, or id of another entry */
    uint32_t link;    /* push_entry_link: another entry may have that place by now */
    uint64_t words[]; /* not covered by the check; then the key */
};

enum { PUSH_ENTRY_FREE = 1, PUSH_ENTRY_TAKEN = 2 /* but not committed yet */ };

static inline double *push_entry_values(struct push_entry *entry) {
    return (double *)(void *)entry->words;
}

static inline char *push_entry_key(struct push_entry *entry) {
    return (char *)(entry->words + entry->n_words);
}

/* The valid `commit`: a checksum of the key and all that never changes. */
uint32_t push_entry_check(const struct push_entry *entry);

/* The valid `link`: from the entries in `len` bytes of pages that this one refers to. */
uint32_t push_entry_link(const struct push_entry *entry, const void *pages, size_t len);

/* Calls `visit` for each entry in `len` bytes of pages, which must be aligned to 8. Returns the
 * number of damaged pages, of which the rest is skipped. */
size_t push_pages_scan(const void *pages, size_t len,
                       void (*visit)(const struct push_entry *entry, uint32_t id, void *context),
                       void *context);

struct push_table;

/* Makes an empty table of at most `max_bytes`. Its file is beside `path` until it is published.
 * `path` NULL: in memory. */
int push_table_create(const char *path, size_t max_bytes, struct push_table **ret_table,
                      struct error *err);

/* Removes the file unless it was published. Accepts NULL. */
void push_table_destroy(struct push_table *table);

/* Renames the table to its path, and replaces the file there. */
int push_table_publish(struct push_table *table, struct error *err);

struct push_entry_spec {
    enum push_entry_type type;
    uint8_t flags;
    uint32_t owner, detail;
    size_t n_words; /* zeroes */
    struct push_text {
        const void *data;
        size_t len;
    } key[2]; /* one after the other */
};

/* Bytes of such an entry. */
size_t push_table_size(const struct push_entry_spec *spec);

/* Bytes that an entry of that size takes with its part of the unused end of a page. */
static inline size_t push_table_cost(size_t size) {
    return PUSH_PAGE_SIZE / (PUSH_PAGE_SIZE / (size < PUSH_PAGE_SIZE ? size : PUSH_PAGE_SIZE));
}

/* Adds an entry, which never moves. It is valid from push_table_commit on; commit the entries that
 * it refers to first. -ENOSPC: no room; -E2BIG: it does not fit a page. */
int push_table_add(struct push_table *table, const struct push_entry_spec *spec,
                   struct push_entry **ret_entry, struct error *err);
void push_table_commit(struct push_table *table, struct push_entry *entry);

/* Removes an entry, committed or not. Accepts a NULL entry. `table` NULL: does nothing, as the
 * entries of a store that is destroyed stay. */
void push_table_remove(struct push_table *table, struct push_entry *entry);

/* The number by which other entries refer to it. */
uint32_t push_table_id(const struct push_table *table, const struct push_entry *entry);

enum { PUSH_TABLE_MAX_CHANGES = 520 };

struct push_change {
    double *at; /* in the words of an entry */
    double value;
};

/* Changes all words or, if the process is killed meanwhile, none. */
void push_table_write(struct push_table *table, const struct push_change *changes, size_t n);

/* The pages with all entries, for a copy. */
const void *push_table_pages(const struct push_table *table, size_t *ret_len);

size_t push_table_used(const struct push_table *table); /* bytes of entries */
bool push_table_is_file(const struct push_table *table);

/* Finds the pages in the file of an earlier table, and completes interrupted changes in `data`.
 * -EINVAL: not a table; -EPROTO: of another version. */
int push_table_recover(void *data, size_t len, size_t *ret_offset, bool *ret_same_boot,
                       struct error *err);
