#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/core/json.h"

/* One knob of a plugin: declaration and values. Texts are borrowed unless a call copies them. */

enum knob_type {
    KNOB_INT, /* whole, exact up to 2^53 */
    KNOB_FLOAT,
    KNOB_BOOL,
    KNOB_STRING,
    KNOB_ENUM,
    KNOB_ANY, /* a number, a truth or a text */
};

enum knob_form { KNOB_ABSENT, KNOB_NUMBER, KNOB_TRUTH, KNOB_TEXT };

/* A value as JSON has it. */
struct knob_value {
    enum knob_form form;
    double number; /* 0 or 1 of a truth */
    const char *text;
};

struct knob_spec {
    const char *name;
    enum knob_type type;
    struct knob_value initial; /* absent: no value until somebody requests one */
    double min, max;           /* infinite: no bound */
    double step;               /* 0: any */
    const char *unit, *help;
    const char *const *values; /* of an enum */
    size_t n_values;
    void *memory; /* of a copy: where all its texts are */
};

enum { KNOB_MAX_NAME = 256, KNOB_MAX_TEXT = 1024 };

/* "int", "float", …. */
const char *knob_type_name(enum knob_type type);

/* Finds a type by its name; false: unknown. */
bool knob_type_find(const char *name, enum knob_type *ret_type);

/* Checks the declaration: 0, or -EINVAL with the fault. */
int knob_spec_check(const struct knob_spec *spec, struct error *err);

/* 0, or -EINVAL with the reason: "res: 2000 is above its maximum, 1080". */
int knob_check(const struct knob_spec *spec, const struct knob_value *value, struct error *err);

/* Appends the members of the declaration as a plugin sends it: "param":"res","type":"int",…. */
void knob_spec_put(struct buf *out, const struct knob_spec *spec);

/* Whether two values are the same. */
bool knob_value_equal(const struct knob_value *a, const struct knob_value *b);

/* Appends a value as JSON: 480, true, "fast"; null if it is absent. */
void knob_value_format(const struct knob_value *value, struct buf *out);

/* The same as a member of an object. */
void knob_value_put(struct buf *out, const char *key, const struct knob_value *value);

/* Reads a number, true, false, a string, or null for none; its text lies in what is read. */
int knob_value_read(struct json *json, struct knob_value *ret_value, struct error *err);

/* ---- values and declarations that own their texts ---- */

/* Sets such a value to a copy of another. */
void knob_value_set(struct knob_value *to, const struct knob_value *from);
void knob_value_finish(struct knob_value *value);

/* A copy that owns all it refers to; free it with knob_spec_finish. */
struct knob_spec knob_spec_copy(const struct knob_spec *from);
void knob_spec_finish(struct knob_spec *spec);

/* Most bytes that such a copy takes with the values that a knob can have at a time: four. */
size_t knob_spec_room(const struct knob_spec *spec);
