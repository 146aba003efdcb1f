#pragma once

#include "collectors/jetson/part.h"

/* Files of one number each that go to a metric as they are: the state of a part that is a list of
 * them. A zeroed struct is an empty list. */
struct jetson_value {
    struct source_file file;
    int scale;
    enum jetson_metric metric;
    struct labels *labels; /* NULL: none */
};

struct jetson_values {
    struct jetson_value *rows;
    size_t n_rows;
};

/* Adds the file `name` under `base` to the list if it exists, with the label `label="value"` (NULL:
 * none). 1: added, 0: there is no such file, -ENOMEM. */
int jetson_values_add(struct jetson_values *values, const char *base, const char *name, int scale,
                      enum jetson_metric metric, const char *label, const char *value);

/* Reads every file of the list. The first one that holds no number is reported. */
int jetson_values_collect(struct jetson_values *values, struct snapshot *out, struct error *err);
void jetson_values_finish(struct jetson_values *values);
