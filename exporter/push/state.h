#pragma once

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
