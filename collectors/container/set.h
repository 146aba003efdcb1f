#pragma once

#include "collectors/cgroup/container_path.h"
#include "collectors/cgroup/tree.h"
#include "collectors/container/info.h"
#include "collectors/container/network.h"
#include "collectors/source/io_series.h"
#include "collectors/source/peak.h"

enum { CONTAINER_N_FAILURES = 4 };

/* Kinds of energy attributed to a container. */
enum container_energy_source {
    CONTAINER_ENERGY_CPU,
    CONTAINER_ENERGY_GPU,
    CONTAINER_N_ENERGY_SOURCES,
};

/* One container, for as long as its cgroup exists. */
struct container {
    char *path; /* in the primary hierarchy: the label `id` */
    char *id;
    char *pod_uid; /* or NULL */
    enum container_runtime runtime;
    uid_t owner; /* the user that created the cgroup */
    struct cgroup_place place;
    double start_seconds; /* since 1970; 0: not known yet */
    unsigned seen;        /* the last walk that found it */
    unsigned n_hunts;     /* searches of the hierarchies that lack it */
    bool watched;         /* the kernel reports the end of its last process */
    bool gone;            /* its cgroup was removed */

    /* From the runtimes: */
    struct container_info info;
    unsigned names_generation; /* of the last lookup */
    struct retry {
        int64_t next_ns;
        int64_t wait_ns; /* after that, doubled each time */
    } bundle, cri;       /* when to look for its bundle, to request its pod */

    /* Label sets; `labels` is NULL if the user excluded it. */
    struct labels *labels;
    struct labels *cpu_labels;
    struct labels *failure_labels[CONTAINER_N_FAILURES];
    struct labels *energy_labels[CONTAINER_N_ENERGY_SOURCES];
    struct io_series io;
    struct container_network network;

    /* Of the sampler: */
    int cpu_fd; /* kept open; -1: closed */
    double cpu_seconds;
    int64_t cpu_ns;      /* when that was read; 0: never */
    double used_seconds; /* of CPU time, as last read */
    struct peak peak;

    double joules[CONTAINER_N_ENERGY_SOURCES];
    double counted_seconds; /* of CPU time with attributed energy; NAN: none yet */
};

struct container *container_create(const char *path, const struct container_path *classified,
                                   int64_t peak_window_ns);
void container_destroy(struct container *container);

/* Takes over the information about it and renders its labels, if `shown` returns true. */
void container_describe(struct container *container, struct container_info *info,
                        bool (*shown)(void *context, const char *name, const char *image),
                        void *context);

/* The values of container_memory_failures_total. */
extern const struct container_failure {
    enum cgroup_value value;
    const char *type, *scope; /* labels */
} container_failures[CONTAINER_N_FAILURES];

/* Whether the path is that of the container, maybe in another hierarchy or namespace. */
bool container_has_id(const struct container *container, const struct container_path *path);

/* The existing containers. Cgroups are found by inotify events and, once a minute or if events were
 * lost, by a walk over the tree. */
struct container_set {
    /* Set before it is opened: */
    const struct cgroup_tree *tree;
    size_t max_containers;
    int64_t peak_window_ns;
    /* The first process started in it, or the last one ended. */
    void (*changed)(void *context, struct container *container);
    void (*gone)(void *context, struct container *container); /* before it is freed */
    void *context;

    struct container **rows;
    size_t n_rows;

    /* Readable if containers have changed; -1 if the kernel grants no inotify: then the tree is
     * walked every time. */
    int inotify_fd;

    /* For set.c: */
    size_t cap_rows;
    const char *root; /* of the primary hierarchy, which has all containers */
    const char
        *unified; /* of the v2 hierarchy, which has cgroup.events: the same, another or NULL */
    struct watched *watched;
    size_t n_watched, cap_watched;
    bool blind; /* something could not be watched: events are incomplete */
    bool walk;  /* due at once */
    int64_t next_walk_ns;
    int64_t next_hunt_ns;
    unsigned round;
    size_t next;   /* the container that comes next if nothing has changed since the last round */
    size_t hunted; /* the hierarchy that is searched */
    size_t n_left_out;
    struct buf walk_path, event_path;
};

void container_set_open(struct container_set *set);
void container_set_close(struct container_set *set); /* `gone` is not called; accepts zeroes */

/* Adds and drops containers; unless `all`, a walk may be delayed a little. 0, the errno of the
 * walk, or -E2BIG if there are too many containers (the others are kept). */
int container_set_update(struct container_set *set, bool all, int64_t now_ns, struct error *err);

/* Handles events only: for when the descriptor is readable. */
void container_set_wake(struct container_set *set);

/* Drops the containers marked as gone. */
void container_set_drop_gone(struct container_set *set);
