#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/parse.h"
#include "placement/control/config.h"

/* What the containers of plugins use, as Waggle messages: for science rules, which see nothing but
 * messages.
 *     sys.plugin.perf.cpu   percent of one CPU, since the page before
 *     sys.plugin.perf.mem   bytes of the working set
 *     sys.plugin.perf.gpu   percent of a GPU: the container's own, else the load of the GPU that it
 *                           has memory on (where that is not known either, that of the node) */
struct waggle;

/* One message is called `name` and reads `json`, on one line. */
typedef void waggle_emit_function(void *context, const char *name, const struct buf *json);

struct waggle *waggle_create(void);         /* NULL when memory is out */
void waggle_destroy(struct waggle *waggle); /* accepts NULL */

/* Makes the messages of a page: of all containers in the namespace ("": of all). `wall_ns` is what
 * they carry, by `monotonic_ns` rates are computed. -ENOMEM, or 0. */
int waggle_take(struct waggle *waggle, const struct exposition_doc *page, const char *namespace,
                int64_t wall_ns, int64_t monotonic_ns, waggle_emit_function *emit, void *context);

/* Puts Waggle messages where wes-metrics-agent picks them up: one file each, DIRECTORY/waap/…. */
struct control_waggle;

/* Begins, on the loop, at the interval of the configuration, which must outlive it. */
int control_waggle_create(struct loop *loop, const struct control_config *config,
                          struct control_waggle **ret_waggle, struct error *err);

/* One round; returns how many files were written, or a negative errno. */
int control_waggle_run(struct control_waggle *waggle, struct error *err);

/* Lets a round that is under way end, and frees it; false where that takes too long and the process
 * should leave by _exit. Accepts NULL. */
bool control_waggle_destroy(struct control_waggle *waggle);
