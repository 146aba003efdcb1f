#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/demo/model.h"

/* The containers of the simulated board, as k3s would have them: their cgroups, bundles and
 * processes. As with demo_text.h, the text of a file is always of the same length. */
size_t demo_container_n_files(void);

/* What a container is called, and its pod; the pods are in the namespace "ses". */
const char *demo_container_name(enum demo_container_index index);
const char *demo_container_pod(enum demo_container_index index);

/* Sets `out` to the path of file `i`, below the demo's directory. */
void demo_container_path(size_t i, struct buf *out);

/* Appends what is in file `i`. */
void demo_container_write(size_t i, const struct demo_model *model, struct buf *out);
