#include "collectors/container/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"

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

int container_json_crio(const char *text, size_t len, container_label_patterns wanted,
                        struct container_info *ret_info) {
    json_t *answer CLEANUP_JSON = load(text, len);
    if (!json_is_object(answer)) {
        return -EINVAL;
    }
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    static const struct {
        const char *key;
        enum container_label_writer writer;
    } objects[] = {
        {"annotations", CONTAINER_LABELS_ANYBODY},
        {"crio_annotations", CONTAINER_LABELS_CRIO},
        {"labels", CONTAINER_LABELS_KUBELET},
    };
    int r = set(&info.name, text_of(answer, "name"));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(objects); i++) {
        json_t *labels = json_object_get(answer, objects[i].key);
        r = take_labels(&info, wanted, objects[i].writer, labels);
    }
    r = r == 0 ? set(&info.image, text_of(answer, "image")) : r;
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
