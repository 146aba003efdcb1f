#include "collectors/jetson/part.h"

#include <math.h>
#include <stdlib.h>

#include "exporter/core/memory.h"

double jetson_scale(double value, int scale) {
    return scale < 0 ? value / -scale : scale > 0 ? value * scale : value;
}

int jetson_add_number(struct source_file *file, int scale, const struct metric_desc *desc,
                      const struct labels *labels, struct snapshot *out, struct error *err) {
    double value;
    int r = source_file_number(file, &value, err);
    if (r > 0) {
        snapshot_add(out, desc, labels, jetson_scale(value, scale));
    }
    return r < 0 ? r : 0;
}

const char *jetson_find_file(const char *base, const char *const *names, size_t n_names) {
    for (size_t i = 0; i < n_names && names[i] != NULL; i++) {
        if (source_file_exists(base, names[i])) {
            return names[i];
        }
    }
    return NULL;
}

void jetson_lower(char *text) {
    for (; *text != '\0'; text++) {
        *text = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    }
}

void jetson_values_add(struct jetson_values *values, const char *base, const char *name,
                       struct jetson_form form, const char *label, const char *value) {
    ARRAY_GROW(&values->rows, &values->cap_rows, values->n_rows + 1);
    struct jetson_value *row = &values->rows[values->n_rows++];
    row->form = form;
    row->labels = label != NULL ? labels_render(label, value) : NULL;
    source_file_init(&row->file, base, name, NULL);
}

/* NAN: nothing to show. `clock` is the last clock, in hertz. */
static double convert(const struct jetson_form *form, double value, double clock) {
    switch (form->kind) {
    case JETSON_SWITCH:
    case JETSON_SWITCH_ON:
        return value > 0;
    case JETSON_RATIO:
        return fmin(jetson_scale(value, form->scale), 1);
    case JETSON_ACTIVITY:
        return clock > 0 && value >= 0 ? fmin(value / (clock / 1000) / 100, 1) : NAN;
    case JETSON_CLOCK:
    case JETSON_PLAIN:
        break;
    }
    return jetson_scale(value, form->scale);
}

int jetson_values_collect(void *state, struct jetson_round *round, struct snapshot *out,
                          struct error *err) {
    (void)round;
    struct jetson_values *values = state;
    bool on = false;
    double clock = NAN;
    bool missing = false;
    int result = 0;
    for (size_t i = 0; i < values->n_rows; i++) {
        struct jetson_value *row = &values->rows[i];
        const struct jetson_form *form = &row->form;
        if ((form->when != JETSON_ALWAYS && !on) || (form->when == JETSON_INSTEAD && !missing)) {
            continue;
        }
        double value = 1;
        int r = source_file_number(&row->file, &value, result == 0 ? err : NULL);
        missing = r == 0;
        bool known = r > 0 || (missing && form->kind == JETSON_SWITCH_ON);
        if (form->kind == JETSON_CLOCK) {
            on = known;
            clock = value;
        } else if (form->kind == JETSON_SWITCH || form->kind == JETSON_SWITCH_ON) {
            on = known && value > 0;
        }
        double converted = known ? convert(form, value, clock) : NAN;
        if (!isnan(converted)) {
            snapshot_add(out, &jetson_descs[form->metric], row->labels, converted);
        }
        result = result == 0 && r < 0 ? r : result;
    }
    return result;
}

void jetson_values_close(void *state) {
    struct jetson_values *values = state;
    for (size_t i = 0; i < values->n_rows; i++) {
        source_file_finish(&values->rows[i].file);
        labels_destroy(values->rows[i].labels);
    }
    free(values->rows);
}
