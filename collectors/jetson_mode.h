#pragma once

#include "exporter/core/buf.h"

/* The number of the power mode in /var/lib/nvpmodel/status ("pmode:0002"); -EINVAL. */
int jetson_mode_parse(const char *text, unsigned *ret_id);

/* Appends the name of that mode in /etc/nvpmodel.conf ("< POWER_MODEL ID=2 NAME=MODE_15W_6CORE >");
 * -ENOENT if it has none. */
int jetson_mode_name(const char *text, unsigned id, struct buf *out);
