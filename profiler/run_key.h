#pragma once

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/option.h"
#include "exporter/core/yaml_doc.h"

/* Reads mappings of a YAML tree into structs, by tables: each mistake becomes a problem that says
 * where, which key and what was expected, and reading goes on. */

struct run_reader {
    const char *file;
    struct problems *problems;
    struct arena *arena;
    struct buf path; /* of the key being read: "profiling.targets[0].timeout" */
};

/* One key that a mapping may have. `read` fills what lies `offset` bytes into the struct. */
struct run_key {
    const char *name;
    void (*read)(struct run_reader *reader, const struct run_key *key, const struct yaml_node *node,
                 void *to);
    size_t offset;
    struct option option; /* of numbers: what they must look like */
};

#define RUN_KEY_DURATION(low, high)                                                                \
    { .type = OPTION_DURATION, .min = (low), .max = (high) }
#define RUN_KEY_TEXT(key, type, field)                                                             \
    {                                                                                              \
        key, run_key_text, offsetof(type, field), {                                                \
            0                                                                                      \
        }                                                                                          \
    }
#define RUN_KEY_WORDS(key, type, field)                                                            \
    {                                                                                              \
        key, run_key_words, offsetof(type, field), {                                               \
            0                                                                                      \
        }                                                                                          \
    }

/* Adds a problem at a node, with the key in front. */
void run_key_complain(struct run_reader *reader, const struct yaml_node *node, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

/* Reads all keys of a mapping; unknown ones are problems. Nothing given is an empty mapping. The
 * table ends at a row without a name. */
void run_key_read_all(struct run_reader *reader, const struct run_key *keys,
                      const struct yaml_node *node, void *to);

/* Calls `read` with each item of a list, the key being followed by its place: "targets[0]". */
void run_key_each(struct run_reader *reader, const struct yaml_node *node,
                  void (*read)(struct run_reader *reader, const struct yaml_node *item,
                               size_t index, void *to),
                  void *to);

/* Readers of one value. A text: const char *. */
void run_key_text(struct run_reader *reader, const struct run_key *key,
                  const struct yaml_node *node, void *to);
/* By the key's option: int64_t. */
void run_key_number(struct run_reader *reader, const struct run_key *key,
                    const struct yaml_node *node, void *to);
/* A list of texts, or one text that is split as run_args_split does: const char *const *. */
void run_key_words(struct run_reader *reader, const struct run_key *key,
                   const struct yaml_node *node, void *to);
/* A mapping of names to values: const char *const * of "NAME=value". */
void run_key_env(struct run_reader *reader, const struct run_key *key, const struct yaml_node *node,
                 void *to);

/* The text of a scalar, or NULL with a problem. */
const char *run_key_scalar(struct run_reader *reader, const struct yaml_node *node);
