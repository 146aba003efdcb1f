#include "placement/control/config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"

/* So that a long table of names leaves room for the other words of an error. */
enum { MAX_NAMES_LEN = 600 };

struct reading {
    struct json json;
    struct error *err;
    const struct control_loop_config *loop;
    const char *measure;
    struct buf *entries;        /* struct control_entry */
    struct buf knobs, measures; /* the names that were there, each once */
    size_t n_runs;
    bool has_sweep;
};

/* ---- one run ---- */

static bool is_among(const struct buf *names, const char *name) {
    size_t len = strlen(name);
    for (const char *at = buf_str(names); *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n == len && memcmp(at, name, n) == 0) {
            return true;
        }
        at += n;
        at += strspn(at, ", ");
    }
    return false;
}

static void note_name(struct buf *names, const char *name) {
    if (!is_among(names, "…") && !is_among(names, name)) {
        bool is_last = names->len + strlen(name) >= MAX_NAMES_LEN;
        buf_printf(names, "%s%s", names->len > 0 ? ", " : "", is_last ? "…" : name);
    }
}

static int read_knob(struct reading *in, const char *key, double *position) {
    note_name(&in->knobs, key);
    if (strcmp(key, in->loop->knob.param) != 0) {
        return json_skip(&in->json, in->err);
    }
    struct knob_value value;
    int r = knob_value_read(&in->json, &value, in->err);
    if (r < 0) {
        return r;
    }
    if (in->loop->n_levels > 0) {
        int level = control_config_level(in->loop, &value);
        *position = level >= 0 ? level : NAN;
    } else {
        *position = value.form == KNOB_NUMBER ? value.number : NAN;
    }
    return 0;
}

static int read_measure(struct reading *in, const char *key, double *measure) {
    note_name(&in->measures, key);
    if (strcmp(key, in->measure) != 0 || json_peek(&in->json) == 'n') {
        return json_skip(&in->json, in->err);
    }
    return json_number(&in->json, measure, in->err);
}

static int read_values(struct reading *in,
                       int (*read)(struct reading *in, const char *key, double *value),
                       double *value) {
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected names and values");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        r = read(in, key, value);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static int read_run(struct reading *in) {
    struct control_entry entry = {.position = NAN, .measure = NAN};
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected knobs and measures");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        if (strcmp(key, "knobs") == 0) {
            r = read_values(in, read_knob, &entry.position);
        } else if (strcmp(key, "measures") == 0) {
            r = read_values(in, read_measure, &entry.measure);
        } else {
            r = json_skip(&in->json, in->err);
        }
        if (r < 0) {
            return r;
        }
    }
    in->n_runs++;
    if (r == 0 && isfinite(entry.position) && isfinite(entry.measure)) {
        buf_add(in->entries, &entry, sizeof(entry));
    }
    return r;
}

static int read_sweep(struct reading *in) {
    bool first = true;
    int r;
    in->has_sweep = true;
    if (!json_take(&in->json, '[')) {
        return json_fail(&in->json, in->err, "sweep: expected a list");
    }
    while ((r = json_next_element(&in->json, &first, in->err)) > 0) {
        r = read_run(in);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static int read_summary(struct reading *in) {
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected a summary of waap run");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        r = strcmp(key, "sweep") == 0 ? read_sweep(in) : json_skip(&in->json, in->err);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* ---- all of them ---- */

static void reading_finish(struct reading *in) {
    buf_finish(&in->knobs);
    buf_finish(&in->measures);
}
#define CLEANUP_READING CLEANUP(reading_finish)

static const char *names_of(const struct buf *names) {
    return names->len > 0 ? buf_str(names) : "none";
}

static int complain_few(const struct reading *in, size_t n, struct error *err) {
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

/* Makes one of those at the same position; returns how many are left. */
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
    struct buf collected CLEANUP_BUF = {0};
    struct reading in CLEANUP_READING = {.json = json_begin(text, len, 1),
                                         .err = err,
                                         .loop = loop,
                                         .measure = measure,
                                         .entries = &collected};
    int r = read_summary(&in);
    if (r < 0) {
        return r;
    }
    if (!in.has_sweep) {
        return error_set(err, -EINVAL, "has no \"sweep\": it is not the summary of one");
    }
    size_t n = collected.len / sizeof(struct control_entry);
    struct control_entry *entries = arena_copy(arena, buf_str(&collected), collected.len);
    if (collected.failed || entries == NULL) {
        error_set(err, -ENOMEM, "out of memory");
        return -ENOMEM;
    }
    qsort(entries, n, sizeof(*entries), by_position);
    n = average(entries, n);
    if (n < 2) {
        return complain_few(&in, n, err);
    }
    *ret_entries = entries;
    *ret_n = n;
    return 0;
}
