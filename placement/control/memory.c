#include "placement/control/memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/json.h"

enum { MAX_BYTES = 1 << 20 };

static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"changed_at", offsetof(struct control_memory, changed_at)},
    {"floor", offsetof(struct control_memory, floor)},
    {"output", offsetof(struct control_memory, output)},
    {"position", offsetof(struct control_memory, position)},
    {"widening", offsetof(struct control_memory, widening)},
};

/* ---- states ---- */

struct control_memory control_memory_of(const char *name, const struct control_state *state) {
    double ago = (double)(clock_monotonic_ns() - state->changed_ns) / 1e9;
    return (struct control_memory){
        .name = name,
        .is_set = true,
        .position = state->position,
        .output = state->output,
        .widening = state->widening,
        .floor = state->floor,
        .changed_at = state->has_changed ? clock_wall_seconds() - ago : 0,
        .last_direction = state->last_direction,
    };
}

void control_memory_recall(const struct control_memory *memory, struct control_state *state) {
    if (!memory->is_set || memory->position != state->position) {
        return;
    }
    state->output = memory->output;
    state->widening = memory->widening;
    state->floor = memory->floor;
    state->last_direction = memory->last_direction;
    /* A clock that was set meanwhile must not stop the loop forever. */
    double ago = fmax(clock_wall_seconds() - memory->changed_at, 0);
    state->has_changed = memory->changed_at > 0 && ago < 1e9;
    if (state->has_changed) {
        state->changed_ns = clock_monotonic_ns() - (int64_t)(ago * 1e9);
    }
}

/* ---- text ---- */

void control_memory_format(const struct control_memory *memories, size_t n, struct buf *out) {
    json_open(out, NULL, '{');
    json_open(out, "loops", '{');
    for (size_t i = 0; i < n; i++) {
        const struct control_memory *memory = &memories[i];
        if (!memory->is_set) {
            continue;
        }
        json_open(out, memory->name, '{');
        json_put_number(out, "last_direction", memory->last_direction);
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
            json_put_number(out, numbers[k].key,
                            *(const double *)((const char *)memory + numbers[k].offset));
        }
        json_close(out, '}');
    }
    json_close(out, '}');
    json_close(out, '}');
    buf_add_char(out, '\n');
}

struct reading {
    struct control_memory *memories;
    size_t n;
};

static int read_number(struct json *json, const char *key, void *context, struct error *err) {
    struct control_memory *memory = context;
    if (strcmp(key, "last_direction") == 0) {
        double direction = 0;
        int r = json_read_number(json, &direction, err);
        memory->last_direction = (direction > 0) - (direction < 0);
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].key, key) == 0) {
            return json_read_number(json, (double *)((char *)memory + numbers[i].offset), err);
        }
    }
    return json_skip(json, err);
}

static int read_loop(struct json *json, const char *key, void *context, struct error *err) {
    const struct reading *in = context;
    size_t i = 0;
    while (i < in->n && strcmp(in->memories[i].name, key) != 0) {
        i++;
    }
    struct control_memory memory = {.name = i < in->n ? in->memories[i].name : key, .is_set = true};
    int r = json_each(json, '{', "the state of a loop", read_number, &memory, err);
    if (r == 0 && (memory.floor < 0 || memory.widening < 0)) {
        return json_fail(json, err, "floor or widening is negative");
    }
    if (r == 0 && i < in->n) {
        in->memories[i] = memory;
    }
    return r;
}

static int read_key(struct json *json, const char *key, void *context, struct error *err) {
    return strcmp(key, "loops") == 0 ? json_each(json, '{', "loops", read_loop, context, err)
                                     : json_skip(json, err);
}

int control_memory_parse(char *text, size_t len, struct control_memory *memories, size_t n,
                         struct error *err) {
    struct json json = json_begin(text, len, 1);
    struct reading in = {memories, n};
    int r = json_each(&json, '{', "an object", read_key, &in, err);
    return r == 0 && !json_at_end(&json) ? json_fail(&json, err, "expected nothing after it") : r;
}

/* ---- files ---- */

int control_memory_load(const char *path, struct control_memory *memories, size_t n,
                        struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read_stored(path, MAX_BYTES, &text, err);
    if (r == -ENOENT) {
        return 0;
    }
    if (r < 0) {
        return r;
    }
    buf_add_char(&text, '\n'); /* so that an empty file has data */
    r = control_memory_parse(text.data, text.len, memories, n, err);
    if (r < 0) {
        error_set(err, r, "%s: %s", path, err->text);
    }
    return r;
}

int control_memory_save(const char *path, const struct control_memory *memories, size_t n,
                        struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    control_memory_format(memories, n, &text);
    return file_replace(path, 0600, text.data, text.len, err);
}
