#include "exporter/push/reserved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t gather(const struct collector *const *collectors, const char **names) {
    size_t n = 0;
    for (; *collectors != NULL; collectors++) {
        const struct metric_desc *desc;
        for (size_t i = 0; (desc = collector_metric(*collectors, i)) != NULL; i++, n++) {
            if (names != NULL) {
                names[n] = desc->name;
            }
        }
    }
    return n;
}

int push_reserved_init(struct push_reserved *reserved, const struct collector *const *collectors,
                       struct error *err) {
    size_t n = collectors != NULL ? gather(collectors, NULL) : 0;
    *reserved = (struct push_reserved){0};
    if (n == 0) {
        return 0;
    }
    reserved->names = calloc(n, sizeof(*reserved->names));
    if (reserved->names == NULL) {
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    reserved->n_names = gather(collectors, reserved->names);
    qsort(reserved->names, n, sizeof(*reserved->names), compare_names);
    return 0;
}

void push_reserved_finish(struct push_reserved *reserved) {
    free(reserved->names);
    *reserved = (struct push_reserved){0};
}

bool push_reserved_has(const struct push_reserved *reserved, const char *name) {
    if (strncmp(name, "waap_", strlen("waap_")) == 0) {
        return true;
    }
    return reserved->n_names > 0 && bsearch(&name, reserved->names, reserved->n_names,
                                            sizeof(*reserved->names), compare_names) != NULL;
}
