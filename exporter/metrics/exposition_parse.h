#pragma once

#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/metrics/exposition_doc.h"

/* What a page may contain. */
struct exposition_limits {
    size_t max_families;
    size_t max_samples;
    size_t max_labels; /* of one sample */
    size_t max_name_len;
    size_t max_value_len; /* of a label */
    size_t max_bytes;     /* that the document takes; 0: no limit */
    bool no_timestamps; /* refuse them: what is served time and again must not freeze in the past */
};

/* Reads a page in the text format 0.0.4, as strictly as Prometheus's own library, and more so where
 * that would lose data: a series given twice, a histogram's sample without `le` and a NUL byte are
 * errors too. Works in place: `text` (no NUL needed behind it) is overwritten, and `doc`, emptied
 * first, points into it. On failure `doc` is empty; -EINVAL and, of a series given twice, -EEXIST
 * name line and column (in bytes, both from 1), -E2BIG is a limit, -EFBIG that of memory, -ENOMEM.
 */
int exposition_parse(char *text, size_t len, const struct exposition_limits *limits,
                     struct exposition_doc *doc, struct error *err);
