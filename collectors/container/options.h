#pragma once

#include "exporter/settings/option.h"

/* The settings of the collector `container`, ended by a nameless row. */
extern const struct option container_options[];
