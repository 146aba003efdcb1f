#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A runtime's information about one container. Unknown texts are NULL. */
struct container_info {
    char *id;
    char *name;
    char *image;
    char *pod;
    char *namespace;
    char *container;  /* its name within the pod */
    char *sandbox_id; /* of CRI: the pod that it is in */
    bool sandbox;     /* owns a pod's network and runs nothing */
    struct container_label {
        char *name; /* as in the runtime */
        char *value;
    } * labels;
    size_t n_labels;
};

void container_info_finish(struct container_info *info);
#define CLEANUP_CONTAINER_INFO CLEANUP(container_info_finish)

/* Zeroed: empty. */
struct container_infos {
    struct container_info *rows;
    size_t n_rows, cap_rows;
};

void container_infos_finish(struct container_infos *infos);
#define CLEANUP_CONTAINER_INFOS CLEANUP(container_infos_finish)

/* Moves `info` to the end, unless there are 10,000 already. */
void container_infos_add(struct container_infos *infos, struct container_info *info);

/* Patterns for the names of labels, with * and ?, NULL-terminated. */
typedef const char *const *container_label_patterns;

/* The program that wrote a set of labels. Each overwrites only its own names in the set; any other
 * label can come from an image or from the author of a pod and is not trusted. */
enum container_label_writer {
    CONTAINER_LABELS_ANYBODY,
    CONTAINER_LABELS_CONTAINERD, /* annotations of its bundles */
    CONTAINER_LABELS_KUBELET,    /* labels of containers that the kubelet started */
};

/* Adds a label of a container: to its field, if the label is one of the writer's, and to the
 * labels, if a pattern matches. At most 64 labels of at most 1 KiB are kept. */
void container_info_label(struct container_info *info, container_label_patterns wanted,
                          enum container_label_writer writer, const char *name, const char *value);

/* Removes the names of the pod, for a container that the kubelet did not start. */
void container_info_leave_pod(struct container_info *info);

/* Adds the texts (but for the id) and the labels that `from` has and `info` lacks. */
void container_info_fill(struct container_info *info, const struct container_info *from);

bool container_info_equal(const struct container_info *a, const struct container_info *b);

/* Pure readers of the JSON of runtimes, which they overwrite. They return 0, or -EINVAL if the text
 * is not JSON of the expected form; the caller finishes the result. */

/* Appends the list that Docker and podman answer to GET /containers/json. Entries without an id are
 * skipped. */
int container_json_list(char *text, size_t len, container_label_patterns wanted,
                        struct container_infos *infos);

/* One line of GET /events. `*ret_gone`: the container is removed, and only its id is known.
 * -ENODATA for events that do not name a container. */
int container_json_event(char *text, size_t len, container_label_patterns wanted,
                         struct container_info *ret_info, bool *ret_gone);

/* config.json of an OCI bundle: its annotations. -ENODATA if they name neither pod nor
 * container. */
int container_json_bundle(char *text, size_t len, container_label_patterns wanted,
                          struct container_info *ret_info);
