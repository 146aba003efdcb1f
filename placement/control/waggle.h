#pragma once

#include <stdbool.h>
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

/* Takes one message: its name, and all of it as one line of JSON. A negative errno ends the page.
 */
typedef int waggle_emit_function(void *context, const char *name, const struct buf *json,
                                 struct error *err);

struct waggle *waggle_create(void);
void waggle_destroy(struct waggle *waggle); /* accepts NULL */

/* Makes the messages of a page, of all containers in the namespace ("": of all). `wall_ns` is their
 * timestamp, rates are computed with `monotonic_ns`. */
int waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context,
                struct error *err);

/* Writes them for wes-metrics-agent at the interval of the configuration, which must outlive it:
 * one file each, DIRECTORY/waap/…. */
int waggle_start(struct waggle *waggle, struct loop *loop, const struct control_config *config,
                 struct error *err);

/* False if the current round does not end; then the process must leave by _exit. */
bool waggle_stop(struct waggle *waggle);
