#include "collectors/jetson/thermal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"

/* ---- trip points ---- */

enum { MAX_TRIPS = 64, MAX_CELSIUS = 200 };

static const char *const types[JETSON_N_TRIP_TYPES] = {"active", "critical", "hot", "passive"};

void jetson_trips_take(struct jetson_trips *trips, const char *type, const char *millicelsius) {
    double value;
    if (number_parse(millicelsius, strlen(millicelsius), &value) < 0) {
        return;
    }
    /* Switched off is -274000 or the largest number there is; those of fans begin at 0 and below.
     */
    double celsius = value / 1000;
    if (!(celsius > 0 && celsius < MAX_CELSIUS)) {
        return;
    }
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        if (strcmp(types[i], type) == 0) {
            trips->celsius[i] = fmin(trips->celsius[i], celsius); /* NAN is never the lower one */
        }
    }
}

/* Whether there is a trip point of that number. */
static bool read_trip(struct jetson_trips *trips, const char *dir, unsigned number) {
    char name[sizeof("trip_point_4294967295_type")];
    snprintf(name, sizeof(name), "trip_point_%u_type", number);
    char *type CLEANUP_FREE = source_file_text(dir, name);
    snprintf(name, sizeof(name), "trip_point_%u_temp", number);
    char *temp CLEANUP_FREE = source_file_text(dir, name);
    if (type != NULL && temp != NULL) {
        jetson_trips_take(trips, type, temp);
    }
    return type != NULL;
}

static void trips_init(struct jetson_trips *trips, const char *dir, const char *zone) {
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        trips->celsius[i] = NAN;
    }
    for (unsigned i = 0; i < MAX_TRIPS && read_trip(trips, dir, i); i++) {
    }
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        if (!isnan(trips->celsius[i])) {
            trips->labels[i] = labels_render("zone", zone, "type", types[i]);
        }
    }
}

static void trips_finish(struct jetson_trips *trips) {
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        labels_destroy(trips->labels[i]);
    }
}

static void trips_add(const struct jetson_trips *trips, struct snapshot *out) {
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        if (trips->labels[i] != NULL) {
            snapshot_add(out, &jetson_descs[JETSON_THERMAL_TRIP], trips->labels[i],
                         trips->celsius[i]);
        }
    }
}

/* ---- the part ---- */

static const char zone_prefix[] = "thermal_zone";
static const double gated_millicelsius = -256000; /* what a gated sensor shows on L4T 34 and 35 */

struct zone {
    char *name;
    struct labels *labels;
    struct source_file temp;
    struct jetson_trips trips; /* as the device tree has them: read once */
};

struct thermal {
    char *path;
    struct zone *zones;
    size_t n_zones;
    size_t cap_zones;
};

static bool is_taken(const struct thermal *thermal, const char *name) {
    for (size_t i = 0; i < thermal->n_zones; i++) {
        if (strcmp(thermal->zones[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Names are free text: a second zone of one name gets its number behind it. */
static char *unique_name(const struct thermal *thermal, const char *entry, const char *type) {
    struct buf name = {0};
    jetson_zone_name(&name, type);
    if (is_taken(thermal, buf_str(&name))) {
        buf_printf(&name, "_%s", entry + strlen(zone_prefix));
    }
    return buf_take(&name);
}

static void add_zone(struct thermal *thermal, const char *entry, const char *type) {
    ARRAY_GROW(&thermal->zones, &thermal->cap_zones, thermal->n_zones + 1);
    char *dir CLEANUP_FREE = file_path_join(thermal->path, entry);
    char *name = unique_name(thermal, entry, type);
    struct zone *zone = &thermal->zones[thermal->n_zones++];
    *zone = (struct zone){
        .name = name,
        .labels = labels_render("zone", name),
        .temp = {.path = file_path_join(dir, "temp"), .fd = -1},
    };
    trips_init(&zone->trips, dir, name);
}

static void find_zones(struct thermal *thermal) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, thermal->path, zone_prefix);
    for (size_t i = 0; i < entries.n_names; i++) {
        char *dir CLEANUP_FREE = file_path_join(thermal->path, entries.names[i]);
        char *type CLEANUP_FREE = source_file_text(dir, "type");
        /* The zone of the power chip is a dummy that never changes. */
        if (type != NULL && type[0] != '\0' && strcasestr(type, "pmic") == NULL) {
            add_zone(thermal, entries.names[i], type);
        }
    }
}

static int add_temperature(struct zone *zone, const struct jetson_round *round,
                           struct snapshot *out, struct error *err) {
    double millicelsius;
    int r = source_file_number(&zone->temp, &millicelsius, err);
    if (r <= 0 || millicelsius <= gated_millicelsius) {
        return r < 0 ? r : 0;
    }
    double celsius = millicelsius / 1000;
    snapshot_add(out, &jetson_descs[JETSON_TEMPERATURE], zone->labels, celsius);
    trips_add(&zone->trips, out);
    if (strcmp(zone->name, "gpu") == 0) {
        snapshot_add(out, &gpu_descs[GPU_TEMPERATURE], round->board->gpu, celsius);
    }
    return 0;
}

static int thermal_collect(void *state, struct jetson_round *round, struct snapshot *out,
                           struct error *err) {
    struct thermal *thermal = state;
    int result = 0;
    if (thermal->n_zones == 0) {
        find_zones(thermal);
    }
    for (size_t i = 0; i < thermal->n_zones; i++) {
        int r = add_temperature(&thermal->zones[i], round, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

static void thermal_close(void *state) {
    struct thermal *thermal = state;
    for (size_t i = 0; i < thermal->n_zones; i++) {
        free(thermal->zones[i].name);
        labels_destroy(thermal->zones[i].labels);
        source_file_finish(&thermal->zones[i].temp);
        trips_finish(&thermal->zones[i].trips);
    }
    free(thermal->zones);
    free(thermal->path);
}

static void thermal_open(void *state, const struct collector_env *env,
                         const struct jetson_board *board) {
    (void)board;
    struct thermal *thermal = state;
    thermal->path = file_path_join(env->sysfs, "class/thermal");
}

const struct jetson_part jetson_thermal_part = {
    .state_size = sizeof(struct thermal),
    .open = thermal_open,
    .collect = thermal_collect,
    .close = thermal_close,
};
