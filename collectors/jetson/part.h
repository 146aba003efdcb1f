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

/* One topic of the `jetson` collector. What cannot be read at the moment is left out, and no
 * failure; a part that fails does not keep the others from collecting. */
struct jetson_part {
    const char *name;
    void *(*open)(const struct collector_env *env, const struct jetson_board *board);

    /* Optional: integrals and peaks. Comes before every collection, too. */
    void (*sample)(void *state, struct jetson_round *round);

    int (*collect)(void *state, struct jetson_round *round, struct snapshot *out,
                   struct error *err);

    void (*close)(void *state);
};

extern const struct jetson_part jetson_container_part;
extern const struct jetson_part jetson_cpu_part;
extern const struct jetson_part jetson_emc_part;
extern const struct jetson_part jetson_engine_part;
extern const struct jetson_part jetson_fan_part;
extern const struct jetson_part jetson_gpu_part;
extern const struct jetson_part jetson_memory_part;
extern const struct jetson_part jetson_mode_part;
extern const struct jetson_part jetson_nvml_part;
extern const struct jetson_part jetson_process_part;
extern const struct jetson_part jetson_rail_part;
extern const struct jetson_part jetson_thermal_part;
extern const struct jetson_part jetson_throttle_part;

/* Where debugfs is, below sysfs; for root only. */
#define JETSON_DEBUGFS "kernel/debug/"

/* `value` times `scale`, or divided by -`scale` where that is negative: 5112 mV are 5.112 V when
 * divided by 1000, but not quite when multiplied by 0.001. */
double jetson_scale(double value, int scale);

/* Adds the number of a file, scaled, if it can be read. 0, or -EINVAL where the file holds
 * something else. */
int jetson_add_number(struct source_file *file, int scale, const struct metric_desc *desc,
                      const struct labels *labels, struct snapshot *out, struct error *err);

/* Names the first of at most `n_names` files under `base` (a NULL ends them, too) that can be read,
 * and none (path NULL) if there is no such file. */
void jetson_find_file(struct source_file *file, const char *base, const char *const *names,
                      size_t n_names);

/* "VDD_IN" as "vdd_in". */
void jetson_lower(char *text);

/* Files of one number each that go to a metric as they are: the state of a part that is a list of
 * them. A zeroed struct is an empty list. */
struct jetson_value {
    struct source_file file;
    int scale;
    enum jetson_metric metric;
    struct labels *labels;
};

struct jetson_values {
    struct jetson_value *rows;
    size_t n_rows;
    size_t cap_rows;
};

/* Adds the file `name` under `base` to the list if it exists, with the label `label="value"`;
 * false if not. */
bool jetson_values_add(struct jetson_values *values, const char *base, const char *name, int scale,
                       enum jetson_metric metric, const char *label, const char *value);

/* Reads every file of the list. The first one that holds no number is reported. */
int jetson_values_collect(struct jetson_values *values, struct snapshot *out, struct error *err);
void jetson_values_finish(struct jetson_values *values);
