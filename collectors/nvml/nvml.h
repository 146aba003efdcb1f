#pragma once

#include "collectors/collector.h"

/* NVIDIA's discrete GPUs, through the driver's management library. */
extern const struct collector nvml_collector;
