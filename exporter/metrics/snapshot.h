#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/hash.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"

/* The result of one collection: families and their samples. It borrows the descriptions and labels
 * of the collector, which must live until its next collection; the same thread renders it before.
 */

struct sample {
    const struct labels *labels; /* NULL: none */
    const char *suffix;          /* "", or "_bucket", "_sum", "_count" of a histogram or summary */
    double value;
};

struct family {
    const struct metric_desc *desc;
    struct sample *samples;
    size_t n_samples;
    size_t cap_samples;
};

struct snapshot {
    struct family *families;
    size_t n_families;
    size_t cap_families;
    struct hash_index index; /* by description: the number of its family, from 1 */
    size_t last; /* the family that got the previous sample: the next is mostly the same */
};

/* Frees what the snapshot holds and leaves it empty. A zeroed struct is an empty snapshot. */
void snapshot_finish(struct snapshot *snapshot);
#define CLEANUP_SNAPSHOT CLEANUP(snapshot_finish)

/* Empties it for the next collection but keeps its memory. */
void snapshot_reset(struct snapshot *snapshot);

/* The two calls below if the previous sample had another family, or the family is full. */
void snapshot_add_elsewhere(struct snapshot *out, const struct metric_desc *desc,
                            const char *suffix, const struct labels *labels, double value);

/* Adds one sample of a histogram or summary; `suffix` is a literal as in struct sample. */
static inline void snapshot_add_suffixed(struct snapshot *out, const struct metric_desc *desc,
                                         const char *suffix, const struct labels *labels,
                                         double value) {
    struct family *family = out->n_families > 0 ? &out->families[out->last] : NULL;
    if (family == NULL || family->desc != desc || family->n_samples == family->cap_samples) {
        snapshot_add_elsewhere(out, desc, suffix, labels, value);
        return;
    }
    family->samples[family->n_samples++] = (struct sample){labels, suffix, value};
}

/* Adds one sample; a value that could not be read is simply not added. */
static inline void snapshot_add(struct snapshot *out, const struct metric_desc *desc,
                                const struct labels *labels, double value) {
    snapshot_add_suffixed(out, desc, "", labels, value);
}

/* Adds many samples to the last family if that is the one of `desc`, else to a new one without a
 * search: for collectors with thousands of families. Without samples only HELP and TYPE are shown.
 */
void snapshot_append(struct snapshot *out, const struct metric_desc *desc,
                     const struct sample *samples, size_t n_samples);

size_t snapshot_n_samples(const struct snapshot *snapshot);
