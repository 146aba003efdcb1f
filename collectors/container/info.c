#include "collectors/container/info.h"

#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/json.h"
#include "exporter/core/memory.h"

enum { MAX_LABELS = 64, MAX_VALUE_LEN = 1024, MAX_INFOS = 10000 };

static const size_t fields[] = {
    offsetof(struct container_info, id),         offsetof(struct container_info, name),
    offsetof(struct container_info, image),      offsetof(struct container_info, pod),
    offsetof(struct container_info, namespace),  offsetof(struct container_info, container),
    offsetof(struct container_info, sandbox_id),
};

#define KNOWN(label, field, writer)                                                                \
    { "io.kubernetes." label, offsetof(struct container_info, field), CONTAINER_LABELS_##writer }

/* The labels that the kubelet and containerd add to a container. */
static const struct {
    const char *name;
    size_t field;
    enum container_label_writer writer;
} known[] = {
    KNOWN("container.name", container, KUBELET),
    KNOWN("cri.container-name", container, CONTAINERD),
    KNOWN("cri.image-name", image, CONTAINERD),
    KNOWN("cri.podsandbox.image-name", image, CONTAINERD),
    KNOWN("cri.sandbox-name", pod, CONTAINERD),
    KNOWN("cri.sandbox-namespace", namespace, CONTAINERD),
    KNOWN("pod.name", pod, KUBELET),
    KNOWN("pod.namespace", namespace, KUBELET),
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

void container_infos_finish(struct container_infos *infos) {
    for (size_t i = 0; i < infos->n_rows; i++) {
        container_info_finish(&infos->rows[i]);
    }
    free(infos->rows);
    *infos = (struct container_infos){0};
}

void container_infos_add(struct container_infos *infos, struct container_info *info) {
    if (infos->n_rows < MAX_INFOS) {
        ARRAY_GROW(&infos->rows, &infos->cap_rows, infos->n_rows + 1);
        infos->rows[infos->n_rows++] = *info;
        *info = (struct container_info){0};
    }
}

static void set_text(char **field, const char *text) {
    char *copy = mem_strdup(text);
    free(*field);
    *field = copy;
}

static bool matches(container_label_patterns wanted, const char *name) {
    for (; *wanted != NULL; wanted++) {
        if (fnmatch(*wanted, name, 0) == 0) {
            return true;
        }
    }
    return false;
}

static void keep_label(struct container_info *info, const char *name, const char *value) {
    info->labels = mem_resize(info->labels, info->n_labels + 1, sizeof(*info->labels));
    info->labels[info->n_labels++] =
        (struct container_label){.name = mem_strdup(name), .value = mem_strdup(value)};
}

void container_info_label(struct container_info *info, container_label_patterns wanted,
                          enum container_label_writer writer, const char *name, const char *value) {
    for (size_t i = 0; i < ARRAY_LEN(sandbox_marks); i++) {
        info->sandbox = info->sandbox || (sandbox_marks[i].writer == writer &&
                                          strcmp(name, sandbox_marks[i].name) == 0 &&
                                          strcmp(value, sandbox_marks[i].value) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].writer == writer && strcmp(name, known[i].name) == 0) {
            set_text(field_at(info, known[i].field), value);
        }
    }
    if (info->n_labels < MAX_LABELS && strlen(value) <= MAX_VALUE_LEN && matches(wanted, name)) {
        keep_label(info, name, value);
    }
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

void container_info_fill(struct container_info *info, const struct container_info *from) {
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        char **field = field_at(info, fields[i]);
        const char *text = *field_at(from, fields[i]);
        if (field != &info->id && *field == NULL && text != NULL) {
            set_text(field, text);
        }
    }
    for (size_t i = 0; i < from->n_labels && info->n_labels < MAX_LABELS; i++) {
        const struct container_label *label = &from->labels[i];
        if (!has_label(info, label->name)) {
            keep_label(info, label->name, label->value);
        }
    }
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

/* ---- JSON of runtimes ---- */

struct reader {
    struct json json;
    container_label_patterns wanted;
    enum container_label_writer writer; /* of the labels */
    struct container_info info;
    char *action, *type; /* of an event, in its text */
};

/* Reads the value of `key`. */
typedef int read_value(struct reader *reader, const char *key);

/* Reads the values of an object; anything else is skipped. */
static int read_object(struct reader *reader, read_value *read) {
    struct json *json = &reader->json;
    if (!json_take(json, '{')) {
        return json_skip(json, NULL);
    }
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, NULL)) > 0) {
        r = read(reader, key);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* A string that is not empty; anything else is skipped, with NULL for the text. */
static int read_string(struct reader *reader, char **ret_text) {
    char *text = NULL;
    size_t len = 0;
    int r = json_peek(&reader->json) == '"' ? json_read_string(&reader->json, &text, &len, NULL)
                                            : json_skip(&reader->json, NULL);
    *ret_text = r == 0 && len > 0 ? text : NULL;
    return r;
}

static int read_field(struct reader *reader, char **field) {
    char *text;
    int r = read_string(reader, &text);
    if (text != NULL) {
        set_text(field, text);
    }
    return r;
}

static int read_label(struct reader *reader, const char *name) {
    if (json_peek(&reader->json) != '"') {
        return json_skip(&reader->json, NULL);
    }
    char *value;
    size_t len;
    int r = json_read_string(&reader->json, &value, &len, NULL);
    if (r == 0) {
        container_info_label(&reader->info, reader->wanted, reader->writer, name, value);
    }
    return r;
}

/* Docker writes names with a slash before them. */
static const char *without_slash(const char *name) {
    return name[0] == '/' ? name + 1 : name;
}

/* A container that another links to also has that one's name for it, "/other/alias". */
static int read_names(struct reader *reader) {
    struct json *json = &reader->json;
    if (!json_take(json, '[')) {
        return json_skip(json, NULL);
    }
    bool first = true;
    int r;
    while ((r = json_next_element(json, &first, NULL)) > 0) {
        char *text;
        r = read_string(reader, &text);
        if (r < 0) {
            return r;
        }
        const char *name = text != NULL ? without_slash(text) : "";
        if (reader->info.name == NULL && name[0] != '\0' && strchr(name, '/') == NULL) {
            set_text(&reader->info.name, name);
        }
    }
    return r;
}

/* The sandbox of a pod has no name within it; Docker's is POD. */
static void finish_reading(struct reader *reader, struct container_info *ret_info) {
    if (reader->info.sandbox) {
        free(TAKE(reader->info.container));
    }
    *ret_info = reader->info;
    reader->info = (struct container_info){0};
}

static int read_listed(struct reader *reader, const char *key) {
    struct container_info *info = &reader->info;
    return strcmp(key, "Id") == 0       ? read_field(reader, &info->id)
           : strcmp(key, "Image") == 0  ? read_field(reader, &info->image)
           : strcmp(key, "Labels") == 0 ? read_object(reader, read_label)
           : strcmp(key, "Names") == 0  ? read_names(reader)
                                        : json_skip(&reader->json, NULL);
}

int container_json_list(char *text, size_t len, container_label_patterns wanted,
                        struct container_infos *infos) {
    struct reader reader = {json_begin(text, len, 1), wanted, CONTAINER_LABELS_KUBELET};
    bool first = true;
    int r = json_take(&reader.json, '[') ? 1 : -EINVAL;
    while (r > 0 && (r = json_next_element(&reader.json, &first, NULL)) > 0) {
        struct container_info info CLEANUP_CONTAINER_INFO = {0};
        int failed = read_object(&reader, read_listed);
        finish_reading(&reader, &info);
        if (failed == 0 && info.id != NULL) {
            container_infos_add(infos, &info);
        }
        r = failed < 0 ? failed : r;
    }
    return r;
}

/* The attributes of an event are the container's labels, with name and image among them. */
static int read_attribute(struct reader *reader, const char *key) {
    char **field = strcmp(key, "name") == 0    ? &reader->info.name
                   : strcmp(key, "image") == 0 ? &reader->info.image
                                               : NULL;
    if (field == NULL) {
        return read_label(reader, key);
    }
    char *text;
    int r = read_string(reader, &text);
    if (text != NULL) {
        set_text(field, field == &reader->info.name ? without_slash(text) : text);
        container_info_label(&reader->info, reader->wanted, reader->writer, key, text);
    }
    return r;
}

static int read_actor(struct reader *reader, const char *key) {
    return strcmp(key, "ID") == 0           ? read_field(reader, &reader->info.id)
           : strcmp(key, "Attributes") == 0 ? read_object(reader, read_attribute)
                                            : json_skip(&reader->json, NULL);
}

static int read_event(struct reader *reader, const char *key) {
    return strcmp(key, "Action") == 0  ? read_string(reader, &reader->action)
           : strcmp(key, "Actor") == 0 ? read_object(reader, read_actor)
           : strcmp(key, "Type") == 0  ? read_string(reader, &reader->type)
                                       : json_skip(&reader->json, NULL);
}

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

int container_json_event(char *text, size_t len, container_label_patterns wanted,
                         struct container_info *ret_info, bool *ret_gone) {
    static const char *const starting[] = {"create", "start", "init", "rename", NULL};
    static const char *const ending[] = {"destroy", "remove", NULL};
    struct reader reader = {json_begin(text, len, 1), wanted, CONTAINER_LABELS_KUBELET};
    int r = json_peek(&reader.json) == '{' ? read_object(&reader, read_event) : -EINVAL;
    if (r == 0 && (reader.action == NULL || reader.info.id == NULL ||
                   (reader.type != NULL && strcmp(reader.type, "container") != 0) ||
                   !(is_one_of(reader.action, starting) || is_one_of(reader.action, ending)))) {
        r = -ENODATA;
    }
    if (r == 0) {
        *ret_gone = is_one_of(reader.action, ending);
        finish_reading(&reader, ret_info);
    }
    container_info_finish(&reader.info);
    return r;
}

static int read_config(struct reader *reader, const char *key) {
    return strcmp(key, "annotations") == 0 ? read_object(reader, read_label)
                                           : json_skip(&reader->json, NULL);
}

int container_json_bundle(char *text, size_t len, container_label_patterns wanted,
                          struct container_info *ret_info) {
    struct reader reader = {json_begin(text, len, 1), wanted, CONTAINER_LABELS_CONTAINERD};
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    int r = json_peek(&reader.json) == '{' ? read_object(&reader, read_config) : -EINVAL;
    finish_reading(&reader, &info);
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
