#include "collectors/jetson/part.h"

#include <unistd.h>

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

int jetson_find_file(struct source_file *file, const char *base, const char *const *names,
                     size_t n_names, struct error *err) {
    for (size_t i = 0; i < n_names && names[i] != NULL; i++) {
        int r = source_file_init(file, base, names[i], NULL, err);
        if (r < 0 || access(file->path, R_OK) == 0) {
            return r;
        }
        source_file_finish(file);
    }
    *file = (struct source_file){.fd = -1};
    return 0;
}

void jetson_lower(char *text) {
    for (; *text != '\0'; text++) {
        *text = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    }
}
