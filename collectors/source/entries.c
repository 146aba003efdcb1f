#include "collectors/source/entries.h"

#include <dirent.h>
#include <string.h>

#include "exporter/core/memory.h"

void entries_finish(struct entries *entries) {
    for (size_t i = 0; i < entries->n_names; i++) {
        free(entries->names[i]);
    }
    free(entries->names);
    *entries = (struct entries){0};
}

void entries_init(struct entries *entries, const char *dir, const char *prefix) {
    *entries = (struct entries){0};
    struct dirent **found = NULL;
    int n = scandir(dir, &found, NULL, versionsort);
    if (n < 0) {
        return;
    }
    entries->names = mem_zalloc((size_t)n + 1, sizeof(*entries->names));
    for (int i = 0; i < n; i++) {
        const char *name = found[i]->d_name;
        if (name[0] != '.' && strncmp(name, prefix, strlen(prefix)) == 0) {
            entries->names[entries->n_names++] = mem_strdup(name);
        }
        free(found[i]);
    }
    free(found);
}
