#pragma once

#include "collectors/container/info.h"

/* Pure readers of what runtimes say in JSON. They fill `ret_info`, which the caller finishes. 0,
 * -EINVAL where the text is not JSON of the expected shape, -ENOMEM. */

/* The list that Docker and podman answer to GET /containers/json. `*ret_infos` is an array that the
 * caller frees after finishing each. Entries without an id are left out. */
int container_json_list(const char *text, size_t len, container_label_patterns wanted,
                        struct container_info **ret_infos, size_t *ret_n);

/* One line of GET /events. `*ret_gone`: the container is removed, only the id is told. -ENODATA for
 * events that tell nothing of a container's name. */
int container_json_event(const char *text, size_t len, container_label_patterns wanted,
                         struct container_info *ret_info, bool *ret_gone);

/* What CRI-O answers to GET /containers/<id>. */
int container_json_crio(const char *text, size_t len, container_label_patterns wanted,
                        struct container_info *ret_info);

/* config.json of an OCI bundle: its annotations. -ENODATA where they name neither pod nor
 * container. */
int container_json_bundle(const char *text, size_t len, container_label_patterns wanted,
                          struct container_info *ret_info);
