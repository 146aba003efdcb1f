#pragma once

#include "collectors/collector.h"

/* Metrics from *.prom files. */
extern const struct collector textfile_collector;
