#include "placement/control/memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/json.h"
#include "exporter/core/number.h"

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

struct control_memory control_memory_of(const struct control_state *state) {
    double ago = (double)(clock_monotonic_ns() - state->changed_ns) / 1e9;
    return (struct control_memory){
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
    /* A clock that was set in between must not stop the loop for ever. */
    double ago = fmax(clock_wall_seconds() - memory->changed_at, 0);
    state->has_changed = memory->changed_at > 0 && ago < 1e9;
    if (state->has_changed) {
        state->changed_ns = clock_monotonic_ns() - (int64_t)(ago * 1e9);
    }
}

/* ---- text ---- */

static void add_number(struct buf *out, const char *key, double value) {
    char text[NUMBER_MAX_LEN];
    size_t len = number_format(value, text);
    buf_printf(out, ",\"%s\":%.*s", key, (int)len, text);
}

void control_memory_format(const struct control_memory_entry *entries, size_t n, struct buf *out) {
    bool first = true;
    buf_add_str(out, "{\"loops\":{");
    for (size_t i = 0; i < n; i++) {
        const struct control_memory *memory = &entries[i].memory;
        if (!memory->is_set) {
            continue;
        }
        buf_add_str(out, first ? "\n" : ",\n");
        json_add_string(out, entries[i].name);
        buf_printf(out, ":{\"last_direction\":%d", memory->last_direction);
        for (size_t k = 0; k < ARRAY_LEN(numbers); k++) {
            const double *value = (const double *)((const char *)memory + numbers[k].offset);
            add_number(out, numbers[k].key, *value);
        }
        buf_add_char(out, '}');
        first = false;
    }
    buf_add_str(out, "\n}}\n");
}

static int read_number(struct json *json, const char *key, struct control_memory *memory,
                       struct error *err) {
    double direction;
    if (strcmp(key, "last_direction") == 0) {
        int r = json_number(json, &direction, err);
        memory->last_direction = r < 0 ? 0 : (direction > 0) - (direction < 0);
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].key, key) == 0) {
            return json_number(json, (double *)((char *)memory + numbers[i].offset), err);
        }
    }
    return json_skip(json, err);
}

static int read_memory(struct json *json, struct control_memory *ret_memory, struct error *err) {
    struct control_memory memory = {.is_set = true};
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(json, '{')) {
        return json_fail(json, err, "expected what a loop remembers");
    }
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        r = read_number(json, key, &memory, err);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && (memory.floor < 0 || memory.widening < 0)) {
        return json_fail(json, err, "floor or widening is negative");
    }
    if (r == 0) {
        *ret_memory = memory;
    }
    return r;
}

static int read_loops(struct json *json, struct control_memory_entry *entries, size_t n,
                      struct error *err) {
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(json, '{')) {
        return json_fail(json, err, "expected loops");
    }
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        size_t i = 0;
        while (i < n && strcmp(entries[i].name, key) != 0) {
            i++;
        }
        r = i < n ? read_memory(json, &entries[i].memory, err) : json_skip(json, err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

int control_memory_parse(char *text, size_t len, struct control_memory_entry *entries, size_t n,
                         struct error *err) {
    struct json json = json_begin(text, len, 1);
    bool first = true;
    char *key;
    size_t key_len;
    int r;
    if (!json_take(&json, '{')) {
        return json_fail(&json, err, "expected an object");
    }
    while ((r = json_next_key(&json, &first, &key, &key_len, err)) > 0) {
        r = strcmp(key, "loops") == 0 ? read_loops(&json, entries, n, err) : json_skip(&json, err);
        if (r < 0) {
            return r;
        }
    }
    return r == 0 && !json_at_end(&json) ? json_fail(&json, err, "expected nothing behind it") : r;
}

/* ---- files ---- */

int control_memory_load(const char *path, struct control_memory_entry *entries, size_t n,
                        struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read_stored(path, MAX_BYTES, &text, err);
    if (r == -ENOENT) {
        return 0;
    }
    if (r < 0) {
        return r;
    }
    buf_add_char(&text, '\n'); /* an empty file has memory too */
    r = control_memory_parse(text.data, text.len, entries, n, err);
    if (r < 0) {
        error_set(err, r, "%s: %s", path, err->text);
    }
    return r;
}

int control_memory_save(const char *path, const struct control_memory_entry *entries, size_t n,
                        struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    control_memory_format(entries, n, &text);
    if (text.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    return file_replace(path, 0600, text.data, text.len, err);
}
