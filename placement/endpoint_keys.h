#pragma once

#include "placement/web_client.h"
#include "profiler/run_key.h"

/* Reads a mapping of a YAML file into the struct web_endpoint at `to`: url, timeout, headers,
 * bearer_token, bearer_token_file, basic_auth, tls. Files are named from the folder of the YAML
 * file. For tables of keys. */
void endpoint_keys_read(struct run_reader *reader, const struct run_key *key,
                        const struct yaml_node *node, void *to);

/* A path, from the folder of the YAML file: const char *. */
void endpoint_keys_path(struct run_reader *reader, const struct run_key *key,
                        const struct yaml_node *node, void *to);
