#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/parse.h"
#include "placement/client/promql.h"
#include "placement/control/config.h"

/* Waggle messages, as science rules see nothing else: the answers to the queries of the
 * configuration, and the resource usage of plugin containers.
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

/* Makes one message of each sample of an answer. All labels are its meta data; `plugin` is also
 * `task`, by which rules know a plugin. Values that are no finite number make none. -EINVAL if a
 * sample has labels for which Waggle would drop its message, which is not made; the others are. */
int waggle_take_answer(const char *name, const struct promql_answer *answer, int64_t wall_ns,
                       waggle_emit_function *emit, void *context, struct error *err);

/* Sends them at the interval of the configuration, which must outlive it: to the AMQP broker, and
 * for wes-metrics-agent as one file each, DIRECTORY/waap/…. */
int waggle_start(struct waggle *waggle, struct loop *loop, const struct control_config *config,
                 struct error *err);

/* False if the current round does not end; then the process must leave by _exit. */
bool waggle_stop(struct waggle *waggle);
