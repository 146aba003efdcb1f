#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/core/hash.h"
#include "exporter/core/json_write.h"
#include "profiler/record/read.h"

/* Writes samples.jsonl: a JSON object per line, each in one write, so it is valid at any time. */

/* The declaration of a key in the values of samples. */
struct run_series {
    const char *key; /* "cpu.user_seconds", "temperature.celsius{zone=\"cpu\"}" */
    enum record_type type;
    const char *unit; /* "s", "B", …; "": none */
    const char *help;
};

struct run_record {
    int fd;
    off_t n_bytes;          /* of complete lines in the file */
    int64_t began_ns;       /* monotonic clock; `t` of every line counts from here */
    const char *target;     /* of the run being recorded */
    unsigned run;           /* from 1 */
    struct buf line;        /* being written */
    struct buf declared;    /* series lines to write before it */
    struct hash_index keys; /* declared; they are in `arena` */
    struct arena arena;
    bool left_out;      /* a value was dropped: too many series or too long a line */
    struct error error; /* the first failure to write; "": none */
};

/* Creates or empties the file. */
int run_record_open(struct run_record *record, const char *path, struct error *err);
void run_record_close(struct run_record *record); /* accepts a zeroed struct */

/* Seconds since the record began. */
double run_record_seconds(const struct run_record *record, int64_t now_ns);

/* A line: run_record_begin, then members by these calls or the writer of JSON, then run_record_end.
 * A text of NULL and a number of NAN are left out. The calls that end a line write it: 0 or a
 * negative errno, and `error` if it is the first. */
void run_record_begin(struct run_record *record, const char *kind);
void run_record_text(struct run_record *record, const char *key, const char *text);
void run_record_number(struct run_record *record, const char *key, double number);
/* Adds "target", "run", "t" and "at". */
void run_record_moment(struct run_record *record, int64_t now_ns);
int run_record_end(struct run_record *record);

/* {"kind":"phase",…}. */
int run_record_phase(struct run_record *record, const char *phase);

/* A sample: run_record_begin_sample, then values, then run_record_end_sample. NAN is left out. */
void run_record_begin_sample(struct run_record *record, int64_t now_ns);
void run_record_value(struct run_record *record, const struct run_series *series, double value);

/* Declares a series before its first value. False if readers would not accept one more. */
bool run_record_declare(struct run_record *record, const struct run_series *series);
int run_record_end_sample(struct run_record *record);
