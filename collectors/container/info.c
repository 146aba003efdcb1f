#include "collectors/container/info.h"

#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"

enum { MAX_LABELS = 64, MAX_VALUE_LEN = 1024 };

static const size_t fields[] = {
    offsetof(struct container_info, id),        offsetof(struct container_info, name),
    offsetof(struct container_info, image),     offsetof(struct container_info, pod),
    offsetof(struct container_info, namespace), offsetof(struct container_info, container),
};

/* The labels that the kubelet, containerd and CRI-O add to a container. */
static const struct {
    const char *name;
    size_t field;
    enum container_label_writer writer;
} known[] = {
    {"io.kubernetes.container.name", offsetof(struct container_info, container),
     CONTAINER_LABELS_KUBELET},
    {"io.kubernetes.cri-o.ImageName", offsetof(struct container_info, image),
     CONTAINER_LABELS_CRIO},
    {"io.kubernetes.cri.container-name", offsetof(struct container_info, container),
     CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.cri.image-name", offsetof(struct container_info, image),
     CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.cri.podsandbox.image-name", offsetof(struct container_info, image),
     CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.cri.sandbox-name", offsetof(struct container_info, pod),
     CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.cri.sandbox-namespace", offsetof(struct container_info, namespace),
     CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.pod.name", offsetof(struct container_info, pod), CONTAINER_LABELS_KUBELET},
    {"io.kubernetes.pod.namespace", offsetof(struct container_info, namespace),
     CONTAINER_LABELS_KUBELET},
};

static const struct {
    const char *name;
    const char *value;
    enum container_label_writer writer;
} sandbox_marks[] = {
    {"io.kubernetes.cri-o.ContainerType", "sandbox", CONTAINER_LABELS_CRIO},
    {"io.kubernetes.cri.container-type", "sandbox", CONTAINER_LABELS_CONTAINERD},
    {"io.kubernetes.docker.type", "podsandbox", CONTAINER_LABELS_KUBELET},
};

static char **field_at(const struct container_info *info, size_t offset) {
    return (char **)((char *)info + offset);
}

void container_info_finish(struct container_info *info) {
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        free(*field_at(info, fields[i]));
    }
    for (size_t i = 0; i < info->n_labels; i++) {
        free(info->labels[i].name);
        free(info->labels[i].value);
    }
    free(info->labels);
    *info = (struct container_info){0};
}

int container_info_set(char **field, const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) {
        return -ENOMEM;
    }
    free(*field);
    *field = copy;
    return 0;
}

static bool matches(container_label_patterns wanted, const char *name) {
    for (; *wanted != NULL; wanted++) {
        if (fnmatch(*wanted, name, 0) == 0) {
            return true;
        }
    }
    return false;
}

static int keep_label(struct container_info *info, const char *name, const char *value) {
    char *name_copy CLEANUP_FREE = strdup(name);
    char *value_copy CLEANUP_FREE = strdup(value);
    struct container_label *labels =
        reallocarray(info->labels, info->n_labels + 1, sizeof(*labels));
    if (labels == NULL) {
        return -ENOMEM;
    }
    info->labels = labels;
    if (name_copy == NULL || value_copy == NULL) {
        return -ENOMEM;
    }
    info->labels[info->n_labels++] =
        (struct container_label){.name = TAKE(name_copy), .value = TAKE(value_copy)};
    return 0;
}

int container_info_label(struct container_info *info, container_label_patterns wanted,
                         enum container_label_writer writer, const char *name, const char *value) {
    for (size_t i = 0; i < ARRAY_LEN(sandbox_marks); i++) {
        info->sandbox = info->sandbox || (sandbox_marks[i].writer == writer &&
                                          strcmp(name, sandbox_marks[i].name) == 0 &&
                                          strcmp(value, sandbox_marks[i].value) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].writer == writer && strcmp(name, known[i].name) == 0 &&
            container_info_set(field_at(info, known[i].field), value) < 0) {
            return -ENOMEM;
        }
    }
    if (info->n_labels == MAX_LABELS || strlen(value) > MAX_VALUE_LEN || !matches(wanted, name)) {
        return 0;
    }
    return keep_label(info, name, value);
}

void container_info_leave_pod(struct container_info *info) {
    free(TAKE(info->pod));
    free(TAKE(info->namespace));
    free(TAKE(info->container));
    info->sandbox = false;
}

static bool has_label(const struct container_info *info, const char *name) {
    for (size_t i = 0; i < info->n_labels; i++) {
        if (strcmp(info->labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

int container_info_fill(struct container_info *info, const struct container_info *from) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(fields); i++) {
        char **field = field_at(info, fields[i]);
        const char *text = *field_at(from, fields[i]);
        if (field != &info->id && *field == NULL && text != NULL) {
            r = container_info_set(field, text);
        }
    }
    for (size_t i = 0; r == 0 && i < from->n_labels && info->n_labels < MAX_LABELS; i++) {
        const struct container_label *label = &from->labels[i];
        r = has_label(info, label->name) ? 0 : keep_label(info, label->name, label->value);
    }
    return r;
}

static bool same_text(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

bool container_info_equal(const struct container_info *a, const struct container_info *b) {
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!same_text(*field_at(a, fields[i]), *field_at(b, fields[i]))) {
            return false;
        }
    }
    if (a->sandbox != b->sandbox || a->n_labels != b->n_labels) {
        return false;
    }
    for (size_t i = 0; i < a->n_labels; i++) {
        if (strcmp(a->labels[i].name, b->labels[i].name) != 0 ||
            strcmp(a->labels[i].value, b->labels[i].value) != 0) {
            return false;
        }
    }
    return true;
}
