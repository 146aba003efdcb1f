#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/demo/model.h"

/* The containers of the simulated board, as k3s runs them: their cgroups, bundles and processes.
 * The length of a text never changes. */
size_t demo_container_n_files(void);

/* The name of a container and of its pod, in the namespace "ses". */
const char *demo_container_name(enum demo_container_index index);
const char *demo_container_pod(enum demo_container_index index);

/* Appends a row of a pressure file; `kind` is "some" or "full". */
void demo_write_pressure(struct buf *out, const char *kind, double seconds);

/* Sets `out` to the path of file `i`, below the demo's directory. */
void demo_container_path(size_t i, struct buf *out);

/* Appends the content of file `i`. */
void demo_container_write(size_t i, const struct demo_model *model, struct buf *out);
