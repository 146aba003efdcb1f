#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"

/* What a page in the text format says: families, and samples in the order of their lines. The
 * strings lie in the text that was parsed. A zeroed struct is an empty document; one document is
 * best used for many pages, as it keeps its memory. */

struct exposition_family {
    struct metric_desc desc; /* help is NULL where no HELP line gave one */
    size_t name_len;
    bool typed; /* by a TYPE line, or because samples came without one */
    size_t n_samples;
};

struct exposition_sample {
    uint32_t family;
    uint32_t n_labels;
    size_t first_label;
    const char *suffix; /* as in struct sample: "", "_bucket", "_sum", "_count" */
    double value;
    bool has_timestamp;
    int64_t timestamp_ms;
    uint64_t hash;
};

/* Slots of the upper half of a hash and, below it, 1 + the index of a family or sample; 0 is free.
 */
struct exposition_table {
    uint64_t *slots;
    size_t n_slots; /* in use for this document; a power of two */
    size_t cap;
};

struct exposition_doc {
    struct exposition_family *families;
    size_t n_families, cap_families;
    struct exposition_sample *samples;
    size_t n_samples, cap_samples;
    struct label *labels; /* of all samples: sorted by name, none of them empty */
    size_t n_labels, cap_labels;
    struct exposition_table family_table, sample_table;
    uint64_t seed;
};

/* A label as it stands in the text: not yet ended by NUL. */
struct exposition_label {
    char *name, *value;
    size_t name_len, value_len;
};

/* Frees what the document holds and leaves it empty. */
void exposition_doc_finish(struct exposition_doc *doc);
#define CLEANUP_EXPOSITION_DOC CLEANUP(exposition_doc_finish)

/* Empties it for the next page but keeps its memory. */
void exposition_doc_reset(struct exposition_doc *doc);

/* Makes room for what a text of that length can say, but not for more than `max_bytes`, so that
 * nothing moves while it is read. What is not used of it is never touched. False: no memory. */
bool exposition_doc_reserve(struct exposition_doc *doc, size_t text_len, size_t max_bytes);

/* Bytes that it takes, those of the text left out. */
size_t exposition_doc_size(const struct exposition_doc *doc);

/* Frees what only reading needs: nothing can be found in or added to it until the next reset. */
void exposition_doc_forget_index(struct exposition_doc *doc);

/* The labels of a sample, `sample->n_labels` of them. */
static inline const struct label *exposition_doc_labels(const struct exposition_doc *doc,
                                                        const struct exposition_sample *sample) {
    return doc->labels + sample->first_label;
}

/* The value of one label; a label that is not there is an empty one. */
const char *exposition_doc_label(const struct exposition_doc *doc,
                                 const struct exposition_sample *sample, const char *name);

/* The family of that name, or NULL. */
struct exposition_family *exposition_doc_find(const struct exposition_doc *doc, const char *name,
                                              size_t len);

/* Adds a family that is not there yet; NULL when memory is out. Pointers to others become stale. */
struct exposition_family *exposition_doc_add_family(struct exposition_doc *doc, const char *name,
                                                    size_t len);

/* Adds a sample with labels sorted by name, and ends their strings. -EEXIST where the same series
 * is there already, -ENOMEM. */
int exposition_doc_add_sample(struct exposition_doc *doc, const struct exposition_sample *sample,
                              const struct exposition_label *labels, size_t n_labels);
