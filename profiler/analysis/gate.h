#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/measure.h"

/* What a target has to keep: "fps.p50 at least 9.5". */

enum gate_kind { GATE_MAX, GATE_MAX_DECREASE, GATE_MAX_INCREASE, GATE_MIN };

enum gate_state {
    GATE_OK,
    GATE_FAILED,
    GATE_SKIPPED, /* needs a baseline and has none */
};

struct gate {
    const char *metric; /* borrowed from the record */
    enum gate_kind kind;
    double limit;
    double value; /* NaN where the target has no such measure: that fails */
    double base;  /* the baseline's, of relative gates */
    const char *unit;
    enum gate_state state;
};

/* Judges the gates (a JSON array, may be NULL) of one target: those for all, for its name, or for
 * the target `of` which it is a setting of (NULL outside of sweeps). `base` may be NULL. The caller
 * frees the result; the measures must outlive it. */
struct gate *gates_judge(const struct json_t *gates, const char *name, const char *of,
                         const struct measures *measures, const struct measures *base,
                         size_t *ret_n);

/* Words why a gate of these measures has no value: "fpss.p50: there is no such measure, did you
 * mean fps.p50?" */
void gate_explain(const struct gate *gate, const struct measures *measures, struct buf *out);

/* "min", "max_increase", …, as in the file. */
const char *gate_kind_name(enum gate_kind kind);

/* Whether the limit is relative to a baseline. */
bool gate_is_relative(const struct gate *gate);
