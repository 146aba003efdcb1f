#pragma once

#include "exporter/core/buf.h"

/* Appends the name of a thermal zone that stays the same from one L4T release to the next: its type
 * up to the first '-' or '_', in lower case. "CPU-therm" and "cpu-thermal" are both "cpu". */
void jetson_zone_name(struct buf *out, const char *type);
