#include "placement/onnx/graph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "exporter/core/hash.h"

/* Below it there is little to give back. */
enum { RELEASE_MIN = 128 << 10 };

/* Of the index of values; half of its slots stay free, and it doubles. */
enum { INDEX_SHARE = 4 * sizeof(struct hash_index_slot) };

int onnx_fail(const struct onnx_model *model, const char *at, struct error *err, const char *format,
              ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_set(err, -EINVAL, "byte %zu: %s", (size_t)(at - model->file.data), text);
}

int onnx_next_field(const struct onnx_model *model, struct protobuf *message,
                    struct protobuf_field *ret_field, struct error *err) {
    const char *at = message->data;
    int r = protobuf_next(message, ret_field);
    if (r < 0) {
        onnx_fail(model, at, err, "not a field: no ONNX model, or one that is cut off");
    }
    return r;
}

static size_t max_memory(const struct onnx_model *model) {
    return model->max_memory > 0 ? model->max_memory : ONNX_MAX_MEMORY;
}

static bool has_room(struct onnx_model *model, size_t n) {
    n = (n + _Alignof(max_align_t) - 1) &
        ~(_Alignof(max_align_t) - 1); /* no less than the arena does */
    model->is_full = model->is_full || n > max_memory(model) - model->taken;
    model->taken += model->is_full ? 0 : n;
    return !model->is_full;
}

void *onnx_take(struct onnx_model *model, size_t n) {
    return has_room(model, n) ? arena_take(&model->arena, n) : NULL;
}

void *onnx_keep(struct onnx_model *model, const void *data, size_t n) {
    return has_room(model, n) ? arena_copy(&model->arena, data, n) : NULL;
}

int onnx_out_of_memory(const struct onnx_model *model, struct error *err) {
    return model->is_full ? error_set(err, -EFBIG, "its graph takes more than %zu bytes of memory",
                                      max_memory(model))
                          : error_set(err, -ENOMEM, "out of memory");
}

static uint64_t hash_of(const struct onnx_graph *graph, struct protobuf name) {
    return hash_bytes(name.data, name.len) ^ (uint64_t)(uintptr_t)graph;
}

static struct onnx_value *find_value(const struct onnx_model *model, const struct onnx_graph *graph,
                                     struct protobuf name) {
    uint64_t hash = hash_of(graph, name);
    size_t cursor = 0;
    struct onnx_value *value;
    while ((value = hash_index_next(&model->values, hash, &cursor)) != NULL) {
        if (value->graph == graph && value->name.len == name.len &&
            memcmp(value->name.data, name.data, name.len) == 0) {
            break;
        }
    }
    return value;
}

/* Names in a mapped file are copied: those of weights stand between the weights, in pages that are
 * given back. */
struct onnx_value *onnx_value_get(struct onnx_model *model, struct onnx_graph *graph,
                                  struct protobuf name) {
    struct onnx_value *value = find_value(model, graph, name);
    if (value != NULL) {
        return value;
    }
    value = onnx_take(model, sizeof(*value));
    const char *kept = model->mapped ? onnx_keep(model, name.data, name.len) : name.data;
    if (value == NULL || kept == NULL || !has_room(model, INDEX_SHARE) ||
        !hash_index_reserve(&model->values, 1)) {
        return NULL;
    }
    *value = (struct onnx_value){.name = {kept, name.len}, .graph = graph};
    hash_index_add(&model->values, hash_of(graph, name), value);
    return value;
}

const struct onnx_value *onnx_value_resolve(const struct onnx_model *model,
                                            const struct onnx_value *value) {
    const struct onnx_graph *graph = value->graph;
    const struct onnx_value *found = value;
    while (found->producer == NULL && found->tensor == NULL && !found->is_input &&
           graph->parent != NULL) {
        graph = graph->parent;
        const struct onnx_value *outer = find_value(model, graph, value->name);
        found = outer != NULL ? outer : found;
    }
    return found;
}

int onnx_value_add(struct onnx_model *model, struct onnx_graph *graph, struct protobuf name,
                   struct onnx_value **ret_value, struct error *err) {
    *ret_value = onnx_value_get(model, graph, name);
    return *ret_value != NULL ? 0 : onnx_out_of_memory(model, err);
}

void onnx_release(const struct onnx_model *model, struct protobuf message) {
    if (!model->mapped || message.len < RELEASE_MIN) {
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)message.data) & ~(page - 1);
    uintptr_t end = ((uintptr_t)message.data + message.len) & ~(page - 1);
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}
