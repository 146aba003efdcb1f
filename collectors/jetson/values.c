#include "collectors/jetson/values.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int jetson_values_add(struct jetson_values *values, const char *base, const char *name, int scale,
                      enum jetson_metric metric, const char *label, const char *value) {
    struct source_file file;
    if (source_file_init(&file, base, name, NULL, NULL) < 0) {
        return -ENOMEM;
    }
    if (access(file.path, R_OK) < 0) {
        source_file_finish(&file);
        return 0;
    }
    struct jetson_value *rows = realloc(values->rows, (values->n_rows + 1) * sizeof(*rows));
    struct labels *labels = label != NULL ? labels_render(label, value) : NULL;
    values->rows = rows != NULL ? rows : values->rows;
    if (rows == NULL || (label != NULL && labels == NULL)) {
        labels_destroy(labels);
        source_file_finish(&file);
        return -ENOMEM;
    }
    rows[values->n_rows++] =
        (struct jetson_value){.file = file, .scale = scale, .metric = metric, .labels = labels};
    return 1;
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
