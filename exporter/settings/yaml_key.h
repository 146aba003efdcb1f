#pragma once

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/settings/option.h"
#include "exporter/settings/yaml_doc.h"

/* Reads mappings of a YAML tree into structs, by tables: each mistake becomes a problem that says
 * where, which key and what was expected, and reading goes on. */

struct yaml_reader {
    const char *file;
    struct problems *problems;
    struct arena *arena;
    struct buf path; /* of the key being read: "targets[0].timeout" */
};

/* One key that a mapping may have. `read` fills what lies `offset` bytes into the struct. */
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
