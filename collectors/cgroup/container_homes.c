#include "collectors/cgroup/container_homes.h"

#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_id.h"

struct container_home {
    pid_t pid;
    unsigned round; /* of the latest list that it was in */
    char *path;     /* NULL: in no container */
};

void container_homes_begin(struct container_homes *homes) {
    size_t kept = 0;
    for (size_t i = 0; i < homes->n_rows; i++) {
        if (homes->rows[i].round == homes->round) {
            homes->rows[kept++] = homes->rows[i];
        } else {
            free(homes->rows[i].path);
        }
    }
    homes->n_rows = kept;
    homes->round++;
}

/* Where the process is, or belongs. */
static size_t place_of(const struct container_homes *homes, pid_t pid) {
    size_t low = 0, high = homes->n_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (homes->rows[middle].pid < pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct container_homes *homes, size_t i, pid_t pid) {
    return i < homes->n_rows && homes->rows[i].pid == pid;
}

static bool make_room(struct container_homes *homes, size_t i) {
    if (homes->n_rows == homes->cap_rows) {
        size_t cap = 2 * homes->cap_rows + 8;
        struct container_home *rows = reallocarray(homes->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return false;
        }
        homes->rows = rows;
        homes->cap_rows = cap;
    }
    memmove(&homes->rows[i + 1], &homes->rows[i], (homes->n_rows - i) * sizeof(*homes->rows));
    homes->n_rows++;
    return true;
}

const char *container_homes_see(struct container_homes *homes, const char *procfs, pid_t pid) {
    size_t i = place_of(homes, pid);
    if (!is_at(homes, i, pid)) {
        if (!make_room(homes, i)) {
            return NULL;
        }
        char *path = NULL;
        homes->rows[i] = (struct container_home){
            .pid = pid,
            .path = container_cgroup_of_pid(procfs, pid, &path) == 0 ? path : NULL,
        };
    }
    homes->rows[i].round = homes->round;
    return homes->rows[i].path;
}

const char *container_homes_find(const struct container_homes *homes, pid_t pid) {
    size_t i = place_of(homes, pid);
    return is_at(homes, i, pid) ? homes->rows[i].path : NULL;
}

void container_homes_finish(struct container_homes *homes) {
    for (size_t i = 0; i < homes->n_rows; i++) {
        free(homes->rows[i].path);
    }
    free(homes->rows);
    *homes = (struct container_homes){0};
}
