#include "placement/place/json_sorted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member {
    const char *key;
    size_t begin, end; /* of its value, in the text of all */
    size_t order;
};

struct object {
    struct member *members;
    size_t n, cap;
    struct buf values;
};

static void object_finish(struct object *object) {
    free(object->members);
    buf_finish(&object->values);
}
#define CLEANUP_OBJECT CLEANUP(object_finish)

static int compare(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

static int add_value(struct json *json, struct buf *out, int depth, struct error *err);

static int add_member(struct json *json, struct object *object, const char *key, int depth,
                      struct error *err) {
    if (object->n == object->cap) {
        size_t cap = object->cap == 0 ? 16 : 2 * object->cap;
        struct member *members = realloc(object->members, cap * sizeof(*members));
        if (members == NULL) {
            return error_set(err, -ENOMEM, "out of memory");
        }
        object->members = members;
        object->cap = cap;
    }
    struct member *member = &object->members[object->n];
    *member = (struct member){.key = key, .begin = object->values.len, .order = object->n};
    int r = add_value(json, &object->values, depth, err);
    member->end = object->values.len;
    object->n++;
    return r;
}

static int add_object(struct json *json, struct buf *out, int depth, struct error *err) {
    struct object object CLEANUP_OBJECT = {0};
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        r = add_member(json, &object, key, depth, err);
        if (r < 0) {
            return r;
        }
    }
    if (r < 0) {
        return r;
    }
    if (object.n > 0) {
        qsort(object.members, object.n, sizeof(*object.members), compare);
    }
    buf_add_char(out, '{');
    const char *separator = "";
    for (size_t i = 0; i < object.n; i++) {
        const struct member *member = &object.members[i];
        if (i + 1 < object.n && strcmp(member->key, member[1].key) == 0) {
            continue;
        }
        buf_add_str(out, separator);
        json_add_string(out, member->key);
        buf_add_char(out, ':');
        buf_add(out, object.values.data + member->begin, member->end - member->begin);
        separator = ",";
    }
    buf_add_char(out, '}');
    out->failed |= object.values.failed;
    return 0;
}

static int add_array(struct json *json, struct buf *out, int depth, struct error *err) {
    bool first = true;
    const char *separator = "[";
    int r;
    while ((r = json_next_element(json, &first, err)) > 0) {
        buf_add_str(out, separator);
        separator = ",";
        r = add_value(json, out, depth, err);
        if (r < 0) {
            return r;
        }
    }
    buf_add_str(out, separator[0] == '[' ? "[]" : "]");
    return r;
}

static int add_value(struct json *json, struct buf *out, int depth, struct error *err) {
    if (depth == JSON_MAX_DEPTH) {
        return json_fail(json, err, "nested more than %d deep", JSON_MAX_DEPTH);
    }
    char c = json_peek(json);
    if (c == '{' || c == '[') {
        json_take(json, c);
        return c == '{' ? add_object(json, out, depth + 1, err)
                        : add_array(json, out, depth + 1, err);
    }
    if (c == '"') {
        char *text;
        size_t len;
        int r = json_string(json, &text, &len, err);
        if (r == 0) {
            json_add_string(out, text);
        }
        return r;
    }
    const char *begin = json->at;
    int r = json_skip(json, err);
    if (r == 0) {
        buf_add(out, begin, (size_t)(json->at - begin));
    }
    return r;
}

int json_sorted_add(struct json *json, struct buf *out, struct error *err) {
    return add_value(json, out, 0, err);
}
