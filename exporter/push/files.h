#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The state file: a copy of the store's pages that survives a reboot. Every page has its own check,
 * so that damage costs the pages it is in and nothing else. */

/* Appends the file's content for `len` bytes of pages. */
void push_state_encode(const void *pages, size_t len, struct buf *out);

/* Finds the pages in a file's content, which is aligned to 8; damaged or missing ones are emptied.
 * -EINVAL: not a state file, or damaged where it describes itself; -EPROTO: of another version. */
int push_state_decode(void *data, size_t len, size_t *ret_offset, size_t *ret_len,
                      size_t *ret_n_damaged, struct error *err);

/* What a store left behind, read from its files. */
struct push_remains {
    struct buf file;
    size_t offset, len; /* of the pages in it */
    size_t n_damaged;
    bool same_boot;
};

void push_remains_finish(struct push_remains *remains);
#define CLEANUP_PUSH_REMAINS CLEANUP(push_remains_finish)

/* Reads a table, or a state file. -ENOENT: there is none; -EMEDIUMTYPE: it never was one of
 * ours; -EPERM: others can have written it; any other failure: of no use, see
 * push_recover_set_aside. */
int push_recover_table(const char *path, struct push_remains *ret_remains, struct error *err);
int push_recover_state(const char *path, struct push_remains *ret_remains, struct error *err);

/* Renames a file that is of no use, so that somebody can look at it, to a name that nothing else
 * has. */
int push_recover_set_aside(const char *path, struct buf *ret_name, struct error *err);

/* Makes sure that there is only one daemon at that table or state file, as long as the descriptor
 * is open: makes its directory if need be. -EBUSY: there is another. */
int push_recover_lock(const char *path, int *ret_fd, struct error *err);
