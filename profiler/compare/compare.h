#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "profiler/analysis/gate.h"
#include "profiler/analysis/measure.h"

/* `waap compare A B`: what changed from one record to another, and whether it is significant. */

/* One side, read from its summary. A zeroed struct is empty. */
struct compare_side {
    const char *name; /* as the user gave it */
    struct json_t *summary;
    struct compare_target *targets;
    size_t n_targets;
    size_t n_failed_runs;
};

struct compare_target {
    const char *name; /* borrowed from the summary, like `of` */
    const char *of;
    struct measures measures;
};

enum compare_change {
    CHANGE_NONE,    /* too small or not significant */
    CHANGE_UNCLEAR, /* large enough, but too few runs */
    CHANGE_BETTER,
    CHANGE_WORSE,
    CHANGE_OTHER, /* of a measure that is neither good nor bad */
};

struct compare_row {
    const char *target;
    const struct measure *a, *b;
    double change; /* relative to A */
    double p;      /* probability of chance */
    enum compare_change kind;
};

struct compare_gate {
    const char *target;
    struct gate gate;
    bool by_chance; /* exceeds the limit, but is not significant */
};

/* A target or measure that only one side has. */
struct compare_absence {
    const char *target;
    const struct measure *measure; /* NULL: the whole target */
    bool lost;                     /* only A has it */
};

/* A difference between the environments. */
struct compare_difference {
    const char *key; /* borrowed from the summary */
    char *a, *b;
    bool matters; /* the results cannot be compared */
};

struct comparison {
    struct compare_side a, b;
    double threshold; /* smaller changes are ignored */
    struct compare_row *rows;
    size_t n_rows, cap_rows;
    struct compare_gate *gates;
    size_t n_gates, cap_gates;
    struct compare_absence *absences;
    size_t n_absences, cap_absences;
    struct compare_difference *differences;
    size_t n_differences, cap_differences;
    size_t n_targets; /* that both sides have */
};

/* Reads the text of a summary; the name is borrowed. comparison_finish frees the side, always. */
int compare_side_parse(const char *name, const char *text, size_t len, struct compare_side *side,
                       struct error *err);

/* Fills the comparison of its two sides. */
int compare_make(struct comparison *comparison, struct error *err);
void comparison_finish(struct comparison *comparison);
#define CLEANUP_COMPARISON CLEANUP(comparison_finish)

/* 0 ok, 1 worse, 3 the application failed in B, 4 the environments differ. B is worse if it lacks a
 * target of A, or if a gate fails; if it has no gates, if a measure got worse or is missing. */
int compare_exit_code(const struct comparison *comparison);

/* Appends a table for people, with colours if it is for a terminal. */
void compare_write_text(const struct comparison *comparison, bool all, bool colours,
                        struct buf *out);

/* Appends everything as JSON. */
void compare_write_json(const struct comparison *comparison, struct buf *out);

/* The command; returns the exit code. */
int compare_main(int argc, char **argv);
