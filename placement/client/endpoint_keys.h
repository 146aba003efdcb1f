#pragma once

#include "exporter/settings/yaml_key.h"
#include "placement/client/web_client.h"

/* Reads a mapping of a YAML file into the struct web_endpoint at `to`: url, timeout, headers,
 * bearer_token, bearer_token_file, basic_auth, tls. Files are named from the folder of the YAML
 * file. For tables of keys. */
void endpoint_keys_read(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to);

/* A path, from the folder of the YAML file: const char *. */
void endpoint_keys_path(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to);
