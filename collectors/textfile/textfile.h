#pragma once

#include "collectors/collector.h"

/* Metrics that others leave in *.prom files. */
extern const struct collector textfile_collector;
