#include "collectors/jetson/rail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "collectors/source/follow.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* ---- which rails add up to the module ---- */

/* The first rule whose rails all exist counts. Rails that are fed from others are not in it:
 * vddq_vdd2_1v8ao of AGX Orin, vdd_soc of the small modules. */
static const char *const rules[][JETSON_RAIL_MAX_MEMBERS] = {
    {"vin"},                                       /* Thor, developer kit */
    {"vdd_in"},                                    /* TX1, TX2, Xavier NX, Orin NX and Nano */
    {"pom_5v_in"},                                 /* Nano */
    {"gpu", "cpu", "soc", "cv", "vddrq", "sys5v"}, /* AGX Xavier */
    {"vdd_gpu_soc", "vdd_cpu_cv", "vin_sys_5v0"},  /* AGX Orin */
    {"vdd_gpu", "vdd_cpu_soc_mss", "vin_sys_5v0"}, /* Thor */
};

static size_t find_name(const char *const *names, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

size_t jetson_rail_rule(const char *const *names, size_t n,
                        size_t ret_members[static JETSON_RAIL_MAX_MEMBERS]) {
    for (size_t rule = 0; rule < ARRAY_LEN(rules); rule++) {
        size_t n_members = 0;
        bool complete = true;
        while (complete && n_members < JETSON_RAIL_MAX_MEMBERS && rules[rule][n_members] != NULL) {
            ret_members[n_members] = find_name(names, n, rules[rule][n_members]);
            complete = ret_members[n_members] < n;
            n_members++;
        }
        if (complete) {
            return n_members;
        }
    }
    return 0;
}

bool jetson_rail_is_gpu(const char *name) {
    static const char *const own[] = {"gpu", "pom_5v_gpu", "vdd_gpu", "vdd_sys_gpu"};
    return find_name(own, ARRAY_LEN(own), name) < ARRAY_LEN(own);
}

bool jetson_rail_feeds_gpu(const char *name) {
    return strstr(name, "gpu") != NULL;
}

/* ---- where the rails are read ---- */

/* One channel of a power monitor. */
struct rail {
    char *name; /* as printed on the schematics, in lower case */
    struct labels *labels;
    struct labels *sensor;      /* the same for the tegra_* names */
    struct source_file power;   /* path NULL: the product of voltage and current */
    int scale;                  /* of `power`, to watts */
    struct source_file voltage; /* millivolts */
    struct source_file current; /* milliamperes */
    struct follow watts;
};

/* The channels of INA3221 and INA238 chips, as the drivers of L4T up to 32 (iio) and from 34 on
 * (hwmon) show them. Unconnected channels are left out; of equal names the first counts. */
struct rails {
    const char *sysfs;
    struct rail *rows;
    size_t n_rows;
    size_t cap_rows;
    size_t members[JETSON_RAIL_MAX_MEMBERS]; /* that add up to the module's power */
    size_t n_members;
    size_t gpu;          /* the GPU's own, or n_rows */
    size_t feeding;      /* the one that feeds it, or n_rows */
    struct follow total; /* NAN also if no rule fits */
};

/* How the files of one channel are called; "#" is its number. */
struct layout {
    int first, last;
    const char *name;
    const char *power; /* NULL: none */
    int scale;         /* to watts */
    const char *voltage;
    const char *current;
};

static const struct layout iio = {
    0, 2, "rail_name_#", "in_power#_input", -1000, "in_voltage#_input", "in_current#_input",
};
static const struct layout hwmon = {
    1, 3, "in#_label", NULL, 0, "in#_input", "curr#_input",
};
static const struct layout hwmon_single = {
    1, 1, "label", "power#_input", -1000000, "in#_input", "curr#_input",
};

static bool wanted(const struct rails *rails, const char *name) {
    /* Channels without connection; the sum channel of newer drivers. */
    if (name[0] == '\0' || strcmp(name, "nc") == 0 || strncmp(name, "sum of", 6) == 0) {
        return false;
    }
    for (size_t i = 0; i < rails->n_rows; i++) {
        if (strcmp(rails->rows[i].name, name) == 0) {
            return false;
        }
    }
    return true;
}

/* The channel's number takes the place of '#'. The caller frees it. */
static char *file_name(const char *pattern, int channel) {
    char *name = mem_strdup(pattern);
    char *mark = strchr(name, '#');
    if (mark != NULL) {
        *mark = (char)('0' + channel);
    }
    return name;
}

static void file_init(struct source_file *file, const char *dir, const char *pattern, int channel) {
    char *name CLEANUP_FREE = file_name(pattern, channel);
    source_file_init(file, dir, name, NULL);
}

/* Takes `name`. */
static void add_rail(struct rails *rails, const struct jetson_board *board, const char *dir,
                     const struct layout *layout, int channel, char *name) {
    ARRAY_GROW(&rails->rows, &rails->cap_rows, rails->n_rows + 1);
    struct rail *rail = &rails->rows[rails->n_rows++];
    *rail = (struct rail){
        .name = name,
        .labels = labels_render("rail", name),
        .sensor = labels_render("sensor", name),
        .scale = layout->scale,
    };
    if (layout->power != NULL) {
        file_init(&rail->power, dir, layout->power, channel);
    }
    file_init(&rail->voltage, dir, layout->voltage, channel);
    file_init(&rail->current, dir, layout->current, channel);
    follow_init(&rail->watts, board->peak_window_ns);
}

static void add_chip(struct rails *rails, const struct jetson_board *board, const char *dir,
                     const struct layout *layout) {
    for (int channel = layout->first; channel <= layout->last; channel++) {
        char *label CLEANUP_FREE = file_name(layout->name, channel);
        char *name CLEANUP_FREE = source_file_text(dir, label);
        char *current CLEANUP_FREE = file_name(layout->current, channel);
        if (name == NULL || !source_file_exists(dir, current)) {
            continue;
        }
        jetson_lower(name);
        if (wanted(rails, name)) {
            add_rail(rails, board, dir, layout, channel, TAKE(name));
        }
    }
}

static void add_iio(struct rails *rails, const struct jetson_board *board, const char *device) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, device, "iio");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *dir CLEANUP_FREE = file_path_join(device, entries.names[i]);
        add_chip(rails, board, dir, &iio);
    }
}

static void add_hwmon(struct rails *rails, const struct jetson_board *board, const char *device) {
    bool single = source_file_exists(device, "label");
    add_chip(rails, board, device, single ? &hwmon_single : &hwmon);
}

/* Calls `add` for every device of a class whose name is that of a power monitor. */
static void walk(struct rails *rails, const struct jetson_board *board, const char *class,
                 void (*add)(struct rails *rails, const struct jetson_board *board,
                             const char *device)) {
    char *path CLEANUP_FREE = file_path_join(rails->sysfs, class);
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, path, "");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(path, entries.names[i]);
        char *name CLEANUP_FREE = source_file_text(device, "name");
        if (name != NULL && strncmp(name, "ina", 3) == 0) {
            add(rails, board, device);
        }
    }
}

static void apply_rules(struct rails *rails) {
    const char **names CLEANUP_FREE = mem_zalloc(rails->n_rows + 1, sizeof(*names));
    rails->gpu = rails->n_rows;
    rails->feeding = rails->n_rows;
    for (size_t i = rails->n_rows; i-- > 0;) {
        names[i] = rails->rows[i].name;
        rails->gpu = jetson_rail_is_gpu(names[i]) ? i : rails->gpu;
        rails->feeding = jetson_rail_feeds_gpu(names[i]) ? i : rails->feeding;
    }
    rails->n_members = jetson_rail_rule(names, rails->n_rows, rails->members);
}

static void find(struct rails *rails, const struct jetson_board *board) {
    walk(rails, board, "class/hwmon", add_hwmon);
    walk(rails, board, "bus/i2c/devices", add_iio);
    apply_rules(rails);
}

/* ---- the part ---- */

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

static void rail_sample(void *state, struct jetson_round *round) {
    struct rails *rails = state;
    int64_t now_ns = round->now_ns;
    int64_t max_gap_ns = round->board->max_gap_ns;
    for (size_t i = 0; i < rails->n_rows; i++) {
        struct rail *rail = &rails->rows[i];
        follow_add(&rail->watts, now_ns, now_ns, read_watts(rail), max_gap_ns);
    }
    double watts = rails->n_members > 0 ? 0 : NAN;
    for (size_t i = 0; i < rails->n_members; i++) {
        watts += rails->rows[rails->members[i]].watts.latest;
    }
    follow_add(&rails->total, now_ns, now_ns, watts, max_gap_ns);
    if (rails->total.seen) {
        bool own = rails->gpu < rails->n_rows;
        round->energy.joules = rails->total.integral.total;
        round->energy.seconds = rails->total.integral.seconds;
        round->energy.gpu_joules = own ? rails->rows[rails->gpu].watts.integral.total : NAN;
    }
    bool fed = rails->feeding < rails->n_rows;
    round->gpu_rail_watts = fed ? rails->rows[rails->feeding].watts.latest : watts;
}

static int add_rail_values(struct rail *rail, const struct jetson_round *round,
                           struct snapshot *out, struct error *err) {
    static const struct follow_metrics metrics = {
        &jetson_descs[JETSON_RAIL_POWER],
        &jetson_descs[JETSON_RAIL_ENERGY_JOULES],
        &jetson_descs[JETSON_RAIL_POWER_PEAK],
    };
    follow_emit(&rail->watts, &metrics, round->now_ns, rail->labels, out);
    const struct integral *energy = &rail->watts.integral;
    if ((round->board->compat & COMPAT_TEGRA) != 0 && energy->seconds > 0) {
        snapshot_add(out, &jetson_compat_descs[TEGRA_WATTAGE_AVERAGE], rail->sensor,
                     energy->total / energy->seconds * 1000);
    }
    int voltage = jetson_add_number(&rail->voltage, -1000, &jetson_descs[JETSON_RAIL_VOLTAGE],
                                    rail->labels, out, err);
    int current = jetson_add_number(&rail->current, -1000, &jetson_descs[JETSON_RAIL_CURRENT],
                                    rail->labels, out, voltage == 0 ? err : NULL);
    return voltage < 0 ? voltage : current;
}

static int rail_collect(void *state, struct jetson_round *round, struct snapshot *out,
                        struct error *err) {
    static const struct follow_metrics gpu_metrics = {&gpu_descs[GPU_POWER],
                                                      &gpu_descs[GPU_ENERGY_JOULES], NULL};
    static const struct follow_metrics total_metrics = {&jetson_descs[JETSON_POWER_TOTAL],
                                                        &jetson_descs[JETSON_ENERGY_JOULES], NULL};
    struct rails *rails = state;
    int result = 0;
    if (rails->n_rows == 0) {
        find(rails, round->board);
    }
    for (size_t i = 0; i < rails->n_rows; i++) {
        int r = add_rail_values(&rails->rows[i], round, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    if (rails->gpu < rails->n_rows) {
        follow_emit(&rails->rows[rails->gpu].watts, &gpu_metrics, round->now_ns, round->board->gpu,
                    out);
    }
    follow_emit(&rails->total, &total_metrics, round->now_ns, NULL, out);
    return result;
}

static void rail_close(void *state) {
    struct rails *rails = state;
    for (size_t i = 0; i < rails->n_rows; i++) {
        struct rail *rail = &rails->rows[i];
        free(rail->name);
        labels_destroy(rail->labels);
        labels_destroy(rail->sensor);
        source_file_finish(&rail->power);
        source_file_finish(&rail->voltage);
        source_file_finish(&rail->current);
    }
    free(rails->rows);
}

static void rail_open(void *state, const struct collector_env *env,
                      const struct jetson_board *board) {
    struct rails *rails = state;
    rails->sysfs = env->sysfs;
    follow_init(&rails->total, board->peak_window_ns);
    find(rails, board);
}

const struct jetson_part jetson_rail_part = {
    .state_size = sizeof(struct rails),
    .open = rail_open,
    .sample = rail_sample,
    .collect = rail_collect,
    .close = rail_close,
};
