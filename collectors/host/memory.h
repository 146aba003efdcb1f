#pragma once

#include <stdbool.h>

#include "exporter/core/buf.h"
#include "exporter/core/scan.h"

/* Appends node_exporter's name for a key: "node_memory_Active_anon_bytes". */
void host_memory_name(struct buf *out, struct scan_word key, bool kilobytes);
