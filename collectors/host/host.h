#pragma once

#include "collectors/collector.h"

/* The machine itself, under node_exporter's names: CPUs, memory, load, file systems, disks, network
 * devices, pressure, temperatures. Reads /proc, /sys/class/thermal, statfs and uname. */
extern const struct collector host_collector;
