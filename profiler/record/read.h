#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/core/hash.h"

/* Reads samples.jsonl, the record of a run: one JSON object per line, with "kind" as first key. All
 * reports are made from it. One line is in memory at a time. */
struct record;

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

enum {
    RECORD_MAX_LINE = 1 << 20, /* bytes */
    RECORD_MAX_SERIES = 4096,
};

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

/* Opens the record at `path`. */
int record_open(const char *path, struct record **ret_record, struct error *err);

/* Takes the next line; its pointers are valid until the next call. 1, 0 at the end, or a negative
 * errno; the error names file and line. */
int record_next(struct record *record, struct record_line *ret_line, struct error *err);

/* Whether the last line was incomplete, as after a crash, and ignored. */
bool record_is_torn(const struct record *record);

/* The series declared so far. They live as long as the record. */
size_t record_n_series(const struct record *record);
const struct record_series *record_series_at(const struct record *record, size_t index);

/* Accepts NULL. */
void record_close(struct record *record);

static inline void record_cleanup(struct record **record) {
    record_close(*record);
}
#define CLEANUP_RECORD CLEANUP(record_cleanup)

/* The name of a type, such as "histogram_bucket". */
const char *record_type_name(enum record_type type);

/* The name of a phase, such as "baseline"; "" for PHASE_NONE. */
const char *record_phase_name(enum record_phase phase);

/* Parses the lines of a record; has the series declared so far. */
struct record_parser {
    struct record_series **series;
    size_t n_series, cap_series;
    struct hash_index by_key;
    struct record_value *values;
    size_t cap_values;
    struct json_t *object;
};

/* Parses one line without its newline, modifying the text. 0 or -EINVAL. */
int record_parse(struct record_parser *parser, char *text, size_t len, struct record_line *ret_line,
                 struct error *err);

/* Parses `{"kind":"NAME"` and, if the line is a sample, the rest. Modifies the text and yields the
 * name of the kind in it. */
int record_sample_parse(struct record_parser *parser, char *text, size_t len, char **ret_kind,
                        struct record_line *line, struct error *err);

/* The series of that key, or NULL. */
struct record_series *record_series_find(const struct record_parser *parser, const char *key,
                                         size_t len);

/* Frees the parser's content and leaves it empty. */
void record_parser_finish(struct record_parser *parser);
