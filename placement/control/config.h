#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/channel/knob.h"
#include "exporter/core/arena.h"
#include "exporter/metrics/selector.h"
#include "exporter/settings/problems.h"
#include "placement/client/web_client.h"
#include "placement/control/amqp.h"
#include "placement/control/law.h"

/* The configuration file of `waap control`. */

/* Which knob; NULL matches anything. */
struct control_knob_name {
    const char *plugin, *param;
    const char *container, *job, *namespace, *pod;
};

struct control_loop_config {
    const char *name;
    const char *query;
    const char *age_query;     /* for the age of the measure in seconds; NULL: none */
    bool from_exporter;        /* the query is `selector`, on the exporter's own page */
    struct selector *selector; /* destroyed with the configuration */
    struct control_knob_name knob;
    struct knob_value *levels; /* in order; none: the position is the number itself */
    size_t n_levels;
    struct control_rule rule;
    int64_t interval_ms;
    int64_t stale_ms;
    int64_t ack_ms; /* how long the plugin may take to apply a value */
};

/* What Waggle's loader of messages takes; it drops the others without a word. */
enum { WAGGLE_MAX_NAME = 64, WAGGLE_MAX_VALUE = 256 };

/* A query whose samples become Waggle messages. */
struct control_message {
    const char *name, *query;
};

struct control_config {
    struct web_endpoint prometheus, exporter;
    const char *metrics_path;
    struct {
        const char *directory;   /* NULL: no files */
        struct amqp_target amqp; /* no host: no broker */
        struct control_message *messages;
        size_t n_messages;
        const char *namespace; /* of the pods that are plugins; "": all containers */
        int64_t interval_ms;
    } waggle;
    struct control_loop_config *loops;
    size_t n_loops;
    struct arena arena;
};

/* Reads the file, and the tables that it names. -EINVAL with every mistake in `problems` as
 * file:line:column. Free it with control_config_finish in any case. */
int control_config_load(const char *path, struct control_config *config, struct problems *problems);

/* The same for a text, as if it were in a file of that name. */
int control_config_parse(const char *file, const char *text, size_t len,
                         struct control_config *config, struct problems *problems);

void control_config_finish(struct control_config *config);

/* Whether it asks for Waggle messages. */
static inline bool control_config_has_waggle(const struct control_config *config) {
    return config->waggle.directory != NULL || config->waggle.amqp.host != NULL;
}

/* Reads what a sweep of `waap run` has measured, the list "sweep" of a summary:
 *     {"sweep": [{"knobs": {"res": 480}, "measures": {"fps": 14.2}}, …]}
 * into entries sorted by the position of `loop`'s knob; those of one position are averaged. `text`
 * is overwritten. -EINVAL if it is not a sweep, has no such knob or measure, or fewer than two
 * positions. */
int control_table_parse(char *text, size_t len, const struct control_loop_config *loop,
                        const char *measure, struct arena *arena,
                        const struct control_entry **ret_entries, size_t *ret_n, struct error *err);

/* The position of a value: a number, or its index among the levels; NAN if it is neither. */
double control_config_position(const struct control_loop_config *loop,
                               const struct knob_value *value);
