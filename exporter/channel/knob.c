#include "exporter/channel/knob.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "exporter/core/number.h"
#include "exporter/metrics/metric.h"

#define MAX_EXACT 9007199254740992.0 /* 2^53 */

static const char *const type_names[] = {
    [PARAM_INT] = "int",       [PARAM_FLOAT] = "float", [PARAM_BOOL] = "bool",
    [PARAM_STRING] = "string", [PARAM_ENUM] = "enum",
};

static const char *const expected[] = {
    [PARAM_INT] = "a whole number",     [PARAM_FLOAT] = "a number",
    [PARAM_BOOL] = "true or false",     [PARAM_STRING] = "a string",
    [PARAM_ENUM] = "one of its values",
};

const char *param_type_name(enum param_type type) {
    return type_names[type];
}

bool param_type_find(const char *name, enum param_type *ret_type) {
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (strcmp(type_names[i], name) == 0) {
            *ret_type = (enum param_type)i;
            return true;
        }
    }
    return false;
}

static bool is_number(enum param_type type) {
    return type == PARAM_INT || type == PARAM_FLOAT;
}

/* What is kept of each knob is bounded, not by the longest line only. */
static int check_texts(const struct param_spec *spec, struct error *err) {
    if (strlen(spec->name) > PARAM_MAX_NAME) {
        return error_set(err, -E2BIG, "%.40s…: a name of more than %d bytes", spec->name,
                         PARAM_MAX_NAME);
    }
    size_t len = spec->unit != NULL ? strlen(spec->unit) : 0;
    len += spec->help != NULL ? strlen(spec->help) : 0;
    for (size_t i = 0; i < spec->n_values; i++) {
        len += strlen(spec->values[i]);
    }
    size_t max = PARAM_MAX_TEXT * (spec->type == PARAM_ENUM ? 4 : 2);
    return len <= max ? 0
                      : error_set(err, -E2BIG, "%s: unit, help and values of more than %zu bytes",
                                  spec->name, max);
}

int param_spec_check(const struct param_spec *spec, struct error *err) {
    int r = check_texts(spec, err);
    if (r < 0) {
        return r;
    }
    if (!metric_label_name_valid(spec->name, strlen(spec->name))) {
        return error_set(err, -EINVAL,
                         "%s: a param's name has letters, digits and _ only, and begins with "
                         "no digit",
                         spec->name);
    }
    bool bounded = isfinite(spec->min) || isfinite(spec->max) || spec->step != 0;
    if (bounded && !is_number(spec->type)) {
        return error_set(err, -EINVAL, "%s: min, max and step are for int and float, not for %s",
                         spec->name, param_type_name(spec->type));
    }
    if (!(spec->min <= spec->max)) {
        return error_set(err, -EINVAL, "%s: its minimum is above its maximum", spec->name);
    }
    if (!(spec->step >= 0) || isinf(spec->step)) {
        return error_set(err, -EINVAL, "%s: its step is not above 0", spec->name);
    }
    if ((spec->n_values > 0) != (spec->type == PARAM_ENUM)) {
        return error_set(err, -EINVAL,
                         spec->type == PARAM_ENUM ? "%s: an enum needs its values"
                                                  : "%s: values are for an enum",
                         spec->name);
    }
    if (spec->initial.form == PARAM_ABSENT) {
        return error_set(err, -EINVAL, "%s: has no default", spec->name);
    }
    return param_check(spec, &spec->initial, err);
}

static void add_number(struct buf *out, double number) {
    char text[NUMBER_MAX_LEN];
    buf_add(out, text, number_format(number, text));
}

static bool is_exact(double number) {
    return number == nearbyint(number) && fabs(number) <= MAX_EXACT;
}

/* Whole numbers differ by up to 2^54, more than a double tells apart. */
static bool is_on_whole_step(double number, double base, double step) {
    int64_t distance = (int64_t)number - (int64_t)base;
    return step > MAX_EXACT ? distance == 0 : distance % (int64_t)step == 0;
}

/* What was computed or written in decimals is off by a little: more where there were many steps to
 * add up, but never so much that half of all values would do, unless doubles are as coarse. */
static bool is_near_step(double number, double base, double step) {
    double steps = (number - base) / step;
    double coarse = 4 * DBL_EPSILON * (fabs(number) + fabs(base)) / step;
    double tolerance = fmin(1e-9 * fmax(1, fabs(steps)), 0.01);
    return fabs(steps - nearbyint(steps)) <= fmax(tolerance, coarse);
}

/* 3 times 0.1 is 0.30000000000000004, which nobody would write. */
static void add_rounded(struct buf *out, double number) {
    if (is_exact(number)) {
        add_number(out, number);
    } else {
        buf_printf(out, "%.12g", number);
    }
}

/* " is not one of its steps of 120, the nearest are 480 and 600" */
static void add_steps(struct buf *out, const struct param_spec *spec, double number) {
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

static bool is_on_step(const struct param_spec *spec, double number) {
    double base = isfinite(spec->min) ? spec->min : 0;
    bool whole = spec->type == PARAM_INT && spec->step == nearbyint(spec->step);
    if (whole && fabs(base) > MAX_EXACT) { /* no int is there to count from */
        base = 0;
    }
    return whole && is_exact(base) ? is_on_whole_step(number, base, spec->step)
                                   : is_near_step(number, base, spec->step);
}

static int check_number(const struct param_spec *spec, double number, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    add_number(&text, number);
    if (spec->type == PARAM_INT && !is_exact(number)) {
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

static int check_enum(const struct param_spec *spec, const char *text, struct error *err) {
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

int param_check(const struct param_spec *spec, const struct param_value *value, struct error *err) {
    enum param_form wanted = is_number(spec->type)      ? PARAM_NUMBER
                             : spec->type == PARAM_BOOL ? PARAM_TRUTH
                                                        : PARAM_TEXT;
    if (value->form != wanted || (wanted == PARAM_NUMBER && !isfinite(value->number))) {
        struct buf got CLEANUP_BUF = {0};
        param_value_format(value, &got);
        return error_set(err, -EINVAL, "%s: expected %s, got %s", spec->name, expected[spec->type],
                         buf_str(&got));
    }
    if (wanted == PARAM_NUMBER) {
        return check_number(spec, value->number, err);
    }
    if (wanted == PARAM_TEXT && strlen(value->text) > PARAM_MAX_TEXT) {
        return error_set(err, -EINVAL, "%s: is longer than %d bytes", spec->name, PARAM_MAX_TEXT);
    }
    return spec->type == PARAM_ENUM ? check_enum(spec, value->text, err) : 0;
}

bool param_value_equal(const struct param_value *a, const struct param_value *b) {
    if (a->form != b->form || a->form == PARAM_ABSENT) {
        return a->form == b->form;
    }
    return a->form == PARAM_TEXT ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

void param_value_format(const struct param_value *value, struct buf *out) {
    switch (value->form) {
    case PARAM_NUMBER:
        add_number(out, value->number);
        break;
    case PARAM_TRUTH:
        buf_add_str(out, value->number != 0 ? "true" : "false");
        break;
    case PARAM_TEXT:
        json_add_string(out, value->text);
        break;
    default:
        buf_add_str(out, "null");
    }
}

static void add_text(struct buf *out, const char *key, const char *text) {
    if (text != NULL) {
        buf_printf(out, ",\"%s\":", key);
        json_add_string(out, text);
    }
}

static void add_bound(struct buf *out, const char *key, double number) {
    if (isfinite(number)) {
        buf_printf(out, ",\"%s\":", key);
        add_number(out, number);
    }
}

void param_spec_format(const struct param_spec *spec, struct buf *out) {
    buf_add_str(out, "\"param\":");
    json_add_string(out, spec->name);
    add_text(out, "type", param_type_name(spec->type));
    buf_add_str(out, ",\"default\":");
    param_value_format(&spec->initial, out);
    add_bound(out, "min", spec->min);
    add_bound(out, "max", spec->max);
    add_bound(out, "step", spec->step > 0 ? spec->step : INFINITY);
    for (size_t i = 0; i < spec->n_values; i++) {
        buf_add_str(out, i == 0 ? ",\"values\":[" : ",");
        json_add_string(out, spec->values[i]);
    }
    buf_add_str(out, spec->n_values > 0 ? "]" : "");
    add_text(out, "unit", spec->unit);
    add_text(out, "help", spec->help);
}

int param_value_read(struct json *json, struct param_value *ret_value, struct error *err) {
    struct param_value value = {0};
    char *text = NULL;
    size_t len;
    bool truth = false;
    int r;
    switch (json_peek(json)) {
    case '"':
        value.form = PARAM_TEXT;
        r = json_string(json, &text, &len, err);
        value.text = text;
        break;
    case 't':
    case 'f':
        value.form = PARAM_TRUTH;
        r = json_bool(json, &truth, err);
        value.number = truth;
        break;
    case 'n':
        r = json_null(json, err);
        break;
    default:
        value.form = PARAM_NUMBER;
        r = json_number(json, &value.number, err);
    }
    if (r == 0) {
        *ret_value = value;
    }
    return r;
}
