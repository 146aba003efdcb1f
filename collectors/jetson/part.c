#include "collectors/jetson/part.h"

#include <stdlib.h>
#include <unistd.h>

#include "exporter/core/memory.h"

double jetson_scale(double value, int scale) {
    return scale < 0 ? value / -scale : value * scale;
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

void jetson_find_file(struct source_file *file, const char *base, const char *const *names,
                      size_t n_names) {
    for (size_t i = 0; i < n_names && names[i] != NULL; i++) {
        source_file_init(file, base, names[i], NULL);
        if (access(file->path, R_OK) == 0) {
            return;
        }
        source_file_finish(file);
    }
    *file = (struct source_file){.fd = -1};
}

void jetson_lower(char *text) {
    for (; *text != '\0'; text++) {
        *text = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    }
}

bool jetson_values_add(struct jetson_values *values, const char *base, const char *name, int scale,
                       enum jetson_metric metric, const char *label, const char *value) {
    struct source_file file;
    source_file_init(&file, base, name, NULL);
    if (access(file.path, R_OK) < 0) {
        source_file_finish(&file);
        return false;
    }
    ARRAY_GROW(&values->rows, &values->cap_rows, values->n_rows + 1);
    values->rows[values->n_rows++] = (struct jetson_value){
        .file = file, .scale = scale, .metric = metric, .labels = labels_render(label, value)};
    return true;
}

int jetson_values_collect(struct jetson_values *values, struct snapshot *out, struct error *err) {
    int result = 0;
    for (size_t i = 0; i < values->n_rows; i++) {
        struct jetson_value *row = &values->rows[i];
        int r = jetson_add_number(&row->file, row->scale, &jetson_descs[row->metric], row->labels,
                                  out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

void jetson_values_finish(struct jetson_values *values) {
    for (size_t i = 0; i < values->n_rows; i++) {
        source_file_finish(&values->rows[i].file);
        labels_destroy(values->rows[i].labels);
    }
    free(values->rows);
    *values = (struct jetson_values){0};
}
