#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"

/* The content of a page in the text format: families, and samples in the order of their lines. The
 * strings lie in the text. A zeroed struct is empty; a reused document keeps its memory. */

struct exposition_family {
    struct metric_desc desc; /* help is NULL if no HELP line gave one */
    size_t name_len;
    bool typed; /* by a TYPE line, or because samples came without one */
    size_t n_samples;
    uint64_t hash; /* of the name */
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

/* Slots: the upper half of a hash, and below it 1 + the index of a family or sample; 0: free. */
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

/* The limits of a page. */
struct exposition_limits {
    size_t max_families;
    size_t max_samples;
    size_t max_labels; /* of one sample */
    size_t max_name_len;
    size_t max_value_len; /* of a label */
    size_t max_bytes;     /* that the document takes; 0: no limit */
    bool no_timestamps;   /* reject them: a page that is served again must not show the past */
};

/* Parses a page in the text format 0.0.4, as strictly as Prometheus's own library, and more so if
 * that would lose data: a series given twice, a histogram's sample without `le` and a NUL byte are
 * errors too. Works in place: `text` (no NUL needed behind it) is overwritten, and `doc`, emptied
 * first, points into it. On failure `doc` is empty; -EINVAL and, for a series given twice, -EEXIST
 * name line and column (in bytes, both from 1), -E2BIG is a limit, -EFBIG that of memory. */
int exposition_parse(char *text, size_t len, const struct exposition_limits *limits,
                     struct exposition_doc *doc, struct error *err);

/* Frees what the document holds and leaves it empty. */
void exposition_doc_finish(struct exposition_doc *doc);
#define CLEANUP_EXPOSITION_DOC CLEANUP(exposition_doc_finish)

/* Empties it for the next page but keeps its memory. */
void exposition_doc_reset(struct exposition_doc *doc);

/* Its size in bytes, without the text. */
size_t exposition_doc_size(const struct exposition_doc *doc);

/* The labels of a sample, `sample->n_labels` of them. */
static inline const struct label *exposition_doc_labels(const struct exposition_doc *doc,
                                                        const struct exposition_sample *sample) {
    return doc->labels + sample->first_label;
}

/* The value of one label; an absent label is an empty one. */
const char *exposition_doc_label(const struct exposition_doc *doc,
                                 const struct exposition_sample *sample, const char *name);

/* The family of that name, or NULL. */
struct exposition_family *exposition_doc_find(const struct exposition_doc *doc, const char *name,
                                              size_t len);
