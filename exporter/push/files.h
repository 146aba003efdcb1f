#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The state file: a copy of the store's pages that survives a reboot. Each page has its own check,
 * so that damage costs no more than the pages it is in. */

/* Appends the file's content for `len` bytes of pages. */
void push_state_encode(const void *pages, size_t len, struct buf *out);

/* Finds the pages in a file's content, which is aligned to 8; damaged or missing ones are emptied.
 * -EINVAL: not a state file, or its header is damaged; -EPROTO: of another version. */
int push_state_decode(void *data, size_t len, size_t *ret_offset, size_t *ret_len,
                      size_t *ret_n_damaged, struct error *err);

/* A file of an earlier process. */
struct push_remains {
    struct buf file;
    size_t offset, len; /* of the pages in it */
    size_t n_damaged;
    bool same_boot;
};

void push_remains_finish(struct push_remains *remains);
#define CLEANUP_PUSH_REMAINS CLEANUP(push_remains_finish)

enum push_file { PUSH_FILE_TABLE, PUSH_FILE_STATE };

/* Reads a file. -ENOENT: there is none; -EMEDIUMTYPE: of another kind; -EPERM: others may write it;
 * any other failure: damaged, see push_recover_set_aside. */
int push_recover(enum push_file kind, const char *path, struct push_remains *ret_remains,
                 struct error *err);

/* Renames a damaged file to an unused name, so that it can be examined. */
int push_recover_set_aside(const char *path, struct buf *ret_name, struct error *err);

/* Locks a table or state file for one daemon, as long as the descriptor is open. Makes its
 * directory if needed. -EBUSY: another daemon has it. */
int push_recover_lock(const char *path, int *ret_fd, struct error *err);
