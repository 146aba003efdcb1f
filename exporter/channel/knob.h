#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/core/json.h"

/* One knob of a plugin: how it is declared, and values for it. Texts are borrowed unless said. */

enum param_type {
    PARAM_INT, /* whole, exact up to 2^53 */
    PARAM_FLOAT,
    PARAM_BOOL,
    PARAM_STRING,
    PARAM_ENUM,
};

enum param_form { PARAM_ABSENT, PARAM_NUMBER, PARAM_TRUTH, PARAM_TEXT };

/* A value as JSON has it. */
struct param_value {
    enum param_form form;
    double number; /* 0 or 1 of a truth */
    const char *text;
};

struct param_spec {
    const char *name;
    enum param_type type;
    struct param_value initial;
    double min, max; /* infinite where not said */
    double step;     /* 0: any */
    const char *unit, *help;
    const char *const *values; /* of an enum */
    size_t n_values;
    void *memory; /* of a copy: where all its texts are */
};

enum { PARAM_MAX_NAME = 256, PARAM_MAX_TEXT = 1024 };

/* "int", "float", …. */
const char *param_type_name(enum param_type type);

/* Finds a type by its name; false where there is none. */
bool param_type_find(const char *name, enum param_type *ret_type);

/* Whether the declaration makes sense; -EINVAL says what does not. */
int param_spec_check(const struct param_spec *spec, struct error *err);

/* Whether the knob can have that value; -EINVAL says why not: "res: 2000 is above its maximum,
 * 1080". */
int param_check(const struct param_spec *spec, const struct param_value *value, struct error *err);

/* Appends the declaration as a plugin makes it, without its braces: "param":"res","type":"int",….
 */
void param_spec_format(const struct param_spec *spec, struct buf *out);

/* Whether two values are the same. */
bool param_value_equal(const struct param_value *a, const struct param_value *b);

/* Appends a value as JSON: 480, true, "fast"; null where there is none. */
void param_value_format(const struct param_value *value, struct buf *out);

/* Reads a number, true, false, a string, or null for none; its text lies in what is read. */
int param_value_read(struct json *json, struct param_value *ret_value, struct error *err);

/* ---- values and declarations that own their texts ---- */

/* Sets such a value to a copy of another; -ENOMEM leaves it as it was. */
int param_value_set(struct param_value *to, const struct param_value *from, struct error *err);
void param_value_finish(struct param_value *value);

/* Makes a copy that owns all it refers to; free it with param_spec_finish. -ENOMEM. */
int param_spec_copy(const struct param_spec *from, struct param_spec *ret_spec, struct error *err);
void param_spec_finish(struct param_spec *spec);

/* Most bytes that such a copy takes with the values that a knob can have at a time: four. */
size_t param_spec_room(const struct param_spec *spec);
