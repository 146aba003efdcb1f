#include "collectors/container/info.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
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

/* The labels that the kubelet and containerd add to a container. */
static const struct {
    const char *name;
    size_t field;
    enum container_label_writer writer;
} known[] = {
    {"io.kubernetes.container.name", offsetof(struct container_info, container),
     CONTAINER_LABELS_KUBELET},
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

static inline void json_cleanup(json_t **json) {
    json_decref(*json);
}
#define CLEANUP_JSON CLEANUP(json_cleanup)

static json_t *load(const char *text, size_t len) {
    return json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, NULL);
}

/* The text under `key`, or NULL; an empty one tells nothing. */
static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static int set(char **field, const char *text) {
    return text != NULL ? container_info_set(field, text) : 0;
}

static int take_labels(struct container_info *info, container_label_patterns wanted,
                       enum container_label_writer writer, json_t *labels) {
    const char *name;
    json_t *value;
    int r = 0;
    json_object_foreach(labels, name, value) {
        if (r == 0 && json_is_string(value)) {
            r = container_info_label(info, wanted, writer, name, json_string_value(value));
        }
    }
    return r;
}

/* The pause container of a pod has no name within it; Docker's says POD. */
static void settle(struct container_info *info) {
    if (info->sandbox) {
        free(TAKE(info->container));
    }
}

/* Docker writes names with a slash before them. */
static const char *without_slash(const char *name) {
    return name != NULL && name[0] == '/' ? name + 1 : name;
}

/* A container that another links to has that one's name for it, "/other/alias", beside its own. */
static const char *own_name(const json_t *names) {
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = without_slash(json_string_value(json_array_get(names, i)));
        if (name != NULL && name[0] != '\0' && strchr(name, '/') == NULL) {
            return name;
        }
    }
    return NULL;
}

static int take_listed(const json_t *entry, container_label_patterns wanted,
                       struct container_info *info) {
    int r = set(&info->id, text_of(entry, "Id"));
    r = r == 0 ? set(&info->name, own_name(json_object_get(entry, "Names"))) : r;
    r = r == 0 ? set(&info->image, text_of(entry, "Image")) : r;
    r = r == 0
            ? take_labels(info, wanted, CONTAINER_LABELS_KUBELET, json_object_get(entry, "Labels"))
            : r;
    settle(info);
    return r;
}

int container_json_list(const char *text, size_t len, container_label_patterns wanted,
                        struct container_info **ret_infos, size_t *ret_n) {
    json_t *list CLEANUP_JSON = load(text, len);
    if (!json_is_array(list)) {
        return -EINVAL;
    }
    size_t n = 0;
    struct container_info *infos = calloc(json_array_size(list) + 1, sizeof(*infos));
    int r = infos != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (text_of(entry, "Id") != NULL) {
            r = take_listed(entry, wanted, &infos[n++]);
        }
    }
    if (r < 0) {
        for (size_t i = 0; i < n; i++) {
            container_info_finish(&infos[i]);
        }
        free(infos);
        return r;
    }
    *ret_infos = infos;
    *ret_n = n;
    return 0;
}

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* The attributes of an event are the container's labels, with name and image among them. */
int container_json_event(const char *text, size_t len, container_label_patterns wanted,
                         struct container_info *ret_info, bool *ret_gone) {
    static const char *const telling[] = {"create", "start", "init", "rename", NULL};
    static const char *const ending[] = {"destroy", "remove", NULL};
    json_t *event CLEANUP_JSON = load(text, len);
    if (!json_is_object(event)) {
        return -EINVAL;
    }
    json_t *actor = json_object_get(event, "Actor");
    json_t *attributes = json_object_get(actor, "Attributes");
    const char *action = text_of(event, "Action");
    const char *type = text_of(event, "Type");
    const char *id = text_of(actor, "ID");
    if (action == NULL || id == NULL || (type != NULL && strcmp(type, "container") != 0)) {
        return -ENODATA;
    }
    *ret_gone = is_one_of(action, ending);
    if (!*ret_gone && !is_one_of(action, telling)) {
        return -ENODATA;
    }
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    int r = set(&info.id, id);
    r = r == 0 ? set(&info.name, without_slash(text_of(attributes, "name"))) : r;
    r = r == 0 ? set(&info.image, text_of(attributes, "image")) : r;
    r = r == 0 ? take_labels(&info, wanted, CONTAINER_LABELS_KUBELET, attributes) : r;
    settle(&info);
    if (r == 0) {
        *ret_info = info;
        info = (struct container_info){0};
    }
    return r;
}

int container_json_bundle(const char *text, size_t len, container_label_patterns wanted,
                          struct container_info *ret_info) {
    json_t *config CLEANUP_JSON = load(text, len);
    if (!json_is_object(config)) {
        return -EINVAL;
    }
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    int r = take_labels(&info, wanted, CONTAINER_LABELS_CONTAINERD,
                        json_object_get(config, "annotations"));
    settle(&info);
    if (r < 0) {
        return r;
    }
    if (info.pod == NULL && info.container == NULL) {
        return -ENODATA;
    }
    *ret_info = info;
    info = (struct container_info){0};
    return 0;
}
