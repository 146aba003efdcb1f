#pragma once

#include <stddef.h>

#include "collectors/container/info.h"

/* Pure readers of what runtimes answer to Kubernetes (CRI, protobuf). The numbers of the fields are
 * the same in the versions v1 and v1alpha2. */

/* A pod's sandbox, or a container. */
struct cri_item {
    struct container_info info;
    char *sandbox_id; /* of containers */
};

/* Zeroed: empty. */
struct cri_items {
    struct cri_item *rows;
    size_t n_rows, cap_rows;
};

void cri_items_finish(struct cri_items *items);
#define CLEANUP_CRI_ITEMS CLEANUP(cri_items_finish)

/* Appends what ListPodSandbox answers, without the pods that have ended: 10,000 at most. 0, -EINVAL
 * where it is no such message, -ENOMEM. */
int cri_message_pods(const char *data, size_t len, container_label_patterns wanted,
                     struct cri_items *items);

/* The same for what ListContainers answers. */
int cri_message_containers(const char *data, size_t len, container_label_patterns wanted,
                           struct cri_items *items);
