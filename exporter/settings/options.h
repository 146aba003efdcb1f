#pragma once

#include "exporter/settings/option.h"

/* The settings of the daemon itself, sorted by name, ended by a nameless row. Those of the
 * collectors stand beside each collector. */
extern const struct option exporter_options[];
