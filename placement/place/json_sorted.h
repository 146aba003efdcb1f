#pragma once

#include "exporter/core/json.h"

/* Takes one value and appends it with the keys of its objects in order and no blanks, as Flask
 * writes what it was sent; numbers stay as they are, digit by digit. Of equal keys the last
 * counts. */
int json_sorted_add(struct json *json, struct buf *out, struct error *err);
