#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/parse.h"
#include "placement/control/config.h"

/* The resource usage of plugin containers as Waggle messages, for science rules, which see only
 * messages.
 *     sys.plugin.perf.cpu   percent of one CPU, since the page before
 *     sys.plugin.perf.mem   bytes of the working set
 *     sys.plugin.perf.gpu   percent of a GPU: the container's own, else the load of the GPU that it
 *                           has memory on (if that is unknown too, that of the node) */
struct waggle;

/* Takes one message: its name, and all of it as one line of JSON. */
typedef void waggle_emit_function(void *context, const char *name, const struct buf *json);

struct waggle *waggle_create(void);
void waggle_destroy(struct waggle *waggle); /* accepts NULL */

/* Makes the messages of a page, of all containers in the namespace ("": of all). `wall_ns` is their
 * timestamp, rates are computed with `monotonic_ns`. */
void waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                 int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context);

/* Writes Waggle messages for wes-metrics-agent: one file each, DIRECTORY/waap/…. */
struct control_waggle;

/* Begins, on the loop, at the interval of the configuration, which must outlive it. */
int control_waggle_create(struct loop *loop, const struct control_config *config,
                          struct control_waggle **ret_waggle, struct error *err);

/* One round; returns how many files were written, or a negative errno. */
int control_waggle_run(struct control_waggle *waggle, struct error *err);

/* Waits for the current round and frees it; false if that takes too long and the process should
 * leave by _exit. Accepts NULL. */
bool control_waggle_destroy(struct control_waggle *waggle);
