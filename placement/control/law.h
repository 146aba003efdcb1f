#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The decision of one loop: from a measure and a time to a position of the knob. It touches nothing
 * else, so tests run it on a simulated plant. A position is the value of a number, or the index in
 * the list of levels. */

enum control_kind { CONTROL_STEP, CONTROL_PI, CONTROL_TABLE };

/* Why the knob was turned or left alone. */
enum control_reason {
    CONTROL_ABOVE, /* the measure is too high: turned */
    CONTROL_BELOW,
    CONTROL_SAFE, /* no measure for too long: turned to the safe position */

    CONTROL_IN_BAND,   /* the measure is on target */
    CONTROL_SETTLED,   /* no position is better */
    CONTROL_SATURATED, /* the knob is at its bound */
    CONTROL_DWELL,     /* too soon after the last turn */

    CONTROL_EMPTY, /* the query has no result */
    CONTROL_SEVERAL,
    CONTROL_NAN,
    CONTROL_STALE,
    CONTROL_FAILED, /* the query failed */

    CONTROL_PAUSED,
    CONTROL_MANUAL,      /* somebody else has turned the knob */
    CONTROL_NO_KNOB,     /* the knob cannot be read */
    CONTROL_UNCONFIRMED, /* the plugin has not confirmed the last value */
    CONTROL_REFUSED,     /* the exporter rejected a value */
    N_CONTROL_REASONS,
};

/* "above", "in_band", …: also the label `reason`. */
const char *control_reason_name(enum control_reason reason);

/* Whether the knob was turned. */
static inline bool control_reason_is_action(enum control_reason reason) {
    return reason <= CONTROL_SAFE;
}

/* How far and how often the knob may be turned in one direction. */
struct control_side {
    double max_step;  /* of one turn, in positions */
    int64_t dwell_ns; /* since the last turn in any direction */
};

/* A position and the measure there, in a sweep. */
struct control_entry {
    double position;
    double measure;
};

struct control_rule {
    enum control_kind kind;
    double low, high; /* the target; equal: a set point */
    double deadband;  /* how far outside the measure may be before the knob is turned */
    int direction;    /* 1: a higher position makes the measure higher; -1: lower */
    double min, max;  /* of the position */
    double step;      /* positions are min + n * step; 0: any */
    struct control_side up, down;
    double kp;                         /* PI: positions per unit of the measure … */
    double ki;                         /* … and that per second */
    const struct control_entry *table; /* sorted by position */
    size_t n_table;
    unsigned max_failures; /* in a row; then the safe position is taken. 0: never */
    double safe;
    unsigned max_reversals; /* within the window: more is an oscillation. 0: never */
    int64_t window_ns;
};

enum { CONTROL_MAX_REVERSALS = 16 };

/* The state of a loop. Zeroed, then control_law_start. */
struct control_state {
    double position; /* where the knob is */
    double output;   /* PI: the position without steps */
    double last_error;
    int64_t last_ns; /* of the last PI computation; 0: restart */
    int64_t changed_ns;
    bool has_changed;
    int last_direction; /* of the last turn: 1, -1, or 0 */
    double error_up;    /* distance from the target when the knob last went up, and down */
    double error_down;
    double widening; /* of the dead band, against an oscillation */
    double floor;    /* the part of it that the knob's coarse steps need */
    int64_t widened_ns;
    unsigned failures;
    bool is_safe;
    int64_t reversals_ns[CONTROL_MAX_REVERSALS];
    size_t n_reversals;
};

struct control_input {
    int64_t now_ns;              /* monotonic */
    double measure;              /* NAN: none */
    enum control_reason trouble; /* why there is none */
};

struct control_decision {
    enum control_reason reason;
    double position; /* the new position of an action, else the present one */
    double error;    /* distance of the measure from its target, signed; 0 inside, NAN: none */
    bool is_saturated;
};

/* Starts at a position. */
void control_law_start(struct control_state *state, double position);

/* Leaves the knob alone. */
struct control_decision control_law_hold(const struct control_state *state,
                                         enum control_reason reason);

/* Decides. The state changes; its position only by control_law_turned. */
struct control_decision control_law_decide(const struct control_rule *rule,
                                           struct control_state *state,
                                           const struct control_input *input);

/* The knob has been turned as decided and is at `position`, which may differ from the decision. */
void control_law_turned(const struct control_rule *rule, struct control_state *state,
                        const struct control_decision *decision, double position, int64_t now_ns);

/* Somebody else has turned the knob: the loop continues from there after its dwell. */
void control_law_moved(struct control_state *state, double position, int64_t now_ns);

/* Whether the dead band is widened because of an oscillation. */
bool control_law_oscillates(const struct control_state *state);
