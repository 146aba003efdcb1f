#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "exporter/metrics/snapshot.h"

/* The sample lines of a family with many series, kept from one rendering to the next: where only
 * values have changed, only these are written again. Counted. */
struct exposition_lines;

/* Renders all samples of a family. The caller drops it with exposition_lines_unref. NULL when
 * memory is out. */
struct exposition_lines *exposition_lines_create(const struct family *family);

/* Brings the lines up to date, if the family still has the same series in the same order and nobody
 * else holds what would have to change. Where it returns false they are of no more use to the
 * caller. */
bool exposition_lines_update(struct exposition_lines *lines, const struct family *family);

struct exposition_lines *exposition_lines_ref(struct exposition_lines *lines);
void exposition_lines_unref(struct exposition_lines *lines); /* accepts NULL */

/* The text: whole lines in each piece. */
const struct iovec *exposition_lines_pieces(const struct exposition_lines *lines, size_t *ret_n);
size_t exposition_lines_len(const struct exposition_lines *lines);

/* The most that one line can take, but for the family's name. */
size_t exposition_line_room(const struct sample *sample);

/* Writes what stands on a line before the value, where there is room for the line; returns its
 * end. */
char *exposition_line_begin(char *to, const char *name, size_t name_len,
                            const struct sample *sample);
