#include "collectors/container/cri_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/protobuf.h"

enum { MAX_ITEMS = 10000 };

/* Fields of the messages, by their numbers in api.proto. */
enum { LIST_ITEM = 1 };
enum { POD_ID = 1, POD_METADATA = 2, POD_STATE = 3, POD_LABELS = 5 };
enum { POD_NAME = 1, POD_NAMESPACE = 3 };
enum { POD_NOT_READY = 1 };
enum {
    CONTAINER_ID = 1,
    CONTAINER_SANDBOX_ID = 2,
    CONTAINER_METADATA = 3,
    CONTAINER_IMAGE = 4,
    CONTAINER_IMAGE_REF = 5,
    CONTAINER_STATE = 6,
    CONTAINER_LABELS = 8,
};
enum { CONTAINER_NAME = 1 };
enum { CONTAINER_EXITED = 2 };
enum { IMAGE_NAME = 1, IMAGE_AS_SPECIFIED = 18 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };

static void finish_item(struct cri_item *item) {
    container_info_finish(&item->info);
    free(TAKE(item->sandbox_id));
}

void cri_items_finish(struct cri_items *items) {
    for (size_t i = 0; i < items->n_rows; i++) {
        finish_item(&items->rows[i]);
    }
    free(items->rows);
    *items = (struct cri_items){0};
}

static int add_item(struct cri_items *items, struct cri_item *item) {
    if (items->n_rows == MAX_ITEMS) {
        return 0;
    }
    if (items->n_rows == items->cap_rows) {
        size_t cap = 2 * items->cap_rows + 16;
        struct cri_item *rows = reallocarray(items->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return -ENOMEM;
        }
        items->rows = rows;
        items->cap_rows = cap;
    }
    items->rows[items->n_rows++] = *item;
    *item = (struct cri_item){0};
    return 0;
}

/* A text ends at a NUL that somebody may have put into it; an empty one tells nothing. */
static int take_text(struct protobuf bytes, char **field) {
    if (bytes.len == 0 || bytes.data[0] == '\0') {
        return 0;
    }
    free(*field);
    *field = strndup(bytes.data, bytes.len);
    return *field != NULL ? 0 : -ENOMEM;
}

/* Which text of a message goes where. */
struct text_row {
    uint32_t number;
    char **field;
};

static int take_texts(struct protobuf message, const struct text_row *rows, size_t n_rows) {
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        for (size_t i = 0; i < n_rows; i++) {
            if (field.number == rows[i].number && field.wire == PROTOBUF_BYTES &&
                take_text(field.bytes, rows[i].field) < 0) {
                return -ENOMEM;
            }
        }
    }
    return r;
}

static int take_label(struct protobuf entry, container_label_patterns wanted,
                      struct container_info *info) {
    char *name CLEANUP_FREE = NULL;
    char *value CLEANUP_FREE = NULL;
    const struct text_row rows[] = {{MAP_KEY, &name}, {MAP_VALUE, &value}};
    int r = take_texts(entry, rows, ARRAY_LEN(rows));
    return r < 0 || name == NULL || value == NULL
               ? r
               : container_info_label(info, wanted, CONTAINER_LABELS_ANYBODY, name, value);
}

/* The kubelet asks for images by their digest; a name says more. */
static bool is_digest(const char *image) {
    return strncmp(image, "sha256:", strlen("sha256:")) == 0;
}

static int take_image(struct protobuf message, char **image) {
    char *name CLEANUP_FREE = NULL;
    char *specified CLEANUP_FREE = NULL;
    const struct text_row rows[] = {{IMAGE_NAME, &name}, {IMAGE_AS_SPECIFIED, &specified}};
    int r = take_texts(message, rows, ARRAY_LEN(rows));
    if (r < 0) {
        return r;
    }
    if (specified != NULL || (name != NULL && !is_digest(name))) {
        free(*image);
        *image = specified != NULL ? TAKE(specified) : TAKE(name);
    }
    return 0;
}

typedef int take_field(const struct protobuf_field *field, container_label_patterns wanted,
                       struct cri_item *item, bool *ended);

static int take_pod_field(const struct protobuf_field *field, container_label_patterns wanted,
                          struct cri_item *item, bool *ended) {
    struct container_info *info = &item->info;
    const struct text_row metadata[] = {{POD_NAME, &info->pod}, {POD_NAMESPACE, &info->namespace}};
    if (field->number == POD_STATE && field->wire == PROTOBUF_VARINT) {
        *ended = field->value == POD_NOT_READY;
    }
    if (field->wire != PROTOBUF_BYTES) {
        return 0;
    }
    switch (field->number) {
    case POD_ID:
        return take_text(field->bytes, &info->id);
    case POD_METADATA:
        return take_texts(field->bytes, metadata, ARRAY_LEN(metadata));
    case POD_LABELS:
        return take_label(field->bytes, wanted, info);
    default:
        return 0;
    }
}

static int take_container_field(const struct protobuf_field *field, container_label_patterns wanted,
                                struct cri_item *item, bool *ended) {
    struct container_info *info = &item->info;
    const struct text_row metadata[] = {{CONTAINER_NAME, &info->container}};
    if (field->number == CONTAINER_STATE && field->wire == PROTOBUF_VARINT) {
        *ended = field->value == CONTAINER_EXITED;
    }
    if (field->wire != PROTOBUF_BYTES) {
        return 0;
    }
    switch (field->number) {
    case CONTAINER_ID:
        return take_text(field->bytes, &info->id);
    case CONTAINER_SANDBOX_ID:
        return take_text(field->bytes, &item->sandbox_id);
    case CONTAINER_METADATA:
        return take_texts(field->bytes, metadata, ARRAY_LEN(metadata));
    case CONTAINER_IMAGE:
        return take_image(field->bytes, &info->image);
    case CONTAINER_IMAGE_REF:
        return info->image == NULL ? take_text(field->bytes, &info->image) : 0;
    case CONTAINER_LABELS:
        return take_label(field->bytes, wanted, info);
    default:
        return 0;
    }
}

static int take_item(struct protobuf message, container_label_patterns wanted, take_field *take,
                     struct cri_items *items) {
    struct cri_item item = {.info.sandbox = take == take_pod_field};
    struct protobuf_field field;
    bool ended = false;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        r = take(&field, wanted, &item, &ended);
        if (r < 0) {
            break;
        }
    }
    if (r == 0 && !ended && item.info.id != NULL) {
        r = add_item(items, &item);
    }
    finish_item(&item);
    return r;
}

static int take_list(const char *data, size_t len, container_label_patterns wanted,
                     take_field *take, struct cri_items *items) {
    struct protobuf message = {.data = data, .len = len};
    struct protobuf_field field;
    int r;
    while ((r = protobuf_next(&message, &field)) > 0) {
        if (field.number == LIST_ITEM && field.wire == PROTOBUF_BYTES) {
            r = take_item(field.bytes, wanted, take, items);
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

int cri_message_pods(const char *data, size_t len, container_label_patterns wanted,
                     struct cri_items *items) {
    return take_list(data, len, wanted, take_pod_field, items);
}

int cri_message_containers(const char *data, size_t len, container_label_patterns wanted,
                           struct cri_items *items) {
    return take_list(data, len, wanted, take_container_field, items);
}
