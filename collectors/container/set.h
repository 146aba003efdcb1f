#pragma once

#include "collectors/cgroup/container_path.h"
#include "collectors/cgroup/tree.h"
#include "collectors/container/info.h"
#include "collectors/container/network.h"
#include "collectors/source/io_series.h"
#include "collectors/source/peak.h"

enum { CONTAINER_N_FAILURES = 4 };

/* By what energy was given to a container. */
enum container_energy_source {
    CONTAINER_ENERGY_CPU,
    CONTAINER_ENERGY_GPU,
    CONTAINER_N_ENERGY_SOURCES,
};

/* One container, from the moment its cgroup appears until that is gone. */
struct container {
    char *path; /* in the primary hierarchy: the label `id` */
    char *id;
    char *pod_uid; /* or NULL */
    enum container_runtime runtime;
    uid_t owner; /* who made the cgroup */
    struct cgroup_place place;
    double start_seconds; /* since 1970; 0: not known yet */
    unsigned seen;        /* the round of discovery that saw it */
    unsigned n_hunts;     /* how often hierarchies were searched that have it elsewhere */
    bool watched;         /* the kernel tells when its last process leaves */
    bool gone;            /* its cgroup was found to be no more */

    /* What is told of it: */
    struct container_info info;
    unsigned names_generation; /* when that was looked up */
    int64_t next_bundle_ns;    /* when to look for its bundle again */
    int64_t bundle_wait_ns;
    int64_t next_cri_ns; /* when to ask for its pod again */
    int64_t cri_wait_ns;

    /* Its label sets; `labels` is NULL where the user left it out. */
    struct labels *labels;
    struct labels *cpu_labels;
    struct labels *failure_labels[CONTAINER_N_FAILURES];
    struct labels *energy_labels[CONTAINER_N_ENERGY_SOURCES];
    struct io_series io;
    struct container_network network;

    /* Of the sampler: */
    int cpu_fd; /* kept open; -1: too many are */
    double cpu_seconds;
    int64_t cpu_ns;      /* when that was read; 0: never */
    double used_seconds; /* of CPU time, by whoever read it last */
    struct peak peak;

    double joules[CONTAINER_N_ENERGY_SOURCES];
    double counted_seconds; /* of CPU time that the energy is known for; NAN: none so far */
};

struct container *container_create(const char *path, const struct container_path *classified,
                                   int64_t peak_window_ns);
void container_destroy(struct container *container);

/* Takes over the information about it and renders its labels, if `shown` returns true. */
void container_describe(struct container *container, struct container_info *info,
                        bool (*shown)(void *context, const char *name, const char *image),
                        void *context);

/* pgfault and pgmajfault, each in the scopes container and hierarchy. */
extern const enum cgroup_value container_failure_values[CONTAINER_N_FAILURES];

/* The containers that exist. The kernel tells of cgroups that come and go by inotify; now and then,
 * and when it has lost count, all of the tree is walked. */
struct container_set;

struct container_set_config {
    const struct cgroup_tree *tree;
    size_t max_containers;
    int64_t peak_window_ns;
    /* The first process came into it, or the last one left: what it has used is final then. */
    void (*changed)(void *context, struct container *container);
    void (*gone)(void *context, struct container *container); /* before it is freed */
    void *context;
};

/* If the kernel grants no inotify, the tree is walked every time. */
struct container_set *container_set_create(const struct container_set_config *config);
void container_set_destroy(struct container_set *set); /* accepts NULL; `gone` is not called */

/* Takes in what has come and gone; unless `all`, a walk that is due may be put off a little. 0, or
 * why the tree could not be walked, or -E2BIG where there are too many containers (the rest is
 * kept). */
int container_set_update(struct container_set *set, bool all, int64_t now_ns, struct error *err);

/* The descriptor that is readable while containers have come, gone or changed; -1: there is none.
 */
int container_set_fd(const struct container_set *set);

/* Takes in what is known without looking at the tree: for when the descriptor is readable. */
void container_set_wake(struct container_set *set);

/* Drops those that were found to be gone, without waiting for the next update. */
void container_set_drop_gone(struct container_set *set);

size_t container_set_n(const struct container_set *set);
struct container *container_set_at(const struct container_set *set, size_t i);
