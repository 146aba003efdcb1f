#pragma once

#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/core/hash.h"
#include "placement/client/promql.h"

/* The series of an answer, by what tells which node they are of; it borrows the answer. */
struct place_index {
    struct hash_index hashes;
    struct place_index_entry *entries;
    size_t n_entries;
};

/* Takes the series that have all of the labels `match` into an empty index. Finish it in any case.
 */
int place_index_fill(struct place_index *index, const struct promql_answer *answer,
                     const struct label *match, size_t n_match, struct error *err);
void place_index_finish(struct place_index *index);

/* The value that belongs to the node that `device` names; NAN where there is none, or where several
 * could be meant. */
double place_index_value(const struct place_index *index, const struct promql_series *device,
                         bool *ret_twice);
