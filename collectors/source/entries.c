#include "collectors/source/entries.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

void entries_finish(struct entries *entries) {
    for (size_t i = 0; i < entries->n_names; i++) {
        free(entries->names[i]);
    }
    free(entries->names);
    *entries = (struct entries){0};
}

static int add(struct entries *entries, const char *name) {
    char *copy = strdup(name);
    if (copy == NULL) {
        return -ENOMEM;
    }
    entries->names[entries->n_names++] = copy;
    return 0;
}

static int add_matching(struct entries *entries, struct dirent **found, int n, const char *prefix) {
    entries->names = calloc((size_t)n + 1, sizeof(*entries->names));
    int r = entries->names != NULL ? 0 : -ENOMEM;
    for (int i = 0; i < n && r == 0; i++) {
        const char *name = found[i]->d_name;
        if (name[0] != '.' && strncmp(name, prefix, strlen(prefix)) == 0) {
            r = add(entries, name);
        }
    }
    return r;
}

int entries_init(struct entries *entries, const char *dir, const char *prefix) {
    *entries = (struct entries){0};
    struct dirent **found = NULL;
    int n = scandir(dir, &found, NULL, versionsort);
    if (n < 0) {
        return errno == ENOMEM ? -ENOMEM : 0;
    }
    int r = add_matching(entries, found, n, prefix);
    for (int i = 0; i < n; i++) {
        free(found[i]);
    }
    free(found);
    if (r < 0) {
        entries_finish(entries);
    }
    return r;
}
