#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/metrics/snapshot.h"

/* Finds the samples of a family that are the same series: equal suffix, equal labels. Borrows the
 * samples. A zeroed struct is an empty set. */
struct series_set {
    const struct sample **slots; /* of a hash table; NULL is free */
    size_t mask;
    size_t cap;
};

/* Empties the set and makes room for `n` series; false when memory is out. */
bool series_set_prepare(struct series_set *set, size_t n);

/* Adds a series; false if it was there before. */
bool series_set_add(struct series_set *set, const struct sample *sample);

void series_set_finish(struct series_set *set);
