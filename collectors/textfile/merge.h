#pragma once

#include <stddef.h>

#include "collectors/textfile/file.h"
#include "exporter/core/error.h"
#include "exporter/metrics/snapshot.h"

/* The families of several files, those of one name together. It borrows from the files. A zeroed
 * struct is empty. */
struct textfile_merge {
    struct textfile_member *members; /* sorted by name, then by file */
    size_t n_members;
    struct textfile_group *groups;
    size_t n_groups;
    size_t n_conflicts;          /* families left out because an earlier file gives another type */
    struct error first_conflict; /* in words */
};

/* Frees what it holds and leaves it empty. */
void textfile_merge_finish(struct textfile_merge *merge);

/* Merges anew. Of several help texts the first is taken; a family without a type goes with counters
 * and gauges of its name. -ENOMEM leaves it empty. */
int textfile_merge_update(struct textfile_merge *merge, struct textfile_file *const *files,
                          size_t n_files, struct error *err);

/* Adds all families; valid until the next change. */
void textfile_merge_add(const struct textfile_merge *merge, struct snapshot *out);
