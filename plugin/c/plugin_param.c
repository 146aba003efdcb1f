#define _GNU_SOURCE 1
#include "plugin_param.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_client.h"
#include "plugin_settings.h"
#include "plugin_text.h"
#include "plugin_wake.h"

enum { MAX_PARAMS = 100, MAX_VALUES = 100, MAX_TEXT = 4096 };

struct waap_param *waap_params;

static void param_destroy(struct waap_param *param) {
    for (size_t i = 0; param->values != NULL && param->values[i] != NULL; i++) {
        free(param->values[i]);
    }
    free(param->values);
    free(param->name);
    free(param->help);
    free(param->unit);
    free(param->text);
    free(param->value_text);
    free(param);
}

static bool copy_text(const char *from, char **to) {
    *to = from == NULL ? NULL : strndup(from, MAX_TEXT);
    return from == NULL || *to != NULL;
}

static bool copy_values(struct waap_param *param, const char *const *from) {
    size_t n = 0;
    while (from[n] != NULL && n <= MAX_VALUES) {
        n++;
    }
    if (n == 0 || n > MAX_VALUES) {
        errno = EINVAL;
        return false;
    }
    param->values = calloc(n + 1, sizeof(*param->values));
    for (size_t i = 0; param->values != NULL && i < n; i++) {
        if (!copy_text(from[i], &param->values[i])) {
            return false;
        }
    }
    return param->values != NULL;
}

/* The index of an enum's value, -1: none of them. */
static int value_index(const struct waap_param *param, const char *text) {
    for (int i = 0; param->values[i] != NULL; i++) {
        if (strcmp(param->values[i], text) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *number_fault(const struct waap_param *param, double number) {
    if (!isfinite(number)) {
        return "is not a number";
    }
    /* Beyond 2^53 every number is whole, but not every whole number a double. */
    if (param->type == WAAP_INT && (fabs(number) > 0x1p53 || number != (double)(int64_t)number)) {
        return "is not a whole number";
    }
    if (param->type == WAAP_BOOL && number != 0 && number != 1) {
        return "is neither true nor false";
    }
    bool ranged = param->min < param->max;
    return ranged && (number < param->min || number > param->max) ? "is out of range" : NULL;
}

/* The exporter looks more closely, and says so; this is for what is clearly beside them. Without
 * the library of mathematics, which a plugin need not link. */
static bool is_on_step(const struct waap_param *param, double number) {
    if (param->step == 0) { /* a program may have divisions by it end it */
        return true;
    }
    bool bounded = param->min < param->max && isfinite(param->min);
    double steps = (number - (bounded ? param->min : 0)) / param->step;
    if (!(steps > -1e15 && steps < 1e15)) {
        return true;
    }
    double beside = steps - (double)(long long)(steps + (steps < 0 ? -0.5 : 0.5));
    return beside > -0.02 && beside < 0.02;
}

static bool param_set_default(struct waap_param *param, const struct waap_param_spec *spec) {
    bool textual = spec->type == WAAP_STRING || spec->type == WAAP_ENUM;
    if (textual && spec->text == NULL) {
        errno = EINVAL;
        return false;
    }
    if (spec->type == WAAP_STRING) {
        return copy_text(spec->text, &param->text) && copy_text(spec->text, &param->value_text);
    }
    if (spec->type == WAAP_ENUM) {
        if (spec->values == NULL || !copy_values(param, spec->values)) {
            errno = spec->values == NULL ? EINVAL : errno;
            return false;
        }
        param->number = value_index(param, spec->text);
    }
    if (number_fault(param, param->number) != NULL || (textual && param->number < 0) ||
        !is_on_step(param, param->number)) {
        errno = EINVAL;
        return false;
    }
    atomic_store(&param->value, param->number);
    return true;
}

static struct waap_param *param_create(const struct waap_param_spec *spec) {
    /* False for what is no number, too. */
    bool ordered = spec->min <= spec->max && spec->step >= 0 && isfinite(spec->step);
    if (spec->name == NULL || spec->name[0] == '\0' || (unsigned)spec->type > WAAP_ENUM ||
        !ordered) {
        errno = EINVAL;
        return NULL;
    }
    struct waap_param *param = calloc(1, sizeof(*param));
    if (param == NULL) {
        return NULL;
    }
    param->type = spec->type;
    param->number = spec->number;
    param->min = spec->min;
    param->max = spec->max;
    param->step = spec->step;
    param->on_change = spec->on_change;
    param->data = spec->data;
    if (!copy_text(spec->name, &param->name) || !copy_text(spec->help, &param->help) ||
        !copy_text(spec->unit, &param->unit) || !param_set_default(param, spec)) {
        param_destroy(param);
        return NULL;
    }
    return param;
}

static struct waap_param *param_new(const struct waap_param_spec *spec) {
    struct waap_param *param = param_create(spec);
    if (param == NULL) {
        return NULL;
    }
    waap_client_start();
    pthread_mutex_lock(&waap_lock);
    int error = 0;
    size_t n = 0;
    struct waap_param **end = &waap_params;
    for (; *end != NULL; end = &(*end)->next) {
        n++;
        error = strcmp((*end)->name, param->name) == 0 ? EEXIST : error;
    }
    error = error == 0 && n >= MAX_PARAMS ? ENOSPC : error;
    if (error == 0) {
        *end = param;
    }
    pthread_mutex_unlock(&waap_lock);
    if (error != 0) {
        param_destroy(param);
        errno = error;
        return NULL;
    }
    waap_wake_up();
    return param;
}

struct waap_param *waap_param_new(const struct waap_param_spec *spec) {
    struct waap_param *param = param_new(spec);
    if (param == NULL) {
        waap_settings_tell("param", spec->name,
                           "its default is not within its range or values, or these are not valid");
    }
    return param;
}

static const char *turn_text(struct waap_param *param, const char *text) {
    if (param->type == WAAP_ENUM) {
        int index = value_index(param, text);
        if (index < 0) {
            return "is none of its values";
        }
        atomic_store(&param->value, index);
        return NULL;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        return "finds no memory";
    }
    free(param->value_text);
    param->value_text = copy;
    return NULL;
}

/* Whether the application has that value already: every connection begins with being told. */
static bool is_applied(struct waap_param *param, const struct waap_json_value *value) {
    if (atomic_load(&param->version) != atomic_load(&param->applied)) {
        return false;
    }
    if (param->type == WAAP_STRING) {
        return strcmp(param->value_text, value->text) == 0;
    }
    double number = param->type == WAAP_ENUM ? value_index(param, value->text) : value->number;
    return atomic_load(&param->value) == number;
}

const char *waap_param_turn(struct waap_param *param, const struct waap_json_value *value) {
    static const enum waap_json_type wanted[] = {
        [WAAP_INT] = WAAP_JSON_NUMBER, [WAAP_FLOAT] = WAAP_JSON_NUMBER,
        [WAAP_BOOL] = WAAP_JSON_BOOL,  [WAAP_STRING] = WAAP_JSON_TEXT,
        [WAAP_ENUM] = WAAP_JSON_TEXT,
    };
    if (value->type != wanted[param->type]) {
        return "is of another type";
    }
    if (is_applied(param, value)) {
        param->reported = false;
        return NULL;
    }
    bool textual = value->type == WAAP_JSON_TEXT;
    const char *fault =
        textual ? turn_text(param, value->text) : number_fault(param, value->number);
    if (fault != NULL) {
        return fault;
    }
    if (!textual) {
        atomic_store(&param->value, value->number);
    }
    atomic_fetch_add(&param->version, 1);
    param->to_call = param->on_change != NULL;
    return NULL;
}

void waap_params_call(void) {
    pthread_mutex_lock(&waap_lock);
    for (struct waap_param *param = waap_params; param != NULL; param = param->next) {
        if (!param->to_call) {
            continue;
        }
        param->to_call = false;
        unsigned version = atomic_load(&param->version);
        pthread_mutex_unlock(&waap_lock);
        param->on_change(param, param->data);
        pthread_mutex_lock(&waap_lock);
        atomic_store(&param->applied, version);
        waap_wake_up(); /* to report it at once */
    }
    pthread_mutex_unlock(&waap_lock);
}

void waap_params_forget(void) {
    for (struct waap_param *param = waap_params; param != NULL; param = param->next) {
        param->declared = false;
        param->reported = false;
    }
}

/* Notes that the application has the value, and lets the exporter know soon. */
static void param_seen(struct waap_param *param, unsigned version) {
    if (param->on_change == NULL && atomic_load(&param->applied) != version) {
        atomic_store(&param->applied, version);
        waap_wake_up();
    }
}

static double param_read(struct waap_param *param, bool textual) {
    waap_client_ensure();
    if (param == NULL || (param->type == WAAP_ENUM) != textual || param->type == WAAP_STRING) {
        return 0;
    }
    unsigned version = atomic_load(&param->version);
    double value = atomic_load(&param->value);
    param_seen(param, version);
    return value;
}

int64_t waap_get_int(struct waap_param *param) {
    return (int64_t)param_read(param, false);
}

double waap_get_float(struct waap_param *param) {
    return param_read(param, false);
}

bool waap_get_bool(struct waap_param *param) {
    return param_read(param, false) != 0;
}

const char *waap_get_enum(struct waap_param *param) {
    if (param == NULL || param->type != WAAP_ENUM) {
        return "";
    }
    return param->values[(size_t)param_read(param, true)];
}

static size_t copy_out(const char *from, char *text, size_t size) {
    size_t len = strlen(from);
    if (size > 0) {
        size_t n = len < size ? len : size - 1;
        memcpy(text, from, n);
        text[n] = '\0';
    }
    return len;
}

size_t waap_get_string(struct waap_param *param, char *text, size_t size) {
    waap_client_ensure();
    if (param == NULL || param->type != WAAP_STRING) {
        return copy_out(waap_get_enum(param), text, size);
    }
    pthread_mutex_lock(&waap_lock);
    unsigned version = atomic_load(&param->version);
    size_t len = copy_out(param->value_text, text, size);
    pthread_mutex_unlock(&waap_lock);
    param_seen(param, version);
    return len;
}
