#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/param.h"

void param_value_finish(struct param_value *value) {
    free((char *)value->text);
    *value = (struct param_value){0};
}

int param_value_set(struct param_value *to, const struct param_value *from, struct error *err) {
    struct param_value value = *from;
    if (value.text != NULL) {
        value.text = strdup(value.text);
        if (value.text == NULL) {
            return error_set(err, -ENOMEM, "out of memory");
        }
    }
    param_value_finish(to);
    *to = value;
    return 0;
}

void param_spec_finish(struct param_spec *spec) {
    for (size_t i = 0; i < spec->n_values; i++) {
        free((char *)spec->values[i]);
    }
    free((void *)spec->values);
    free((char *)spec->name);
    free((char *)spec->unit);
    free((char *)spec->help);
    param_value_finish(&spec->initial);
    *spec = (struct param_spec){0};
}

static bool copy_text(const char **text) {
    *text = *text != NULL ? strdup(*text) : NULL;
    return *text != NULL;
}

int param_spec_copy(const struct param_spec *from, struct param_spec *ret_spec, struct error *err) {
    struct param_spec spec = *from;
    spec.initial = (struct param_value){0};
    bool complete = copy_text(&spec.name);
    complete &= copy_text(&spec.unit) || from->unit == NULL;
    complete &= copy_text(&spec.help) || from->help == NULL;
    const char **values = calloc(from->n_values + 1, sizeof(*values));
    for (size_t i = 0; values != NULL && i < from->n_values; i++) {
        values[i] = strdup(from->values[i]);
        complete &= values[i] != NULL;
    }
    spec.values = values;
    spec.n_values = values != NULL ? from->n_values : 0;
    if (!complete || values == NULL || param_value_set(&spec.initial, &from->initial, err) < 0) {
        param_spec_finish(&spec);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_spec = spec;
    return 0;
}
