#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Writes samples.jsonl: one JSON object per line, each written at once, so that what is there is
 * valid whatever happens to us. Everything else is derived from it. */

enum run_type {
    RUN_COUNTER,
    RUN_GAUGE,
    RUN_HISTOGRAM_BUCKET,
    RUN_HISTOGRAM_SUM,
    RUN_HISTOGRAM_COUNT,
};

/* What a key of a sample's values means; its texts are copied. */
struct run_series {
    const char *key; /* "cpu.user_seconds", "temperature.celsius{zone=\"cpu\"}" */
    enum run_type type;
    const char *unit; /* "s", "B", …; "": none */
    const char *help;
};

struct run_record {
    int fd;
    off_t n_bytes;       /* of whole lines in the file */
    int64_t began_ns;    /* of the monotonic clock: t of every line counts from here */
    const char *target;  /* of the lines that belong to a run */
    unsigned run;        /* from 1 */
    struct buf line;     /* being written */
    struct buf declared; /* lines of series that come before it */
    char **keys;         /* declared, sorted */
    size_t n_keys, cap_keys;
    uint64_t n_samples;
    bool left_out; /* a value, as readers take so many series and such long lines only */
};

/* Creates or empties the file. */
int run_record_open(struct run_record *record, const char *path, struct error *err);
void run_record_close(struct run_record *record); /* accepts zeroes */

/* Seconds since the record began. */
double run_record_seconds(const struct run_record *record, int64_t now_ns);

/* A line: begun with its kind, then keys and values, then written. */
void run_record_begin(struct run_record *record, const char *kind);
void run_record_text(struct run_record *record, const char *key, const char *text);
void run_record_texts(struct run_record *record, const char *key, const char *const *texts);
void run_record_number(struct run_record *record, const char *key, double number); /* NAN: not */
void run_record_bool(struct run_record *record, const char *key, bool truth);
void run_record_open_object(struct run_record *record, const char *key);
void run_record_close_object(struct run_record *record);
/* A value that is JSON already. */
void run_record_json(struct run_record *record, const char *key, const char *json);
/* "target", "run", "t" and "at" of this moment. */
void run_record_moment(struct run_record *record, int64_t now_ns);
int run_record_end(struct run_record *record, struct error *err);

/* {"kind":"phase",…}. */
int run_record_phase(struct run_record *record, const char *phase, struct error *err);

/* A sample: begun for a moment, then values, then written by run_record_end_sample. A value of NAN
 * is left out. */
void run_record_begin_sample(struct run_record *record, int64_t now_ns);
void run_record_value(struct run_record *record, const struct run_series *series, double value);
int run_record_end_sample(struct run_record *record, struct error *err);
