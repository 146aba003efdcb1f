#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/channel/knob.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/metrics/parse.h"
#include "placement/client/web_client.h"
#include "placement/control/config.h"
#include "placement/control/law.h"
#include "placement/control/memory.h"

/* A knob as the exporter shows it. */
struct control_knob {
    enum knob_type type;
    double min, max, step; /* infinite, 0: not declared */
    struct knob_value initial, requested, applied;
    double requested_seconds, applied_seconds; /* since 1970 */
    struct buf text;                           /* the texts are in it */
};

void control_knob_finish(struct control_knob *knob);

/* Gets a knob from the exporter; -ENOENT if there is none. */
int control_knob_read(struct web_client *exporter, const struct control_knob_name *name,
                      struct control_knob *knob, struct error *err);

/* Requests a value; `knob` is the knob after that. */
int control_knob_write(struct web_client *exporter, const struct control_knob_name *name,
                       const struct knob_value *value, struct control_knob *knob,
                       struct error *err);

/* Whether the plugin has not yet answered the last request. */
bool control_knob_is_pending(const struct control_knob *knob);

/* The value that the plugin has applied, else the requested one, else the default. */
const struct knob_value *control_knob_value(const struct control_knob *knob);

/* The exporter's page. */
struct control_page {
    struct exposition_doc doc; /* points into the text */
    struct buf text;
};

int control_page_read(const struct control_config *config, struct web_client *exporter,
                      struct control_page *page, struct error *err);
void control_page_finish(struct control_page *page);
#define CLEANUP_CONTROL_PAGE CLEANUP(control_page_finish)

/* A loop measures, decides, turns the knob and waits for the plugin to confirm it. */

/* What is shown of a loop. */
struct control_status {
    uint64_t actions[N_CONTROL_REASONS]; /* by reason; the others are holds */
    uint64_t unconfirmed;                /* values that the plugin did not confirm in time */
    bool has_run;
    struct control_decision last;
    struct control_state state;
    double measure; /* NAN: none */
    double run_seconds;
    double run_at;      /* since 1970 */
    struct error words; /* what is wrong, or "" */
};

struct control_loop {
    const struct control_config *config;
    const struct control_loop_config *loop;
    struct control_rule rule;            /* within the bounds that the plugin has declared */
    struct control_state state;          /* its position is NAN before the first look at the knob */
    const struct control_memory *memory; /* used if the knob has not moved */
    struct web_client *prometheus, *exporter;
    struct control_knob knob;
    struct control_decision pending; /* not yet confirmed */
    bool has_pending;
    unsigned n_retries;
    int64_t retry_ns;
    bool is_dry;
    atomic_bool is_stopping;
    struct error remark; /* the last one that was logged */
    bool falls_short;    /* "out of reach" was logged … */
    int64_t short_ns;    /* … at this moment */
    struct control_status status;
};

/* Makes the clients. The configuration must outlive the loop, and the memory of the process before,
 * which is read in the first round. */
int control_loop_init(struct control_loop *loop, const struct control_config *config, size_t index,
                      const struct control_memory *memory, bool is_dry, struct error *err);
void control_loop_finish(struct control_loop *loop);

/* One round; may take as long as the timeouts of the configuration. */
void control_loop_run(struct control_loop *loop, bool is_paused);

/* Makes the current round end soon; from any thread. */
void control_loop_stop(struct control_loop *loop);
