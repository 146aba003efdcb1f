#pragma once

#include <stdint.h>

#include "collectors/collector.h"

/* NVIDIA Jetson modules from TK1 to Thor: the integrated GPU under the common gpu_* names, supply
 * rails, temperatures, clocks, engines, fans, memory. Reads sysfs, procfs and, if
 * permitted, debugfs; runs tegrastats for values that no file has. */
extern const struct collector jetson_collector;

/* The collector's calls at a given time of the monotonic clock. */
void jetson_sample_at(void *state, int64_t now_ns);
int jetson_collect_at(void *state, int64_t now_ns, struct snapshot *out, struct error *err);
