#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Where one channel of a power monitor is read. */
struct jetson_rail_files {
    char *name;    /* as printed on the schematics, in lower case */
    char *power;   /* NULL: the product of voltage and current */
    int scale;     /* of `power`, to watts */
    char *voltage; /* millivolts */
    char *current; /* milliamperes */
};

struct jetson_rail_list {
    struct jetson_rail_files *rails;
    size_t n_rails;
};

/* Finds the channels of INA3221 and INA238 chips, as the drivers of L4T up to 32 (iio) and from 34
 * on (hwmon) show them. Unconnected channels are left out; of equal names the first counts. A
 * machine without rails has an empty list. -ENOMEM. */
int jetson_rails_find(const char *sysfs, struct jetson_rail_list *ret_list, struct error *err);
void jetson_rail_list_finish(struct jetson_rail_list *list);
#define CLEANUP_JETSON_RAIL_LIST CLEANUP(jetson_rail_list_finish)
