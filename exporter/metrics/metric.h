#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"

enum metric_type {
    METRIC_UNTYPED,
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_SUMMARY,
    METRIC_INFO, /* the name ends in _info, every value is 1; a gauge in the text format */
};

/* Describes a family of series: static, or a collector's own, alive until its next collection. */
struct metric_desc {
    const char *name; /* full name as users query it: counters with _total, infos with _info */
    const char *help;
    enum metric_type type;
    const char *unit;   /* "seconds", or NULL; the name (less _total) must then end in it */
    const char *labels; /* "cpu, mode": for --list-metrics only, or NULL */
};

/* [a-zA-Z_:][a-zA-Z0-9_:]* */
bool metric_name_valid(const char *name, size_t len);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool metric_label_name_valid(const char *name, size_t len);

/* Whether the first `len` bytes of a name are something and then `ending`. */
bool metric_name_ends_with(const char *name, size_t len, const char *ending);

/* Whether their last word is the unit: x_bytes. */
bool metric_name_has_unit(const char *name, size_t len, const char *unit);

/* Checks that name, type, unit and help fit together. */
int metric_desc_check(const struct metric_desc *desc, struct error *err);

/* "counter", "gauge", "untyped", "info", …. */
const char *metric_type_name(enum metric_type type);
