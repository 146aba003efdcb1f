#include "exporter/channel/knob.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/metrics/metric.h"

#define MAX_EXACT 9007199254740992.0 /* 2^53 */

static const char *const type_names[] = {
    [KNOB_INT] = "int",       [KNOB_FLOAT] = "float", [KNOB_BOOL] = "bool",
    [KNOB_STRING] = "string", [KNOB_ENUM] = "enum",   [KNOB_ANY] = "any",
};

static const char *const expected[] = {
    [KNOB_INT] = "a whole number",     [KNOB_FLOAT] = "a number",
    [KNOB_BOOL] = "true or false",     [KNOB_STRING] = "a string",
    [KNOB_ENUM] = "one of its values", [KNOB_ANY] = "a number, true, false or a string",
};

const char *knob_type_name(enum knob_type type) {
    return type_names[type];
}

bool knob_type_find(const char *name, enum knob_type *ret_type) {
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (strcmp(type_names[i], name) == 0) {
            *ret_type = (enum knob_type)i;
            return true;
        }
    }
    return false;
}

static bool is_number(enum knob_type type) {
    return type == KNOB_INT || type == KNOB_FLOAT;
}

/* The memory of each knob is bounded, not by the longest line only. */
static int check_texts(const struct knob_spec *spec, struct error *err) {
    if (strlen(spec->name) > KNOB_MAX_NAME) {
        return error_set(err, -E2BIG, "%.40s…: a name of more than %d bytes", spec->name,
                         KNOB_MAX_NAME);
    }
    size_t len = spec->unit != NULL ? strlen(spec->unit) : 0;
    len += spec->help != NULL ? strlen(spec->help) : 0;
    for (size_t i = 0; i < spec->n_values; i++) {
        len += strlen(spec->values[i]);
    }
    size_t max = KNOB_MAX_TEXT * (spec->type == KNOB_ENUM ? 4 : 2);
    return len <= max ? 0
                      : error_set(err, -E2BIG, "%s: unit, help and values of more than %zu bytes",
                                  spec->name, max);
}

int knob_spec_check(const struct knob_spec *spec, struct error *err) {
    int r = check_texts(spec, err);
    if (r < 0) {
        return r;
    }
    bool bounded = isfinite(spec->min) || isfinite(spec->max) || spec->step != 0;
    bool is_enum = spec->type == KNOB_ENUM;
    if (bounded && !is_number(spec->type)) {
        return error_set(err, -EINVAL, "%s: min, max and step are for int and float, not for %s",
                         spec->name, knob_type_name(spec->type));
    }
    const struct {
        bool broken;
        const char *text;
    } rules[] = {
        {!metric_label_name_valid(spec->name, strlen(spec->name)),
         "a param's name has letters, digits and _ only, and begins with no digit"},
        {!(spec->min <= spec->max), "its minimum is above its maximum"},
        {!(spec->step >= 0) || isinf(spec->step), "its step is not above 0"},
        {is_enum && spec->n_values == 0, "an enum needs its values"},
        {!is_enum && spec->n_values > 0, "values are for an enum"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        if (rules[i].broken) {
            return error_set(err, -EINVAL, "%s: %s", spec->name, rules[i].text);
        }
    }
    return knob_check(spec, &spec->initial, err);
}

static void add_number(struct buf *out, double number) {
    char text[NUMBER_MAX_LEN];
    buf_add(out, text, number_format(number, text));
}

static bool is_exact(double number) {
    return number == nearbyint(number) && fabs(number) <= MAX_EXACT;
}

/* Whole numbers differ by up to 2^54, more than a double can tell apart. */
static bool is_on_whole_step(double number, double base, double step) {
    int64_t distance = (int64_t)number - (int64_t)base;
    return step > MAX_EXACT ? distance == 0 : distance % (int64_t)step == 0;
}

/* A computed or decimal value is off by a little, and by more after many steps; but the tolerance
 * must not accept half of all values, unless doubles are as coarse. */
static bool is_near_step(double number, double base, double step) {
    double steps = (number - base) / step;
    double coarse = 4 * DBL_EPSILON * (fabs(number) + fabs(base)) / step;
    double tolerance = fmin(1e-9 * fmax(1, fabs(steps)), 0.01);
    return fabs(steps - nearbyint(steps)) <= fmax(tolerance, coarse);
}

/* 3 times 0.1 is 0.30000000000000004: not what a user writes. */
static void add_rounded(struct buf *out, double number) {
    if (is_exact(number)) {
        add_number(out, number);
    } else {
        buf_printf(out, "%.12g", number);
    }
}

/* " is not one of its steps of 120, the nearest are 480 and 600" */
static void add_steps(struct buf *out, const struct knob_spec *spec, double number) {
    double base = isfinite(spec->min) ? spec->min : 0;
    double below = base + floor((number - base) / spec->step) * spec->step;
    double above = below + spec->step;
    buf_add_str(out, " is not one of its steps of ");
    add_number(out, spec->step);
    buf_add_str(out, above <= spec->max ? ", the nearest are " : ", the nearest is ");
    add_rounded(out, below);
    if (above <= spec->max) {
        buf_add_str(out, " and ");
        add_rounded(out, above);
    }
}

static bool is_on_step(const struct knob_spec *spec, double number) {
    double base = isfinite(spec->min) ? spec->min : 0;
    bool whole = spec->type == KNOB_INT && spec->step == nearbyint(spec->step);
    if (whole && fabs(base) > MAX_EXACT) { /* no int is there to count from */
        base = 0;
    }
    return whole && is_exact(base) ? is_on_whole_step(number, base, spec->step)
                                   : is_near_step(number, base, spec->step);
}

static int check_number(const struct knob_spec *spec, double number, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    add_number(&text, number);
    if (spec->type == KNOB_INT && !is_exact(number)) {
        return error_set(err, -EINVAL, "%s: %s is not a whole number up to 2^53", spec->name,
                         buf_str(&text));
    }
    bool below = number < spec->min;
    if (below || number > spec->max) {
        buf_add_str(&text, below ? " is below its minimum, " : " is above its maximum, ");
        add_number(&text, below ? spec->min : spec->max);
    } else if (spec->step > 0 && !is_on_step(spec, number)) {
        add_steps(&text, spec, number);
    } else {
        return 0;
    }
    return error_set(err, -EINVAL, "%s: %s", spec->name, buf_str(&text));
}

static int check_enum(const struct knob_spec *spec, const char *text, struct error *err) {
    struct buf list CLEANUP_BUF = {0};
    for (size_t i = 0; i < spec->n_values; i++) {
        if (strcmp(spec->values[i], text) == 0) {
            return 0;
        }
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", spec->values[i]);
    }
    return error_set(err, -EINVAL, "%s: expected one of %s, got \"%s\"", spec->name, buf_str(&list),
                     text);
}

int knob_check(const struct knob_spec *spec, const struct knob_value *value, struct error *err) {
    enum knob_form wanted = is_number(spec->type)     ? KNOB_NUMBER
                            : spec->type == KNOB_BOOL ? KNOB_TRUTH
                            : spec->type != KNOB_ANY  ? KNOB_TEXT
                                                      : value->form;
    if (value->form == KNOB_ABSENT && spec->initial.form == KNOB_ABSENT) {
        return 0;
    }
    if (value->form != wanted || (wanted == KNOB_NUMBER && !isfinite(value->number))) {
        struct buf got CLEANUP_BUF = {0};
        knob_value_format(value, &got);
        return error_set(err, -EINVAL, "%s: expected %s, got %s", spec->name, expected[spec->type],
                         buf_str(&got));
    }
    if (wanted == KNOB_NUMBER) {
        return check_number(spec, value->number, err);
    }
    if (wanted == KNOB_TEXT && strlen(value->text) > KNOB_MAX_TEXT) {
        return error_set(err, -EINVAL, "%s: is longer than %d bytes", spec->name, KNOB_MAX_TEXT);
    }
    return spec->type == KNOB_ENUM ? check_enum(spec, value->text, err) : 0;
}

bool knob_value_equal(const struct knob_value *a, const struct knob_value *b) {
    if (a->form != b->form || a->form == KNOB_ABSENT) {
        return a->form == b->form;
    }
    return a->form == KNOB_TEXT ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

void knob_value_format(const struct knob_value *value, struct buf *out) {
    switch (value->form) {
    case KNOB_NUMBER:
        add_number(out, value->number);
        break;
    case KNOB_TRUTH:
        buf_add_str(out, value->number != 0 ? "true" : "false");
        break;
    case KNOB_TEXT:
        json_add_string(out, value->text);
        break;
    default:
        buf_add_str(out, "null");
    }
}

void knob_value_put(struct buf *out, const char *key, const struct knob_value *value) {
    json_put(out, key, "%s", ""); /* the key and its comma */
    knob_value_format(value, out);
}

static void put_bound(struct buf *out, const char *key, double number) {
    if (isfinite(number)) {
        json_put_number(out, key, number);
    }
}

void knob_spec_put(struct buf *out, const struct knob_spec *spec) {
    json_put_string(out, "param", spec->name);
    json_put_string(out, "type", knob_type_name(spec->type));
    knob_value_put(out, "default", &spec->initial);
    put_bound(out, "min", spec->min);
    put_bound(out, "max", spec->max);
    put_bound(out, "step", spec->step > 0 ? spec->step : INFINITY);
    if (spec->n_values > 0) {
        json_open(out, "values", '[');
        for (size_t i = 0; i < spec->n_values; i++) {
            json_put_string(out, NULL, spec->values[i]);
        }
        json_close(out, ']');
    }
    if (spec->unit != NULL) {
        json_put_string(out, "unit", spec->unit);
    }
    if (spec->help != NULL) {
        json_put_string(out, "help", spec->help);
    }
}

int knob_value_read(struct json *json, struct knob_value *ret_value, struct error *err) {
    struct knob_value value = {0};
    char *text = NULL;
    bool truth = false;
    int r;
    switch (json_peek(json)) {
    case '"':
        value.form = KNOB_TEXT;
        r = json_read_string(json, &text, NULL, err);
        value.text = text;
        break;
    case 't':
    case 'f':
        value.form = KNOB_TRUTH;
        r = json_read_bool(json, &truth, err);
        value.number = truth;
        break;
    case 'n':
        r = json_read_null(json, err);
        break;
    default:
        value.form = KNOB_NUMBER;
        r = json_read_number(json, &value.number, err);
    }
    if (r == 0) {
        *ret_value = value;
    }
    return r;
}

/* ---- values and declarations that own their texts ---- */

void knob_value_finish(struct knob_value *value) {
    free((char *)value->text);
    *value = (struct knob_value){0};
}

void knob_value_set(struct knob_value *to, const struct knob_value *from) {
    struct knob_value value = *from;
    value.text = value.text != NULL ? mem_strdup(value.text) : NULL;
    knob_value_finish(to);
    *to = value;
}

void knob_spec_finish(struct knob_spec *spec) {
    free(spec->memory);
    *spec = (struct knob_spec){0};
}

static size_t size_of(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

/* The list of an enum's values, then all texts. */
static size_t memory_of(const struct knob_spec *spec) {
    size_t size = spec->n_values * sizeof(*spec->values) + size_of(spec->name) +
                  size_of(spec->unit) + size_of(spec->help) + size_of(spec->initial.text);
    for (size_t i = 0; i < spec->n_values; i++) {
        size += size_of(spec->values[i]);
    }
    return size;
}

size_t knob_spec_room(const struct knob_spec *spec) {
    bool free_text = spec->type == KNOB_STRING || spec->type == KNOB_ANY;
    size_t longest = free_text ? KNOB_MAX_TEXT + 1 : 0;
    for (size_t i = 0; i < spec->n_values; i++) {
        size_t size = size_of(spec->values[i]);
        longest = size > longest ? size : longest;
    }
    return sizeof(*spec) + memory_of(spec) + 4 * longest;
}

/* NULL stays NULL. */
static const char *put(char **at, const char *text) {
    size_t size = size_of(text);
    return size > 0 ? memcpy((*at += size) - size, text, size) : NULL;
}

struct knob_spec knob_spec_copy(const struct knob_spec *from) {
    const char **values = mem_alloc(memory_of(from));
    char *at = (char *)(values + from->n_values);
    for (size_t i = 0; i < from->n_values; i++) {
        values[i] = put(&at, from->values[i]);
    }
    struct knob_spec spec = *from;
    spec.memory = values;
    spec.values = values;
    spec.name = put(&at, from->name);
    spec.unit = put(&at, from->unit);
    spec.help = put(&at, from->help);
    spec.initial.text = put(&at, from->initial.text);
    return spec;
}
