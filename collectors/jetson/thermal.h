#pragma once

#include "exporter/metrics/labels.h"

enum { JETSON_N_TRIP_TYPES = 4 };

/* Temperatures at which the kernel does something about a thermal zone: of each type ("active": a
 * fan, "passive": lower clocks, "hot", "critical": shutdown) the lowest, NAN where there is none.
 */
struct jetson_trips {
    double celsius[JETSON_N_TRIP_TYPES];
    struct labels *labels[JETSON_N_TRIP_TYPES]; /* NULL where there is none */
};

/* Takes in one trip point by the texts of its files; what is switched off or unknown is left out.
 */
void jetson_trips_take(struct jetson_trips *trips, const char *type, const char *millicelsius);
