#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "collectors/jetson/trips.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

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

static int add_zone(struct thermal *thermal, const char *entry, const char *type) {
    struct zone *zones = realloc(thermal->zones, (thermal->n_zones + 1) * sizeof(*zones));
    if (zones == NULL) {
        return -ENOMEM;
    }
    thermal->zones = zones;
    char *dir CLEANUP_FREE = file_path_join(thermal->path, entry);
    char *name = unique_name(thermal, entry, type);
    struct zone *zone = &zones[thermal->n_zones++];
    *zone = (struct zone){
        .name = name,
        .labels = name != NULL ? labels_render("zone", name) : NULL,
        .temp = {.path = dir != NULL ? file_path_join(dir, "temp") : NULL, .fd = -1},
    };
    if (zone->labels == NULL || zone->temp.path == NULL) {
        return -ENOMEM;
    }
    return jetson_trips_init(&zone->trips, dir, name);
}

static int find_zones(struct thermal *thermal, struct error *err) {
    struct entries entries CLEANUP_ENTRIES = {0};
    int r = entries_init(&entries, thermal->path, zone_prefix);
    for (size_t i = 0; i < entries.n_names && r == 0; i++) {
        char *dir CLEANUP_FREE = file_path_join(thermal->path, entries.names[i]);
        char *type CLEANUP_FREE = dir != NULL ? source_file_text(dir, "type") : NULL;
        /* The zone of the power chip is a dummy that never changes. */
        if (type != NULL && type[0] != '\0' && strcasestr(type, "pmic") == NULL) {
            r = add_zone(thermal, entries.names[i], type);
        }
    }
    return r == 0 ? 0 : error_set(err, r, "%s: out of memory", thermal->path);
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
    jetson_trips_add(&zone->trips, out);
    if (strcmp(zone->name, "gpu") == 0) {
        snapshot_add(out, &gpu_descs[GPU_TEMPERATURE], round->board->gpu, celsius);
    }
    return 0;
}

static int thermal_collect(void *state, struct jetson_round *round, struct snapshot *out,
                           struct error *err) {
    struct thermal *thermal = state;
    int result = thermal->n_zones > 0 ? 0 : find_zones(thermal, err);
    for (size_t i = 0; i < thermal->n_zones; i++) {
        int r = add_temperature(&thermal->zones[i], round, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

static void thermal_close(void *state) {
    struct thermal *thermal = state;
    if (thermal != NULL) {
        for (size_t i = 0; i < thermal->n_zones; i++) {
            free(thermal->zones[i].name);
            labels_destroy(thermal->zones[i].labels);
            source_file_finish(&thermal->zones[i].temp);
            jetson_trips_finish(&thermal->zones[i].trips);
        }
        free(thermal->zones);
        free(thermal->path);
    }
    free(thermal);
}

static int thermal_open(const struct collector_env *env, const struct jetson_board *board,
                        void **ret_state, struct error *err) {
    (void)board;
    struct thermal *thermal = calloc(1, sizeof(*thermal));
    if (thermal != NULL) {
        thermal->path = file_path_join(env->sysfs, "class/thermal");
    }
    if (thermal == NULL || thermal->path == NULL) {
        thermal_close(thermal);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_state = thermal;
    return 0;
}

const struct jetson_part jetson_thermal_part = {
    .name = "thermal",
    .open = thermal_open,
    .collect = thermal_collect,
    .close = thermal_close,
};
