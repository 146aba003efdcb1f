#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The decision of one loop: from a measure and a moment to a position of the knob. Touches nothing
 * else, so it can be tried on a simulated plant. A position is the value of a number, and the
 * index in the list of levels for everything else. */

enum control_kind { CONTROL_STEP, CONTROL_PI, CONTROL_TABLE };

/* Why something was done or left. */
enum control_reason {
    CONTROL_ABOVE, /* the measure is too high: turned */
    CONTROL_BELOW,
    CONTROL_SAFE, /* nothing was measured for too long: turned to the safe position */

    CONTROL_IN_BAND,   /* all is well */
    CONTROL_SETTLED,   /* no position does better */
    CONTROL_SATURATED, /* it would have to go beyond a bound */
    CONTROL_DWELL,     /* too soon after the last turn */

    CONTROL_EMPTY, /* the query answers with nothing */
    CONTROL_SEVERAL,
    CONTROL_NAN,
    CONTROL_STALE,
    CONTROL_FAILED, /* the query is not answered */

    CONTROL_PAUSED,
    CONTROL_MANUAL,      /* somebody else has turned the knob */
    CONTROL_NO_KNOB,     /* it cannot be read */
    CONTROL_UNCONFIRMED, /* the plugin has not said that it has applied the last value */
    CONTROL_REFUSED,     /* the exporter did not take a value */
    N_CONTROL_REASONS,
};

/* "above", "in_band", …: also the label `reason`. */
const char *control_reason_name(enum control_reason reason);

/* Whether the knob was turned. */
static inline bool control_reason_is_action(enum control_reason reason) {
    return reason <= CONTROL_SAFE;
}

/* How far and how often the knob may go in one direction. */
struct control_side {
    double max_step;  /* of one turn, in positions */
    int64_t dwell_ns; /* since the last turn in any direction */
};

/* A position and what was measured there once. */
struct control_entry {
    double position;
    double measure;
};

struct control_rule {
    enum control_kind kind;
    double low, high; /* where the measure is to be; equal: a set point */
    double deadband;  /* how far outside it may be before anything is done */
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

/* What a loop remembers. Zeroed, then control_law_start. */
struct control_state {
    double position; /* where the knob is */
    double output;   /* PI: where it would be without steps */
    double last_error;
    int64_t last_ns; /* when the PI law was asked last; 0: begin anew */
    int64_t changed_ns;
    bool has_changed;
    int last_direction; /* of the last turn: 1, -1, or 0 */
    double error_up;    /* how far outside the measure was when the knob last went up, and down */
    double error_down;
    double widening; /* of the dead band, while the loop would oscillate */
    double floor;    /* what of it the knob's coarse steps need */
    int64_t widened_ns;
    unsigned failures;
    bool is_safe;
    int64_t reversals_ns[CONTROL_MAX_REVERSALS];
    size_t n_reversals;
};

struct control_input {
    int64_t now_ns; /* monotonic */
    double measure;
    bool has_measure;
    enum control_reason trouble; /* why there is none */
};

struct control_decision {
    enum control_reason reason;
    double position; /* where the knob is to be; the same as before unless it is an action */
    double error;    /* distance of the measure from where it is to be, signed; 0 inside */
    bool has_error;  /* there was a measure */
    bool is_saturated;
};

/* Begins at a position without a bump. */
void control_law_start(struct control_state *state, double position);

/* What is to be done. The state changes; the position only by control_law_turned. */
struct control_decision control_law_decide(const struct control_rule *rule,
                                           struct control_state *state,
                                           const struct control_input *input);

/* The knob has been turned as decided and is at `position`, which may be another than wanted. */
void control_law_turned(const struct control_rule *rule, struct control_state *state,
                        const struct control_decision *decision, double position, int64_t now_ns);

/* Somebody else has turned it: the loop goes on from there after its dwell. */
void control_law_moved(struct control_state *state, double position, int64_t now_ns);

/* Whether the dead band is widened because of an oscillation. */
bool control_law_oscillates(const struct control_state *state);
