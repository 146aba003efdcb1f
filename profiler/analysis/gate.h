#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/measure.h"

struct json_t;

/* Limits on the measures of a target: "fps.p50 at least 9.5". */

enum gate_kind { GATE_MAX, GATE_MAX_DECREASE, GATE_MAX_INCREASE, GATE_MIN };
enum { N_GATE_KINDS = GATE_MIN + 1 };

enum gate_state {
    GATE_OK,
    GATE_FAILED,
    GATE_SKIPPED, /* it needs a baseline, and there is none */
};

struct gate {
    const char *metric; /* borrowed from the record */
    enum gate_kind kind;
    double limit;
    double value; /* NaN if the target has no such measure, which fails the gate */
    double base;  /* value of the baseline, for relative gates */
    const char *unit;
    enum gate_state state;
};

/* Evaluates the gates (a JSON array or NULL) of one target: those for all targets, for its name, or
 * for the target `of` that it is a variant of (NULL outside of sweeps). `base` may be NULL. The
 * caller frees the result; the measures must outlive it. */
struct gate *gates_judge(const struct json_t *gates, const char *name, const char *of,
                         const struct measures *measures, const struct measures *base,
                         size_t *ret_n);

/* Appends why a gate failed: "fps.mean is 34 /s, min is 40 /s", "fpss.p50: there is no such
 * measure, did you mean fps.p50?" */
void gate_explain(const struct gate *gate, const struct measures *measures, struct buf *out);

/* "min", "max_increase", …, as in sage.yaml. */
extern const char *const gate_kinds[];

/* Whether the limit is relative to a baseline. */
bool gate_is_relative(const struct gate *gate);
