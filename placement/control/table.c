#include "placement/control/config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/memory.h"

/* A long list of names must leave room for the rest of an error. */
enum { MAX_NAMES_LEN = 600 };

struct reading {
    const struct control_loop_config *loop;
    const char *measure;
    struct control_entry *entries;
    size_t n_entries, capacity;
    struct buf knobs, measures; /* the names that occur, each once */
    size_t n_runs;
    bool has_sweep;
    struct control_entry entry; /* of the run that is read */
};

/* The list begins and ends in ", ", so that a name is found with what is around it. */
static void note_name(struct buf *names, const char *name) {
    struct buf entry CLEANUP_BUF = {0};
    buf_printf(&entry, ", %s, ", name);
    if (strstr(buf_str(names), "…") == NULL && strstr(buf_str(names), buf_str(&entry)) == NULL) {
        bool is_last = names->len + strlen(name) >= MAX_NAMES_LEN;
        buf_printf(names, "%s%s, ", names->len > 0 ? "" : ", ", is_last ? "…" : name);
    }
}

static int read_knob(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    struct knob_value value;
    note_name(&in->knobs, key);
    if (strcmp(key, in->loop->knob.param) != 0) {
        return json_skip(json, err);
    }
    int r = knob_value_read(json, &value, err);
    in->entry.position = r < 0 ? NAN : control_config_position(in->loop, &value);
    return r;
}

static int read_measure(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    note_name(&in->measures, key);
    return strcmp(key, in->measure) != 0 || json_peek(json) == 'n'
               ? json_skip(json, err)
               : json_read_number(json, &in->entry.measure, err);
}

static int read_run_key(struct json *json, const char *key, void *context, struct error *err) {
    if (strcmp(key, "knobs") == 0) {
        return json_each(json, '{', "names and values", read_knob, context, err);
    }
    return strcmp(key, "measures") == 0
               ? json_each(json, '{', "names and values", read_measure, context, err)
               : json_skip(json, err);
}

static int read_run(struct json *json, const char *key, void *context, struct error *err) {
    (void)key;
    struct reading *in = context;
    in->n_runs++;
    in->entry = (struct control_entry){.position = NAN, .measure = NAN};
    int r = json_each(json, '{', "knobs and measures", read_run_key, in, err);
    if (r == 0 && isfinite(in->entry.position) && isfinite(in->entry.measure)) {
        ARRAY_GROW(&in->entries, &in->capacity, in->n_entries + 1);
        in->entries[in->n_entries++] = in->entry;
    }
    return r;
}

static int read_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    if (strcmp(key, "sweep") != 0) {
        return json_skip(json, err);
    }
    in->has_sweep = true;
    return json_each(json, '[', "a list of runs: sweep", read_run, in, err);
}

static void reading_finish(struct reading *in) {
    buf_finish(&in->knobs);
    buf_finish(&in->measures);
    free(in->entries);
}
#define CLEANUP_READING CLEANUP(reading_finish)

static const char *names_of(struct buf *names) {
    buf_truncate(names, names->len > 0 ? names->len - 2 : 0);
    return names->len > 0 ? names->data + 2 : "none";
}

static int fail_few(struct reading *in, size_t n, struct error *err) {
    return error_set(
        err, -EINVAL,
        "of %zu runs in the sweep, %zu positions of %s have a measure %s: at least two "
        "are needed; its knobs: %s; its measures: %s",
        in->n_runs, n, in->loop->knob.param, in->measure, names_of(&in->knobs),
        names_of(&in->measures));
}

static int by_position(const void *a, const void *b) {
    const struct control_entry *left = a, *right = b;
    return (left->position > right->position) - (left->position < right->position);
}

/* Averages entries of the same position; returns how many are left. */
static size_t average(struct control_entry *entries, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        double sum = 0;
        size_t end = i;
        for (; end < n && entries[end].position == entries[i].position; end++) {
            sum += entries[end].measure;
        }
        entries[kept++] = (struct control_entry){.position = entries[i].position,
                                                 .measure = sum / (double)(end - i)};
        i = end;
    }
    return kept;
}

int control_table_parse(char *text, size_t len, const struct control_loop_config *loop,
                        const char *measure, struct arena *arena,
                        const struct control_entry **ret_entries, size_t *ret_n,
                        struct error *err) {
    struct reading in CLEANUP_READING = {.loop = loop, .measure = measure};
    struct json json = json_begin(text, len, 1);
    int r = json_each(&json, '{', "a summary of waap run", read_key, &in, err);
    if (r < 0) {
        return r;
    }
    if (!in.has_sweep) {
        return error_set(err, -EINVAL, "has no \"sweep\": not the summary of a sweep");
    }
    if (in.n_entries > 0) {
        qsort(in.entries, in.n_entries, sizeof(*in.entries), by_position);
    }
    size_t n = average(in.entries, in.n_entries);
    if (n < 2) {
        return fail_few(&in, n, err);
    }
    *ret_entries = arena_copy(arena, in.entries, n * sizeof(*in.entries));
    *ret_n = n;
    return 0;
}
