#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/part.h"
#include "collectors/jetson/rail_find.h"
#include "collectors/jetson/rail_rule.h"
#include "collectors/source/integral.h"
#include "collectors/source/peak.h"
#include "exporter/core/cleanup.h"

struct rail {
    char *name;
    struct labels *labels;
    struct labels *sensor; /* the same for the tegra_* names */
    struct source_file power;
    int scale; /* of `power`, to watts */
    struct source_file voltage;
    struct source_file current;

    double watts; /* NAN: could not be read */
    bool counted; /* there has been a value */
    struct integral energy;
    struct peak peak;
};

struct rails {
    const char *sysfs;
    struct rail *rows;
    size_t n_rows;
    size_t members[JETSON_RAIL_MAX_MEMBERS]; /* that add up to the module's power */
    size_t n_members;
    size_t gpu;     /* the GPU's own, or n_rows */
    size_t feeding; /* the one that feeds it, or n_rows */

    double total_watts; /* NAN: could not be read, or no rule fits */
    bool total_counted;
    struct integral total_energy;
};

static void rail_finish(struct rail *rail) {
    free(rail->name);
    labels_destroy(rail->labels);
    labels_destroy(rail->sensor);
    source_file_finish(&rail->power);
    source_file_finish(&rail->voltage);
    source_file_finish(&rail->current);
}

static int rail_init(struct rail *rail, struct jetson_rail_files *files,
                     const struct jetson_board *board, struct error *err) {
    *rail = (struct rail){
        .name = files->name,
        .labels = labels_render("rail", files->name),
        .sensor = labels_render("sensor", files->name),
        .power = {.path = files->power, .fd = -1},
        .scale = files->scale,
        .voltage = {.path = files->voltage, .fd = -1},
        .current = {.path = files->current, .fd = -1},
        .watts = NAN,
    };
    *files = (struct jetson_rail_files){0}; /* its texts are the rail's */
    peak_init(&rail->peak, board->peak_window_ns);
    if (rail->labels == NULL || rail->sensor == NULL) {
        return error_set(err, -ENOMEM, "rail %s: out of memory", rail->name);
    }
    return 0;
}

static void apply_rules(struct rails *rails, const char **names) {
    rails->gpu = rails->n_rows;
    rails->feeding = rails->n_rows;
    for (size_t i = rails->n_rows; i-- > 0;) {
        names[i] = rails->rows[i].name;
        rails->gpu = jetson_rail_is_gpu(names[i]) ? i : rails->gpu;
        rails->feeding = jetson_rail_feeds_gpu(names[i]) ? i : rails->feeding;
    }
    rails->n_members = jetson_rail_rule(names, rails->n_rows, rails->members);
}

static int find(struct rails *rails, const struct jetson_board *board, struct error *err) {
    struct jetson_rail_list list CLEANUP_JETSON_RAIL_LIST = {0};
    int r = jetson_rails_find(rails->sysfs, &list, err);
    if (r < 0 || list.n_rails == 0) {
        return r;
    }
    rails->rows = calloc(list.n_rails, sizeof(*rails->rows));
    const char **names CLEANUP_FREE = calloc(list.n_rails, sizeof(*names));
    if (rails->rows == NULL || names == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < list.n_rails && r == 0; i++) {
        r = rail_init(&rails->rows[i], &list.rails[i], board, err);
        rails->n_rows++;
    }
    apply_rules(rails, names);
    return r;
}

/* Without a power of its own, the chip gives voltage and current. */
static double read_watts(struct rail *rail) {
    double value, millivolts, milliamperes;
    if (rail->power.path != NULL) {
        bool read = source_file_number(&rail->power, &value, NULL) > 0;
        return read ? jetson_scale(value, rail->scale) : NAN;
    }
    if (source_file_number(&rail->voltage, &millivolts, NULL) <= 0 ||
        source_file_number(&rail->current, &milliamperes, NULL) <= 0) {
        return NAN;
    }
    return millivolts * milliamperes / 1e6;
}

static void follow(struct integral *integral, bool *counted, double watts,
                   const struct jetson_round *round) {
    if (isnan(watts)) {
        integral_break(integral);
        return;
    }
    integral_add(integral, round->now_ns, watts, round->board->max_gap_ns);
    *counted = true;
}

static void rail_sample(void *state, struct jetson_round *round) {
    struct rails *rails = state;
    for (size_t i = 0; i < rails->n_rows; i++) {
        struct rail *rail = &rails->rows[i];
        rail->watts = read_watts(rail);
        follow(&rail->energy, &rail->counted, rail->watts, round);
        if (!isnan(rail->watts)) {
            peak_add(&rail->peak, round->now_ns, rail->watts);
        }
    }
    rails->total_watts = rails->n_members > 0 ? 0 : NAN;
    for (size_t i = 0; i < rails->n_members; i++) {
        rails->total_watts += rails->rows[rails->members[i]].watts;
    }
    follow(&rails->total_energy, &rails->total_counted, rails->total_watts, round);
    if (rails->total_counted) {
        bool own = rails->gpu < rails->n_rows;
        round->energy.joules = rails->total_energy.total;
        round->energy.seconds = rails->total_energy.seconds;
        round->energy.gpu_joules = own ? rails->rows[rails->gpu].energy.total : NAN;
    }
    round->gpu_rail_watts =
        rails->feeding < rails->n_rows ? rails->rows[rails->feeding].watts : rails->total_watts;
}

static void add_power(struct rail *rail, const struct jetson_round *round, struct snapshot *out) {
    double peak;
    if (!isnan(rail->watts)) {
        snapshot_add(out, &jetson_descs[JETSON_RAIL_POWER], rail->labels, rail->watts);
    }
    if (rail->counted) {
        snapshot_add(out, &jetson_descs[JETSON_RAIL_ENERGY_JOULES], rail->labels,
                     rail->energy.total);
    }
    if (rail->counted && peak_get(&rail->peak, round->now_ns, &peak)) {
        snapshot_add(out, &jetson_descs[JETSON_RAIL_POWER_PEAK], rail->labels, peak);
    }
    if (round->board->compat && rail->energy.seconds > 0) {
        double mean = rail->energy.total / rail->energy.seconds;
        snapshot_add(out, &jetson_compat_descs[TEGRA_WATTAGE_AVERAGE], rail->sensor, mean * 1000);
    }
}

static void add_gpu(const struct rail *rail, const struct labels *labels, struct snapshot *out) {
    if (!isnan(rail->watts)) {
        snapshot_add(out, &gpu_descs[GPU_POWER], labels, rail->watts);
    }
    if (rail->counted) {
        snapshot_add(out, &gpu_descs[GPU_ENERGY_JOULES], labels, rail->energy.total);
    }
}

static int add_inputs(struct rail *rail, struct snapshot *out, struct error *err) {
    int voltage = jetson_add_number(&rail->voltage, -1000, &jetson_descs[JETSON_RAIL_VOLTAGE],
                                    rail->labels, out, err);
    int current = jetson_add_number(&rail->current, -1000, &jetson_descs[JETSON_RAIL_CURRENT],
                                    rail->labels, out, voltage == 0 ? err : NULL);
    return voltage < 0 ? voltage : current;
}

static int rail_collect(void *state, struct jetson_round *round, struct snapshot *out,
                        struct error *err) {
    struct rails *rails = state;
    int result = rails->n_rows > 0 ? 0 : find(rails, round->board, err);
    for (size_t i = 0; i < rails->n_rows; i++) {
        add_power(&rails->rows[i], round, out);
        int r = add_inputs(&rails->rows[i], out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    if (rails->gpu < rails->n_rows) {
        add_gpu(&rails->rows[rails->gpu], round->board->gpu, out);
    }
    if (!isnan(rails->total_watts)) {
        snapshot_add(out, &jetson_descs[JETSON_POWER_TOTAL], NULL, rails->total_watts);
    }
    if (rails->total_counted) {
        snapshot_add(out, &jetson_descs[JETSON_ENERGY_JOULES], NULL, rails->total_energy.total);
    }
    return result;
}

static void rail_close(void *state) {
    struct rails *rails = state;
    if (rails != NULL) {
        for (size_t i = 0; i < rails->n_rows; i++) {
            rail_finish(&rails->rows[i]);
        }
        free(rails->rows);
    }
    free(rails);
}

static int rail_open(const struct collector_env *env, const struct jetson_board *board,
                     void **ret_state, struct error *err) {
    struct rails *rails = calloc(1, sizeof(*rails));
    if (rails == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    rails->sysfs = env->sysfs;
    rails->total_watts = NAN;
    int r = find(rails, board, err);
    if (r < 0) {
        rail_close(rails);
        return r;
    }
    *ret_state = rails;
    return 0;
}

const struct jetson_part jetson_rail_part = {
    .name = "rail",
    .open = rail_open,
    .sample = rail_sample,
    .collect = rail_collect,
    .close = rail_close,
};
