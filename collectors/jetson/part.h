#pragma once

#include <stdint.h>

#include "collectors/collector.h"
#include "collectors/jetson/board.h"
#include "collectors/jetson/metrics.h"
#include "collectors/source/energy.h"
#include "collectors/source/gpu_metrics.h"
#include "collectors/source/source_file.h"
#include "exporter/core/buf.h"

/* One moment at which the parts look at the machine. */
struct jetson_round {
    const struct jetson_board *board;
    int64_t now_ns;
    struct buf *scratch;   /* for the text of files; the next part overwrites it */
    double gpu_rail_watts; /* of the rail that feeds the GPU, alone or with others; NAN: unknown */
    struct energy_reading energy;          /* of the module; joules NAN: not measured */
    const struct energy_share *gpu_shares; /* of containers, as far as they are known */
    size_t n_gpu_shares;
    const char *gpu_uuid; /* NVIDIA's own; NULL: unknown */
};

/* One topic of the `jetson` collector, as those of `host`: its row of JETSON_PARTS and
 * jetson_<topic>_part. A value that cannot be read at the moment is left out and is no failure; a
 * part that fails does not keep the others from collecting. What a part does not need is NULL. */
struct jetson_part {
    bool anywhere;     /* also if this is no Jetson */
    size_t state_size; /* of the part's struct, zeroed before `open` */
    void (*open)(void *state, const struct collector_env *env, const struct jetson_board *board);

    /* Integrals and peaks. Comes before every collection, too. */
    void (*sample)(void *state, struct jetson_round *round);

    int (*collect)(void *state, struct jetson_round *round, struct snapshot *out,
                   struct error *err);

    void (*close)(void *state); /* frees what the struct holds */
};

/* In their order: the GPU looks at the power of its rail, tegrastats adds what the files lack, and
 * `compat` repeats both under other names. */
#define JETSON_PARTS(PART)                                                                         \
    PART(rail)                                                                                     \
    PART(gpu)                                                                                      \
    PART(client)                                                                                   \
    PART(cpu)                                                                                      \
    PART(emc)                                                                                      \
    PART(engine)                                                                                   \
    PART(fan)                                                                                      \
    PART(memory)                                                                                   \
    PART(mode)                                                                                     \
    PART(nvml)                                                                                     \
    PART(throttle)                                                                                 \
    PART(thermal)                                                                                  \
    PART(tegrastats)                                                                               \
    PART(compat)

#define JETSON_PART_DECLARE(name) extern const struct jetson_part jetson_##name##_part;
JETSON_PARTS(JETSON_PART_DECLARE)

/* Where debugfs is, below sysfs; for root only. */
#define JETSON_DEBUGFS "kernel/debug/"

/* `value` times `scale`, or divided by -`scale` where that is negative: 5112 mV are 5.112 V when
 * divided by 1000, but not quite when multiplied by 0.001. */
double jetson_scale(double value, int scale);

/* Adds the number of a file, scaled, if it can be read. 0, or -EINVAL where the file holds
 * something else. */
int jetson_add_number(struct source_file *file, int scale, const struct metric_desc *desc,
                      const struct labels *labels, struct snapshot *out, struct error *err);

/* The first of at most `n_names` files under `base` (a NULL ends them, too) that can be read, or
 * NULL. */
const char *jetson_find_file(const char *base, const char *const *names, size_t n_names);

/* "VDD_IN" as "vdd_in". */
void jetson_lower(char *text);

/* How the number in a file becomes a metric. */
struct jetson_form {
    enum jetson_metric metric;
    int scale; /* see jetson_scale; 0 is 1 */
    enum {
        JETSON_PLAIN,
        JETSON_RATIO,     /* at most 1 */
        JETSON_SWITCH,    /* 1 if it is above 0; the values after it are only shown then */
        JETSON_SWITCH_ON, /* the same, and on if there is no file */
        JETSON_CLOCK,     /* the values after it are only shown if it could be read */
        JETSON_ACTIVITY,  /* divided by the clock's kilohertz it is a percentage */
    } kind;
    enum {
        JETSON_ALWAYS,
        JETSON_IF_ON,   /* by the last switch or clock */
        JETSON_INSTEAD, /* if it is on and the file before could not be read */
    } when;
};

/* Files of one number each: the state of a part that is a list of them, with its `collect` and
 * `close`. A zeroed struct is an empty list. */
struct jetson_values {
    struct jetson_value {
        struct source_file file;
        struct jetson_form form;
        struct labels *labels;
    } * rows;
    size_t n_rows;
    size_t cap_rows;
};

/* Adds the file `name` under `base`, with the label `label="value"`, or none if that is NULL. */
void jetson_values_add(struct jetson_values *values, const char *base, const char *name,
                       struct jetson_form form, const char *label, const char *value);

/* Reads every file of the list. The first one that holds no number is reported. */
int jetson_values_collect(void *values, struct jetson_round *round, struct snapshot *out,
                          struct error *err);
void jetson_values_close(void *values);
