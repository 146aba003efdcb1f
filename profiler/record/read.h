#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "exporter/core/arena.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/core/hash.h"

/* Reads samples.jsonl, the record of a run: one JSON object per line, with "kind" as first key. All
 * reports are made from it. One line is in memory at a time. */

enum record_kind {
    RECORD_END,
    RECORD_FINISHED,
    RECORD_LOST,
    RECORD_PHASE,
    RECORD_RUN,
    RECORD_SAMPLE,
    RECORD_SERIES,
    RECORD_TARGET,
};

enum record_type {
    RECORD_COUNTER,
    RECORD_GAUGE,
    RECORD_BUCKET,
    RECORD_COUNT,
    RECORD_SUM,
};

enum record_phase {
    PHASE_NONE,
    PHASE_BASELINE,
    PHASE_COOLDOWN,
    PHASE_RUN,
    PHASE_STOP,
    PHASE_WARMUP,
};

/* The names of types and phases, such as "histogram_bucket" and "baseline"; PHASE_NONE is "". */
extern const char *const record_types[];
extern const char *const record_phases[];

enum {
    RECORD_MAX_LINE = 1 << 20, /* bytes */
    RECORD_MAX_RUN = 1000 * 1000,
    RECORD_MAX_SERIES = 4096,
};

/* GPU memory of the application. With the label, that of all processes since before its start. */
#define RECORD_NEW_GPU_MEMORY "gpu.memory.new_bytes"
#define RECORD_OF_MACHINE "{of=\"machine\"}"

/* One column of the samples: `cpu.user_seconds` or `temperature.celsius{zone="cpu"}`. */
struct record_series {
    size_t index;
    const char *key;
    const char *name;   /* before the brace */
    const char *labels; /* between the braces; "" without */
    const char *unit;
    const char *help;
    enum record_type type;
};

/* A key without the "app." that marks the application's own. */
const char *record_short_key(const char *key);

/* Whether a key is one of the application's own. */
bool record_key_is_app(const char *key);

struct record_value {
    const struct record_series *series;
    double value; /* may be NaN or infinite */
};

struct record_line {
    enum record_kind kind;
    const char *target; /* "" if the kind has none */
    unsigned run;
    double t;                          /* monotonic seconds since the record began */
    double at;                         /* Unix time */
    enum record_phase phase;           /* of a phase line */
    const struct record_value *values; /* of a sample */
    size_t n_values;
    struct json_t *object; /* of the other kinds: the line as jansson's json_t; borrowed */
};

struct record {
    struct record_series **series; /* declared so far; they live as long as the record */
    size_t n_series, cap_series;
    bool torn; /* the last line was incomplete, as after a crash, and ignored */

    char *path;
    FILE *file;
    size_t line; /* of the last line taken */
    struct record_line current;
    struct arena arena;
    struct hash_index by_key;
    struct record_value *values;
    size_t cap_values;
    struct json_t *object;
    char text[RECORD_MAX_LINE + 2];
};

/* Opens the record at `path`. */
int record_open(const char *path, struct record **ret_record, struct error *err);

/* Takes the next line, valid until the next call. 1, 0 at the end, or a negative errno. */
int record_next(struct record *record, struct record_line *ret_line, struct error *err);

/* The series of that key declared so far, or NULL. */
const struct record_series *record_find(const struct record *record, const char *key);

/* Accepts NULL. */
void record_close(struct record *record);

static inline void record_cleanup(struct record **record) {
    record_close(*record);
}
#define CLEANUP_RECORD CLEANUP(record_cleanup)
