#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/metrics/parse.h"
#include "placement/control/config.h"
#include "placement/control/knob.h"
#include "placement/control/law.h"
#include "placement/control/memory.h"

/* Reads the exporter's page; `page` points into `text`. */
int control_page_read(const struct control_config *config, struct web_client *exporter,
                      struct buf *text, struct exposition_doc *page, struct error *err);

/* A loop measures, decides, turns the knob and waits for the plugin to confirm it. */

/* What is shown of a loop. */
struct control_status {
    uint64_t actions[N_CONTROL_REASONS]; /* by reason; the others are holds */
    uint64_t unconfirmed;                /* values that the plugin did not confirm in time */
    bool has_run;
    struct control_decision last;
    double measure;
    bool has_measure;
    double position; /* of the knob */
    bool has_position;
    unsigned failures;
    bool is_safe;
    bool oscillates;
    double run_seconds;
    double run_at;      /* since 1970 */
    struct error words; /* what is wrong, or "" */
};

struct control_loop {
    const struct control_config *config;
    const struct control_loop_config *loop;
    struct control_rule rule; /* within the bounds that the plugin has declared */
    struct control_state state;
    bool has_state;
    struct control_memory memory; /* of the process before; used if the knob has not moved */
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

/* Makes the clients. The configuration must outlive the loop. */
int control_loop_init(struct control_loop *loop, const struct control_config *config, size_t index,
                      bool is_dry, struct error *err);
void control_loop_finish(struct control_loop *loop);

/* One round; may take as long as the timeouts of the configuration. */
void control_loop_run(struct control_loop *loop, bool is_paused);

/* Makes the current round end soon; from any thread. */
void control_loop_stop(struct control_loop *loop);
