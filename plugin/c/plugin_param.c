#define _GNU_SOURCE 1
#include "plugin_param.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_client.h"
#include "plugin_settings.h"
#include "plugin_text.h"

enum { MAX_PARAMS = 100, MAX_VALUES = 100, MAX_TEXT = 4096 };

struct waap_param *waap_params;

static void param_destroy(struct waap_param *param) {
    for (size_t i = 0; param->spec.values != NULL && param->spec.values[i] != NULL; i++) {
        free((char *)param->spec.values[i]);
    }
    free((char **)param->spec.values);
    free((char *)param->spec.name);
    free((char *)param->spec.help);
    free((char *)param->spec.unit);
    free((char *)param->spec.text);
    free(param->value_text);
    free(param);
}

/* Makes a text the caller's own. */
static bool own_text(const char **text) {
    const char *from = *text;
    *text = from == NULL ? NULL : strndup(from, MAX_TEXT);
    return from == NULL || *text != NULL;
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
    const char **values = calloc(n + 1, sizeof(*values));
    param->spec.values = values;
    bool good = values != NULL;
    for (size_t i = 0; good && i < n; i++) {
        values[i] = from[i];
        good = own_text(&values[i]);
    }
    return good;
}

/* The index of an enum's value, -1: none of them. */
static int value_index(const struct waap_param *param, const char *text) {
    for (int i = 0; param->spec.values[i] != NULL; i++) {
        if (strcmp(param->spec.values[i], text) == 0) {
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
    if (param->spec.type == WAAP_INT &&
        (fabs(number) > 0x1p53 || number != (double)(int64_t)number)) {
        return "is not a whole number";
    }
    if (param->spec.type == WAAP_BOOL && number != 0 && number != 1) {
        return "is neither true nor false";
    }
    bool ranged = param->spec.min < param->spec.max;
    return ranged && (number < param->spec.min || number > param->spec.max) ? "is out of range"
                                                                            : NULL;
}

/* The exporter looks more closely, and says so; this is for what is clearly beside them. Without
 * the library of mathematics, which a plugin need not link. */
static bool is_on_step(const struct waap_param *param, double number) {
    if (param->spec.step == 0) { /* a program may have divisions by it end it */
        return true;
    }
    bool bounded = param->spec.min < param->spec.max && isfinite(param->spec.min);
    double steps = (number - (bounded ? param->spec.min : 0)) / param->spec.step;
    if (!(steps > -1e15 && steps < 1e15)) {
        return true;
    }
    double beside = steps - (double)(long long)(steps + (steps < 0 ? -0.5 : 0.5));
    return beside > -0.02 && beside < 0.02;
}

static bool is_textual(const struct waap_param_spec *spec) {
    return spec->type == WAAP_STRING || spec->type == WAAP_ENUM;
}

static bool param_set_default(struct waap_param *param, const char *const *values) {
    bool textual = is_textual(&param->spec);
    if ((textual && param->spec.text == NULL) ||
        (param->spec.type == WAAP_ENUM && values == NULL)) {
        errno = EINVAL;
        return false;
    }
    if (param->spec.type == WAAP_STRING) {
        param->value_text = strdup(param->spec.text);
        return param->value_text != NULL;
    }
    if (param->spec.type == WAAP_ENUM) {
        if (!copy_values(param, values)) {
            return false;
        }
        param->spec.number = value_index(param, param->spec.text);
    }
    if (number_fault(param, param->spec.number) != NULL || (textual && param->spec.number < 0) ||
        !is_on_step(param, param->spec.number)) {
        errno = EINVAL;
        return false;
    }
    atomic_store(&param->value, param->spec.number);
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
    param->spec = *spec;
    param->spec.values = NULL;
    param->spec.text = is_textual(spec) ? spec->text : NULL;
    const char **texts[] = {&param->spec.name, &param->spec.help, &param->spec.unit,
                            &param->spec.text};
    bool good = true;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        good = own_text(texts[i]) && good; /* each: what is not ours is not freed */
    }
    if (!good || !param_set_default(param, spec->values)) {
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
        error = strcmp((*end)->spec.name, param->spec.name) == 0 ? EEXIST : error;
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
    waap_client_wake();
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
    if (param->spec.type == WAAP_ENUM) {
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
    if (param->spec.type == WAAP_STRING) {
        return strcmp(param->value_text, value->text) == 0;
    }
    double number = param->spec.type == WAAP_ENUM ? value_index(param, value->text) : value->number;
    return atomic_load(&param->value) == number;
}

const char *waap_param_turn(struct waap_param *param, const struct waap_json_value *value) {
    static const enum waap_json_type wanted[] = {
        [WAAP_INT] = WAAP_JSON_NUMBER, [WAAP_FLOAT] = WAAP_JSON_NUMBER,
        [WAAP_BOOL] = WAAP_JSON_BOOL,  [WAAP_STRING] = WAAP_JSON_TEXT,
        [WAAP_ENUM] = WAAP_JSON_TEXT,
    };
    if (value->type != wanted[param->spec.type]) {
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
    param->to_call = param->spec.on_change != NULL;
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
        param->spec.on_change(param, param->spec.data);
        pthread_mutex_lock(&waap_lock);
        atomic_store(&param->applied, version);
        waap_client_wake(); /* to report it at once */
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
    if (param->spec.on_change == NULL && atomic_load(&param->applied) != version) {
        atomic_store(&param->applied, version);
        waap_client_wake();
    }
}

static double param_read(struct waap_param *param, bool textual) {
    waap_client_ensure();
    if (param == NULL || (param->spec.type == WAAP_ENUM) != textual ||
        param->spec.type == WAAP_STRING) {
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
    if (param == NULL || param->spec.type != WAAP_ENUM) {
        return "";
    }
    return param->spec.values[(size_t)param_read(param, true)];
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
    if (param == NULL || param->spec.type != WAAP_STRING) {
        return copy_out(waap_get_enum(param), text, size);
    }
    pthread_mutex_lock(&waap_lock);
    unsigned version = atomic_load(&param->version);
    size_t len = copy_out(param->value_text, text, size);
    pthread_mutex_unlock(&waap_lock);
    param_seen(param, version);
    return len;
}
