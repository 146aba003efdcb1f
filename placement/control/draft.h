#pragma once

#include "exporter/settings/yaml_key.h"
#include "placement/control/config.h"

/* A loop while it is read: what depends on several keys is worked out at the end. */
struct control_draft {
    struct control_loop_config loop;
    const char *source, *law, *direction;
    double setpoint, band[2]; /* NAN: not given */
    double min, max, step;
    double deadband;
    bool deadband_is_share; /* of the target */
    double max_step;
    int64_t dwell_ms;
    struct control_draft_side {
        double max_step;
        int64_t dwell_ms;
    } up, down; /* of the knob; NAN and -1: as above */
    double kp, ki;
    int64_t failures, reversals, window_ms;
    const struct yaml_node *safe;
    const char *table_file, *table_measure;
};

/* Reads one item of the list of loops: struct control_draft. */
void control_draft_read(struct yaml_reader *reader, const struct yaml_node *node,
                        struct control_draft *ret_draft);

/* Works out the rest of the loop; adds what does not fit together to the reader's problems. */
void control_draft_finish(struct yaml_reader *reader, const struct yaml_node *node,
                          struct control_draft *draft);

/* A scalar as JSON has it: a number or truth without quotes, else a text. */
struct knob_value control_draft_value(struct yaml_reader *reader, const struct yaml_node *node);
