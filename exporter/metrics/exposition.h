#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "exporter/core/buf.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"

/* From snapshots to pages. Sample lines are the same bytes in every format, so each collector's
 * thread renders them once, into an immutable part; a page is metadata lines and copies of parts.
 */

enum exposition_format {
    EXPOSITION_TEXT,             /* text/plain; version=0.0.4 */
    EXPOSITION_OPENMETRICS,      /* application/openmetrics-text; version=1.0.0 */
    EXPOSITION_OPENMETRICS_0_0_1 /* the same body under its first version number */
};

/* How the client wants names outside [a-zA-Z_:][a-zA-Z0-9_:]* spelled. There are none here: the
 * choice only comes back in the Content-Type. */
enum exposition_escaping {
    EXPOSITION_ESCAPING_NONE, /* none requested */
    EXPOSITION_ESCAPING_ALLOW_UTF8,
    EXPOSITION_ESCAPING_UNDERSCORES,
    EXPOSITION_ESCAPING_DOTS,
    EXPOSITION_ESCAPING_VALUES,
};

struct exposition_choice {
    enum exposition_format format;
    enum exposition_escaping escaping;
};

/* One rendered family; its strings belong to the part. */
struct exposition_block {
    const char *name;
    const char *help;
    const char *unit; /* NULL: none */
    enum metric_type type;
    const struct iovec *pieces; /* sample lines, each ended by a newline and whole in one piece */
    size_t n_pieces;
    size_t len; /* of all pieces */
    size_t n_samples;

    struct iovec own;              /* the piece if there is only one */
    struct exposition_lines *kept; /* owns them; NULL: the part's text does */
};

/* The rendered samples of one collector, families by name. Immutable while shared; counted. */
struct exposition_part;
struct exposition_lines;

/* What a collector's thread keeps for the next rendering: most series stay. Zeroed it is fresh. */
struct exposition_renderer {
    struct exposition_part *last;
};

/* Renders a snapshot; `*ret_duplicates` (may be NULL) counts the samples that are dropped because
 * their series was there already. The caller drops the part with exposition_part_unref. */
struct exposition_part *exposition_render(struct exposition_renderer *renderer,
                                          const struct snapshot *snapshot,
                                          uint64_t *ret_duplicates);
void exposition_renderer_finish(struct exposition_renderer *renderer);

/* The same for a snapshot that is rendered only once. */
struct exposition_part *exposition_part_create(const struct snapshot *snapshot,
                                               uint64_t *ret_duplicates);
struct exposition_part *exposition_part_ref(struct exposition_part *part);
void exposition_part_unref(struct exposition_part *part); /* accepts NULL */
const struct exposition_block *exposition_part_blocks(const struct exposition_part *part,
                                                      size_t *ret_n);

/* A page in pieces: own text and long runs of lines in the parts, which must outlive it. Zeroed it
 * is empty. */
struct exposition_page {
    struct iovec *pieces; /* to be read only */
    size_t n_pieces, cap_pieces;
    size_t len; /* of all pieces */
    struct buf text;
};

/* Writes the page of `parts` (NULL entries are skipped). Families of one name become one block; if
 * their types disagree, or the samples of one could be taken for another's (a gauge x_count beside
 * a histogram x), the earlier part wins; `duplicates[i]` (may be NULL) counts the samples that part
 * i loses. A gauge x_created beside a counter or histogram x, which OpenMetrics forbids, is only in
 * the text format and not counted. Free it with exposition_page_finish. */
void exposition_page_write(struct exposition_page *page, struct exposition_choice choice,
                           struct exposition_part *const *parts, size_t n_parts,
                           uint64_t *duplicates);
void exposition_page_finish(struct exposition_page *page);
#define CLEANUP_EXPOSITION_PAGE CLEANUP(exposition_page_finish)

/* Appends the sample lines of one family that several parts have: `blocks[i]` is the block of part
 * i, or NULL. The type of the first counts. Of a series in several parts the earliest stays; a
 * histogram or summary is one thing, so all its samples come from one part. The samples that part i
 * loses are added to `dropped[i]`. */
void exposition_merge(struct buf *out, const struct exposition_block *const *blocks,
                      size_t n_blocks, uint64_t *dropped);

/* The Content-Type of a page written with that choice. Static. */
const char *exposition_content_type(struct exposition_choice choice);

/* Chooses the format for an Accept header (NULL: none): the highest q that we can write, else text.
 */
struct exposition_choice exposition_negotiate(const char *accept);

/* Whether an Accept-Encoding header (NULL: none) allows gzip. */
bool exposition_accepts_gzip(const char *accept_encoding);
