#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/push/entry.h"

/* Entries in a mapped file on tmpfs: whatever instruction the process is killed at, every update
 * that was over is in the file, and none by half. Space is allocated before it is used, so that a
 * full disk is an error and not a signal. One thread writes. Without a path it is plain memory.
 *
 * The file is always a new one, which only root and the daemon's user can open, so the sizes of
 * entries are read back from it unchecked. The file of a table that ended is not mapped: it is read
 * to memory, and each entry is checked there (push_pages_scan, push_load.c).
 *
 * A file that another process cuts off under us kills us by SIGBUS, as does a failing medium: there
 * is nothing to go on with, and a supervisor starts us again. */
struct push_table;

/* Makes an empty table of at most `max_bytes`, beside `path` until it is published. `path` NULL:
 * in memory. */
int push_table_create(const char *path, size_t max_bytes, struct push_table **ret_table,
                      struct error *err);

/* Leaves the file where it is if it was published. Accepts NULL. */
void push_table_destroy(struct push_table *table);

/* Gives back some of the memory of a table that is not used any more, as all of it at once takes
 * long: to be called until it returns false, before push_table_destroy. */
bool push_table_release(struct push_table *table, size_t n_bytes);

/* Puts the table in the place of what is at its path. */
int push_table_publish(struct push_table *table, struct error *err);

struct push_entry_spec {
    enum push_entry_type type;
    uint32_t id, owner, detail;
    const void *words; /* NULL: zeroes */
    size_t n_words;
    struct push_text {
        const void *data;
        size_t len;
    } key[2];       /* one behind the other */
    size_t reserve; /* bytes of the table that it must leave to others */
};

/* Bytes that such an entry has. */
size_t push_table_size(const struct push_entry_spec *spec);

/* Bytes that it takes from the table if all were like it, as none crosses a page. */
static inline size_t push_table_cost(size_t size) {
    return PUSH_PAGE_SIZE / (PUSH_PAGE_SIZE / (size < PUSH_PAGE_SIZE ? size : PUSH_PAGE_SIZE));
}

/* Adds an entry that does not count before push_table_commit, and stays where it is as long as the
 * table lives. -ENOSPC: no room; -E2BIG: it does not fit a page. */
int push_table_add(struct push_table *table, const struct push_entry_spec *spec,
                   struct push_entry **ret_entry, struct error *err);

/* Makes all entries count that were added since the last commit, or drops them. */
void push_table_commit(struct push_table *table);
void push_table_take_back(struct push_table *table);

/* Removes an entry. Without a table (NULL) it does nothing: the store ends, the entries stay. */
void push_table_kill(struct push_table *table, struct push_entry *entry);

enum { PUSH_TABLE_MAX_CHANGES = 512 };

struct push_change {
    double *at; /* in the words of an entry */
    double value;
};

/* Changes words, all of them or, if the process dies on the way, none. */
void push_table_write(struct push_table *table, const struct push_change *changes, size_t n);

/* The pages with all entries, for a copy. */
const void *push_table_pages(const struct push_table *table, size_t *ret_len);

/* Bytes that entries take up, with and without those of dead ones. */
size_t push_table_used(const struct push_table *table);
size_t push_table_dead(const struct push_table *table);
size_t push_table_room(const struct push_table *table); /* behind all entries */
bool push_table_is_file(const struct push_table *table);
const char *push_table_path(const struct push_table *table); /* NULL: in memory */

/* Of the file of a table that ended, whoever ended it: where its pages are. Finishes what was under
 * way, in `data` itself. -EINVAL: not a table; -EPROTO: of another version. */
int push_table_recover(void *data, size_t len, size_t *ret_offset, bool *ret_same_boot,
                       struct error *err);
