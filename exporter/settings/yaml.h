#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/option.h"
#include "exporter/settings/problems.h"

/* ---- documents ---- */

/* A YAML document as a tree that remembers the place of everything, so that every mistake can be
 * reported with line and column (both from 1). */

enum yaml_kind { YAML_KIND_SCALAR, YAML_KIND_SEQUENCE, YAML_KIND_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    size_t line, column;
    const char *text; /* scalar: its value */
    bool plain;       /* scalar: written without quotes, so null, ~ and "" mean nothing given */
    const char *key;  /* inside a mapping: its key, else NULL */
    size_t key_line, key_column;
    struct yaml_node *items; /* sequence: its items; mapping: its values */
    size_t n_items, cap_items;
};

struct yaml_doc;

/* Reads one document. Everything wrong with it is added to `problems` as `file`:line:column: syntax
 * errors, a second document, duplicate keys, keys that are not scalars, aliases, tags, NUL in a
 * text, more than 32 levels or 20,000 nodes. Returns NULL only if there is no tree to go on with
 * (a problem has the reason); a doubtful item is left out of the tree, so the caller must check
 * `problems` too. An empty text is an empty mapping. The caller destroys it. */
struct yaml_doc *yaml_doc_parse(const char *file, const char *text, size_t len,
                                struct problems *problems);
void yaml_doc_destroy(struct yaml_doc *doc); /* accepts NULL */

static inline void yaml_doc_cleanup(struct yaml_doc **doc) {
    yaml_doc_destroy(*doc);
}
#define CLEANUP_YAML_DOC CLEANUP(yaml_doc_cleanup)

const struct yaml_node *yaml_doc_root(const struct yaml_doc *doc);

/* The value under `key` of a mapping, or NULL. */
const struct yaml_node *yaml_node_get(const struct yaml_node *mapping, const char *key);

/* Whether nothing was given: an empty value, null or ~, without quotes. */
bool yaml_node_is_null(const struct yaml_node *node);

/* "a mapping", "a list", "a value" or "nothing": for messages. */
const char *yaml_node_kind_name(const struct yaml_node *node);

/* ---- keys ---- */

/* Reads mappings of a YAML tree into structs, by tables: each mistake becomes a problem with
 * its place, the key and what was expected, and reading goes on. */

struct yaml_reader {
    const char *file;
    struct problems *problems;
    struct arena *arena;
    struct buf path; /* of the key being read: "targets[0].timeout" */
};

/* One key that a mapping may have. `read` fills the member at `offset` of the struct. */
struct yaml_key {
    const char *name;
    void (*read)(struct yaml_reader *reader, const struct yaml_key *key,
                 const struct yaml_node *node, void *to);
    size_t offset;
    struct option option; /* of numbers: what they must look like */
};

#define YAML_KEY_DURATION(low, high)                                                               \
    { .type = OPTION_DURATION, .min = (low), .max = (high) }
#define YAML_KEY_TEXT(key, type, field)                                                            \
    {                                                                                              \
        key, yaml_key_text, offsetof(type, field), {                                               \
            0                                                                                      \
        }                                                                                          \
    }

/* Adds a problem at a node, with the key in front. */
void yaml_key_complain(struct yaml_reader *reader, const struct yaml_node *node, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Reads all keys of a mapping; unknown ones are problems. Nothing given is an empty mapping. The
 * table ends at a row without a name. */
void yaml_key_read_all(struct yaml_reader *reader, const struct yaml_key *keys,
                       const struct yaml_node *node, void *to);

/* Calls `read` with each item of a list, the key being followed by its place: "targets[0]". */
void yaml_key_each(struct yaml_reader *reader, const struct yaml_node *node,
                   void (*read)(struct yaml_reader *reader, const struct yaml_node *item,
                                size_t index, void *to),
                   void *to);

/* Readers of one value. A text: const char *. */
void yaml_key_text(struct yaml_reader *reader, const struct yaml_key *key,
                   const struct yaml_node *node, void *to);
/* By the key's option: int64_t. */
void yaml_key_number(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to);

/* The text of a scalar, or NULL with a problem. */
const char *yaml_key_scalar(struct yaml_reader *reader, const struct yaml_node *node);
