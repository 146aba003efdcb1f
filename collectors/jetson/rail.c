#include "collectors/jetson/rail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "collectors/source/integral.h"
#include "collectors/source/peak.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* ---- which rails add up to the module ---- */

/* The first whose rails are all there counts. Rails that are fed from others are not in it:
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

/* Where one channel of a power monitor is read. */
struct rail_files {
    char *name;    /* as printed on the schematics, in lower case */
    char *power;   /* NULL: the product of voltage and current */
    int scale;     /* of `power`, to watts */
    char *voltage; /* millivolts */
    char *current; /* milliamperes */
};

/* The channels of INA3221 and INA238 chips, as the drivers of L4T up to 32 (iio) and from 34 on
 * (hwmon) show them. Unconnected channels are left out; of equal names the first counts. */
struct rail_list {
    struct rail_files *rails;
    size_t n_rails;
    size_t capacity;
};

enum { NAME_SIZE = 32 };

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

static void files_finish(struct rail_files *files) {
    free(files->name);
    free(files->power);
    free(files->voltage);
    free(files->current);
}

static void rail_list_finish(struct rail_list *list) {
    for (size_t i = 0; i < list->n_rails; i++) {
        files_finish(&list->rails[i]);
    }
    free(list->rails);
    *list = (struct rail_list){0};
}

static bool wanted(const struct rail_list *list, const char *name) {
    /* Channels without connection; the sum channel of newer drivers. */
    if (name[0] == '\0' || strcmp(name, "nc") == 0 || strncmp(name, "sum of", 6) == 0) {
        return false;
    }
    for (size_t i = 0; i < list->n_rails; i++) {
        if (strcmp(list->rails[i].name, name) == 0) {
            return false;
        }
    }
    return true;
}

/* The channel's number takes the place of '#'. */
static void file_name(char name[static NAME_SIZE], const char *pattern, int channel) {
    snprintf(name, NAME_SIZE, "%s", pattern);
    char *mark = strchr(name, '#');
    if (mark != NULL) {
        *mark = (char)('0' + channel);
    }
}

static char *file_path(const char *dir, const char *pattern, int channel) {
    char name[NAME_SIZE];
    file_name(name, pattern, channel);
    return file_path_join(dir, name);
}

static void add_files(struct rail_list *list, const char *dir, const struct layout *layout,
                      int channel, char *name) {
    ARRAY_GROW(&list->rails, &list->capacity, list->n_rails + 1);
    list->rails[list->n_rails++] = (struct rail_files){
        .name = name,
        .power = layout->power != NULL ? file_path(dir, layout->power, channel) : NULL,
        .scale = layout->scale,
        .voltage = file_path(dir, layout->voltage, channel),
        .current = file_path(dir, layout->current, channel),
    };
}

static void add_chip(struct rail_list *list, const char *dir, const struct layout *layout) {
    for (int channel = layout->first; channel <= layout->last; channel++) {
        char label[NAME_SIZE];
        file_name(label, layout->name, channel);
        char *name CLEANUP_FREE = source_file_text(dir, label);
        char *current CLEANUP_FREE = file_path(dir, layout->current, channel);
        if (name == NULL || access(current, F_OK) < 0) {
            continue;
        }
        jetson_lower(name);
        if (wanted(list, name)) {
            add_files(list, dir, layout, channel, TAKE(name));
        }
    }
}

static void add_iio(struct rail_list *list, const char *device) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, device, "iio");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *dir CLEANUP_FREE = file_path_join(device, entries.names[i]);
        add_chip(list, dir, &iio);
    }
}

static void add_hwmon(struct rail_list *list, const char *device) {
    char *label CLEANUP_FREE = source_file_text(device, "label");
    add_chip(list, device, label != NULL ? &hwmon_single : &hwmon);
}

/* Calls `found` for every device of a class whose name says that it is a power monitor. */
static void walk(struct rail_list *list, const char *sysfs, const char *class,
                 void (*found)(struct rail_list *list, const char *device)) {
    char *path CLEANUP_FREE = file_path_join(sysfs, class);
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, path, "");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(path, entries.names[i]);
        char *name CLEANUP_FREE = source_file_text(device, "name");
        if (name != NULL && strncmp(name, "ina", 3) == 0) {
            found(list, device);
        }
    }
}

/* ---- the part ---- */

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

static void rail_init(struct rail *rail, struct rail_files *files,
                      const struct jetson_board *board) {
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
    *files = (struct rail_files){0}; /* its texts are the rail's */
    peak_init(&rail->peak, board->peak_window_ns);
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

static void find(struct rails *rails, const struct jetson_board *board) {
    struct rail_list list CLEANUP(rail_list_finish) = {0};
    walk(&list, rails->sysfs, "class/hwmon", add_hwmon);
    walk(&list, rails->sysfs, "bus/i2c/devices", add_iio);
    if (list.n_rails == 0) {
        return;
    }
    rails->rows = mem_zalloc(list.n_rails, sizeof(*rails->rows));
    const char **names CLEANUP_FREE = mem_zalloc(list.n_rails, sizeof(*names));
    for (size_t i = 0; i < list.n_rails; i++) {
        rail_init(&rails->rows[rails->n_rows++], &list.rails[i], board);
    }
    apply_rules(rails, names);
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
    int result = 0;
    if (rails->n_rows == 0) {
        find(rails, round->board);
    }
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
    for (size_t i = 0; i < rails->n_rows; i++) {
        rail_finish(&rails->rows[i]);
    }
    free(rails->rows);
    free(rails);
}

static void *rail_open(const struct collector_env *env, const struct jetson_board *board) {
    struct rails *rails = mem_zalloc(1, sizeof(*rails));
    rails->sysfs = env->sysfs;
    rails->total_watts = NAN;
    find(rails, board);
    return rails;
}

const struct jetson_part jetson_rail_part = {
    .name = "rail",
    .open = rail_open,
    .sample = rail_sample,
    .collect = rail_collect,
    .close = rail_close,
};
