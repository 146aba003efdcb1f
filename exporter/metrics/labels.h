#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

/* One label set, rendered and escaped once (`cpu="0",mode="idle"`) and kept by its collector while
 * the series lives; a scrape only copies it. */
struct labels {
    uint64_t id;   /* unique: a later set at the same address has another one */
    uint32_t hash; /* of text; equal sets have equal text, see labels_create */
    uint32_t len;
    char text[];
};

struct label {
    const char *name;
    const char *value;
};

/* The value of the label of that name, or NULL. */
const char *label_find(const struct label *labels, size_t n, const char *name);

/* Inserts a label into a list with room that is sorted by name; false: it has that name already. */
bool label_insert(struct label *labels, size_t *n, struct label label);

/* An empty value that is rendered: a scraper that honours labels then does not add its own. */
extern const char label_empty[];

/* Renders `n` labels in the given order; one series must always use the same order. Values are
 * escaped and invalid UTF-8 in them becomes U+FFFD. Labels with an empty value (but label_empty)
 * are left out: they mean the same as none. The caller frees the set with labels_destroy. */
struct labels *labels_create(const struct label *labels, size_t n);

/* Appends a set as labels_create makes it, for many sets in one block, but without a NUL. Returns
 * the struct's offset in `out`. */
size_t labels_append(struct buf *out, const struct label *labels, size_t n);

/* labels_render("cpu", cpu, "mode", mode): the same from names and values. */
#define labels_render(...)                                                                         \
    labels_create((const struct label *)(const char *const[]){__VA_ARGS__},                        \
                  sizeof((const char *const[]){__VA_ARGS__}) / (sizeof(struct label)))

/* A copy of `base` (may be NULL) with one more label behind it; for `le` and `quantile`. */
struct labels *labels_with(const struct labels *base, const char *name, const char *value);

/* Accepts NULL. */
void labels_destroy(struct labels *labels);

static inline void labels_cleanup(struct labels **labels) {
    labels_destroy(*labels);
}
#define CLEANUP_LABELS CLEANUP(labels_cleanup)

/* The id of the last set of any thread: while it stays the same, so does the set at an address. */
uint64_t labels_last_id(void);

/* Whether two sets are the same; NULL is the empty set. */
bool labels_equal(const struct labels *a, const struct labels *b);
