#pragma once

#include "exporter/settings/yaml_key.h"

/* Readers of what only runs have, for tables of keys. */

#define RUN_KEY_WORDS(key, type, field)                                                            \
    {                                                                                              \
        key, run_key_words, offsetof(type, field), {                                               \
            0                                                                                      \
        }                                                                                          \
    }

/* A list of texts, or one text that is split as run_args_split does: const char *const *. */
void run_key_words(struct yaml_reader *reader, const struct yaml_key *key,
                   const struct yaml_node *node, void *to);
/* A mapping of names to values: const char *const * of "NAME=value". */
void run_key_env(struct yaml_reader *reader, const struct yaml_key *key,
                 const struct yaml_node *node, void *to);
