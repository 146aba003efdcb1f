#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/settings/problems.h"
#include "profiler/analysis/gate.h"

/* The `profiling:` section of a sage.yaml. Lists end in NULL; the arena has all memory. */

enum run_gpu { RUN_GPU_AUTO, RUN_GPU_ALL, RUN_GPU_NONE };

/* A file or folder of the machine in a container. */
struct run_mount {
    const char *source, *target;
    int64_t writable; /* 0 or 1 */
};

struct run_mounts {
    struct run_mount *items;
    size_t n;
};

/* One way of running the application. The section has defaults for all targets. */
struct run_target {
    const char *name;
    const char *const *args;
    const char *const *command; /* NULL: that of the image or of the command line */
    const char *image;          /* NULL: none */
    const char *const *env;     /* "NAME=value" */
    const char *dataset;        /* NULL: none */
    int64_t timeout_ms;         /* 0: none */
    int64_t repeats;
    int64_t warmup;
    int64_t gpu;  /* enum run_gpu */
    int64_t init; /* 1: a container's first process is the engine's init */
    struct run_mounts mounts;
};

/* A program that must be ready before the application starts. */
struct run_service {
    const char *name;
    const char *const *command; /* NULL: that of the image */
    const char *const *env;     /* NULL: none */
    const char *image;          /* NULL: a command of this machine */
    struct run_mounts mounts;   /* for an image */
    const char *ready_tcp;      /* "8090", "host:8090"; NULL: not waited for */
    const char *ready_file;     /* a file or socket that must exist; NULL: not waited for */
    int64_t ready_delay_ms;
    int64_t ready_timeout_ms;
};

/* A limit that is not set is NAN; changes are relative to the old value. */
struct run_gate {
    const char *metric;
    const char *target; /* NULL: all */
    double limits[N_GATE_KINDS];
};

/* Bits. */
enum run_metrics {
    RUN_METRICS_APP = 1 << 0,
    RUN_METRICS_GPU = 1 << 1,
    RUN_METRICS_POWER = 1 << 2,
    RUN_METRICS_PROCESS = 1 << 3,
    RUN_METRICS_SYSTEM = 1 << 4,
};

struct run_spec {
    struct arena arena;
    const char *file;    /* NULL: there is none */
    bool has_section;    /* the file has `profiling:` */
    const char *name;    /* of the application; NULL: not given */
    const char *version; /* NULL: not given */
    const char *image;   /* made of these; NULL: one is missing */
    struct run_target *targets;
    size_t n_targets;
    int64_t metrics; /* of enum run_metrics */
    int64_t interval_ms;
    int64_t baseline_ms;
    int64_t cooldown_ms;
    int64_t cooldown_max_ms; /* longest wait for the temperature before the first run */
    int64_t grace_ms;
    int64_t max_runtime_ms;
    struct run_service *services;
    size_t n_services;
    struct run_gate *gates;
    size_t n_gates;
    const char *out_dir;        /* NULL: not given */
    const char *const *formats; /* NULL: all */
};

/* The defaults without a file: one target that ends by itself. */
void run_spec_init(struct run_spec *spec);

/* Reads the text of `file`. -EINVAL with every mistake in `problems`, as file:line:column: key:
 * what was expected. Finish `spec` in any case. */
int run_spec_parse(const char *file, const char *text, size_t len, struct run_spec *spec,
                   struct problems *problems);

/* The same from the file itself. */
int run_spec_load(const char *file, struct run_spec *spec, struct problems *problems);

void run_spec_finish(struct run_spec *spec);
#define CLEANUP_RUN_SPEC CLEANUP(run_spec_finish)

/* The target of that name or number (from 1), or NULL. */
const struct run_target *run_spec_target(const struct run_spec *spec, const char *name);

/* Splits a command line into words without a shell and its expansions. Blanks end a word; '…'
 * quotes anything; in "…" and outside of quotes a backslash escapes the next character. The list
 * ends in NULL and lies, like the words, in the arena. -EINVAL for a quote that is not closed. */
int run_args_split(const char *text, struct arena *arena, const char *const **ret_words,
                   struct error *err);

/* Ends a buffer of pointers with NULL and copies it into the arena. */
const char *const *run_args_list(struct buf *words, struct arena *arena);
