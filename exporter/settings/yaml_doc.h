#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/settings/problems.h"

/* A YAML document as a tree that remembers where everything stood, so that every mistake can be
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
    size_t n_items;
};

struct yaml_doc;

/* Reads one document. Everything wrong with it is added to `problems` as `file`:line:column: syntax
 * errors, a second document, duplicate keys, keys that are not scalars, aliases, tags, NUL in a
 * text, more than 32 levels or 20,000 nodes. Returns NULL only where there is no tree to go on with
 * (a problem says why); a doubtful item is left out of the tree, so the caller must look at
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
