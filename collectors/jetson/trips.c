#include "collectors/jetson/trips.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectors/jetson/metrics.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/number.h"

enum { MAX_TRIPS = 64, MAX_CELSIUS = 200 };

static const char *const types[JETSON_N_TRIP_TYPES] = {"active", "critical", "hot", "passive"};

static void clear(struct jetson_trips *trips) {
    *trips = (struct jetson_trips){0};
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        trips->celsius[i] = NAN;
    }
}

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

int jetson_trips_init(struct jetson_trips *trips, const char *dir, const char *zone) {
    clear(trips);
    for (unsigned i = 0; i < MAX_TRIPS && read_trip(trips, dir, i); i++) {
    }
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        if (!isnan(trips->celsius[i])) {
            trips->labels[i] = labels_render("zone", zone, "type", types[i]);
            if (trips->labels[i] == NULL) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

void jetson_trips_finish(struct jetson_trips *trips) {
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        labels_destroy(trips->labels[i]);
    }
    clear(trips);
}

void jetson_trips_add(const struct jetson_trips *trips, struct snapshot *out) {
    for (size_t i = 0; i < JETSON_N_TRIP_TYPES; i++) {
        if (trips->labels[i] != NULL) {
            snapshot_add(out, &jetson_descs[JETSON_THERMAL_TRIP], trips->labels[i],
                         trips->celsius[i]);
        }
    }
}
