#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knob.h"

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
    free(spec->memory);
    *spec = (struct param_spec){0};
}

static size_t size_of(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

/* The list of an enum's values, then all texts. */
static size_t memory_of(const struct param_spec *spec) {
    size_t size = spec->n_values * sizeof(*spec->values) + size_of(spec->name) +
                  size_of(spec->unit) + size_of(spec->help) + size_of(spec->initial.text);
    for (size_t i = 0; i < spec->n_values; i++) {
        size += size_of(spec->values[i]);
    }
    return size;
}

size_t param_spec_room(const struct param_spec *spec) {
    size_t longest = spec->type == PARAM_STRING ? PARAM_MAX_TEXT + 1 : 0;
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

int param_spec_copy(const struct param_spec *from, struct param_spec *ret_spec, struct error *err) {
    const char **values = malloc(memory_of(from));
    if (values == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    char *at = (char *)(values + from->n_values);
    for (size_t i = 0; i < from->n_values; i++) {
        values[i] = put(&at, from->values[i]);
    }
    struct param_spec spec = *from;
    spec.memory = values;
    spec.values = values;
    spec.name = put(&at, from->name);
    spec.unit = put(&at, from->unit);
    spec.help = put(&at, from->help);
    spec.initial.text = put(&at, from->initial.text);
    *ret_spec = spec;
    return 0;
}
