#include "placement/control/law.h"

#include <math.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

/* The rounding error of a few sums. */
#define ROUNDING 1e-9

/* The knob is often turned before the measure has settled: its final distance would be larger. */
#define MARGIN 1.25

static const char *const reason_names[N_CONTROL_REASONS] = {
    [CONTROL_ABOVE] = "above",     [CONTROL_BELOW] = "below",
    [CONTROL_SAFE] = "safe",       [CONTROL_IN_BAND] = "in_band",
    [CONTROL_SETTLED] = "settled", [CONTROL_SATURATED] = "saturated",
    [CONTROL_DWELL] = "dwell",     [CONTROL_EMPTY] = "empty",
    [CONTROL_SEVERAL] = "several", [CONTROL_NAN] = "nan",
    [CONTROL_STALE] = "stale",     [CONTROL_FAILED] = "failed",
    [CONTROL_PAUSED] = "paused",   [CONTROL_MANUAL] = "manual",
    [CONTROL_NO_KNOB] = "no_knob", [CONTROL_UNCONFIRMED] = "unconfirmed",
    [CONTROL_REFUSED] = "refused",
};

const char *control_reason_name(enum control_reason reason) {
    return reason_names[reason];
}

/* ---- positions ---- */

static double clamp(double value, double min, double max) {
    return value < min ? min : value > max ? max : value;
}

static bool is_same(const struct control_rule *rule, double a, double b) {
    return fabs(a - b) <= ROUNDING * (rule->max - rule->min);
}

/* The nearest step within the bounds. */
static double nearest_step(const struct control_rule *rule, double position) {
    if (rule->step > 0) {
        position = rule->min + round((position - rule->min) / rule->step) * rule->step;
        if (position > rule->max + rule->step * ROUNDING) {
            position -= rule->step;
        }
    }
    return clamp(position, rule->min, rule->max);
}

/* The last step towards `to` that is not farther than `max_step`. A knob between two steps may move
 * to the next one. */
static double limit_step(const struct control_rule *rule, double from, double to, double max_step) {
    double way = to - from;
    if (fabs(way) <= max_step * (1 + ROUNDING)) {
        return to;
    }
    double reach = from + copysign(max_step, way);
    if (rule->step <= 0) {
        return reach;
    }
    double steps = (reach - rule->min) / rule->step;
    steps = way > 0 ? floor(steps + ROUNDING) : ceil(steps - ROUNDING);
    return clamp(rule->min + steps * rule->step, rule->min, rule->max);
}

/* ---- the laws: the position without regard to bounds, steps and rates ---- */

static double distance(const struct control_rule *rule, double measure) {
    return measure < rule->low    ? measure - rule->low
           : measure > rule->high ? measure - rule->high
                                  : 0;
}

/* Which way the knob has to go to correct an error. */
static double way_out(const struct control_rule *rule, double error) {
    return error * rule->direction > 0 ? -1 : 1;
}

static double target_step(const struct control_rule *rule, struct control_state *state,
                          const struct control_input *input, double error) {
    (void)input;
    double way = way_out(rule, error);
    return state->position + way * (way > 0 ? rule->up.max_step : rule->down.max_step);
}

/* By differences: what a bound or a rate cuts off is not remembered, so there is no windup. */
static double target_pi(const struct control_rule *rule, struct control_state *state,
                        const struct control_input *input, double error) {
    double e = -error * rule->direction;
    if (state->last_ns != 0) {
        double seconds = (double)(input->now_ns - state->last_ns) / (double)CLOCK_NS_PER_SEC;
        state->output += rule->kp * (e - state->last_error) + rule->ki * e * seconds;
        state->output = clamp(state->output, rule->min, rule->max);
    }
    state->last_ns = input->now_ns;
    state->last_error = e;
    return state->output;
}

/* The measure at a position by the table, interpolated between its entries. */
static double look_up(const struct control_rule *rule, double position) {
    const struct control_entry *table = rule->table;
    size_t i = 0;
    while (i < rule->n_table && table[i].position < position) {
        i++;
    }
    if (i == 0 || i == rule->n_table) {
        return table[i == 0 ? 0 : i - 1].measure;
    }
    double share = (position - table[i - 1].position) / (table[i].position - table[i - 1].position);
    return table[i - 1].measure + share * (table[i].measure - table[i - 1].measure);
}

/* Assumes that the machine differs from the table by the same ratio at every position. */
static double target_table(const struct control_rule *rule, struct control_state *state,
                           const struct control_input *input, double error) {
    double here = look_up(rule, state->position);
    double ratio = here != 0 ? input->measure / here : 1;
    double best = state->position;
    double best_error = fabs(error);
    for (size_t i = 0; i < rule->n_table; i++) {
        double position = rule->table[i].position;
        double off = fabs(distance(rule, rule->table[i].measure * ratio));
        bool nearer = fabs(position - state->position) < fabs(best - state->position);
        if (position >= rule->min && position <= rule->max &&
            (off < best_error || (off == best_error && nearer))) {
            best = position;
            best_error = off;
        }
    }
    return best;
}

static double (*const targets[])(const struct control_rule *rule, struct control_state *state,
                                 const struct control_input *input, double error) = {
    [CONTROL_STEP] = target_step,
    [CONTROL_PI] = target_pi,
    [CONTROL_TABLE] = target_table,
};

/* ---- oscillation ---- */

static void forget_old_reversals(const struct control_rule *rule, struct control_state *state,
                                 int64_t now_ns) {
    size_t kept = 0;
    for (size_t i = 0; i < state->n_reversals; i++) {
        if (now_ns - state->reversals_ns[i] <= rule->window_ns) {
            state->reversals_ns[kept++] = state->reversals_ns[i];
        }
    }
    state->n_reversals = kept;
}

/* The loop oscillates: the knob's steps are too coarse for the band, or the loop is faster than the
 * plant. The dead band grows until the better of the two positions is inside. */
static void note_reversal(const struct control_rule *rule, struct control_state *state,
                          int64_t now_ns) {
    forget_old_reversals(rule, state, now_ns);
    if (state->n_reversals == CONTROL_MAX_REVERSALS) {
        state->n_reversals--;
    }
    state->reversals_ns[state->n_reversals++] = now_ns;
    if (rule->max_reversals == 0 || state->n_reversals < rule->max_reversals) {
        return;
    }
    state->floor = fmax(fmin(state->error_up, state->error_down) * MARGIN - rule->deadband, 0);
    state->widening = fmax(state->floor, fmax(2 * state->widening, rule->deadband / 2));
    state->widened_ns = now_ns;
}

/* What was widened beyond the coarseness of the steps is halved after a while. */
static void narrow(const struct control_rule *rule, struct control_state *state, int64_t now_ns) {
    if (state->widening > state->floor && now_ns - state->widened_ns > rule->window_ns) {
        state->widening = fmax(state->widening / 2, state->floor);
        state->widened_ns = now_ns;
    }
}

/* ---- deciding ---- */

struct control_decision control_law_hold(const struct control_state *state,
                                         enum control_reason reason) {
    return (struct control_decision){.reason = reason, .position = state->position, .error = NAN};
}

static bool dwells(const struct control_rule *rule, const struct control_state *state,
                   double position, int64_t now_ns) {
    const struct control_side *side = position > state->position ? &rule->up : &rule->down;
    return state->has_changed && now_ns - state->changed_ns < side->dwell_ns;
}

/* A missing measure is never zero; after a while the knob goes to its safe position. */
static struct control_decision without_measure(const struct control_rule *rule,
                                               struct control_state *state,
                                               const struct control_input *input) {
    struct control_decision decision = control_law_hold(state, input->trouble);
    state->last_ns = 0;
    state->failures++;
    if (rule->max_failures == 0 || state->failures < rule->max_failures) {
        return decision;
    }
    state->is_safe = true;
    if (!is_same(rule, state->position, rule->safe)) {
        bool must_wait = dwells(rule, state, rule->safe, input->now_ns);
        decision.reason = must_wait ? CONTROL_DWELL : CONTROL_SAFE;
        decision.position = must_wait ? state->position : rule->safe;
    }
    return decision;
}

static bool is_at_bound(const struct control_rule *rule, const struct control_state *state,
                        double way) {
    double last = way > 0 ? nearest_step(rule, rule->max) : rule->min;
    return (state->position - last) * way >= 0 || is_same(rule, state->position, last);
}

static struct control_decision with_error(const struct control_rule *rule,
                                          struct control_state *state,
                                          const struct control_input *input, double error) {
    struct control_decision decision = control_law_hold(state, CONTROL_DWELL);
    double way = way_out(rule, error);
    if (dwells(rule, state, state->position + way, input->now_ns)) {
        return decision; /* without the law, which would count the time twice */
    }
    /* A position of a table was measured, and may be off the steps and against the way. */
    bool is_known = rule->kind == CONTROL_TABLE;
    double target = targets[rule->kind](rule, state, input, error);
    double position = is_known ? target : nearest_step(rule, target);
    decision.is_saturated = is_at_bound(rule, state, way);
    bool up = position > state->position;
    bool is_against = decision.is_saturated && up != (way > 0) && !is_known;
    if (is_same(rule, position, state->position) || is_against) {
        decision.reason = decision.is_saturated ? CONTROL_SATURATED : CONTROL_SETTLED;
        return decision;
    }
    if (dwells(rule, state, position, input->now_ns)) {
        return decision;
    }
    decision.reason = error > 0 ? CONTROL_ABOVE : CONTROL_BELOW;
    decision.position =
        limit_step(rule, state->position, position, up ? rule->up.max_step : rule->down.max_step);
    return decision;
}

struct control_decision control_law_decide(const struct control_rule *rule,
                                           struct control_state *state,
                                           const struct control_input *input) {
    if (isnan(input->measure)) {
        return without_measure(rule, state, input);
    }
    state->failures = 0;
    state->is_safe = false;
    narrow(rule, state, input->now_ns);
    double error = distance(rule, input->measure);
    struct control_decision decision;
    if (fabs(error) <= rule->deadband + state->widening) {
        decision = control_law_hold(state, CONTROL_IN_BAND);
        state->last_ns = input->now_ns;
        state->last_error = -error * rule->direction;
    } else {
        decision = with_error(rule, state, input, error);
    }
    decision.error = error;
    return decision;
}

/* ---- results ---- */

void control_law_start(struct control_state *state, double position) {
    *state = (struct control_state){.position = position, .output = position};
}

void control_law_turned(const struct control_rule *rule, struct control_state *state,
                        const struct control_decision *decision, double position, int64_t now_ns) {
    int direction = position > state->position ? 1 : position < state->position ? -1 : 0;
    state->position = position;
    state->has_changed = true;
    state->changed_ns = now_ns;
    if (fabs(state->output - position) > rule->step / 2 + ROUNDING * (rule->max - rule->min)) {
        state->output = position;
    }
    if (direction == 0 || decision->reason == CONTROL_SAFE) {
        return;
    }
    *(direction > 0 ? &state->error_up : &state->error_down) = fabs(decision->error);
    if (state->last_direction == -direction) {
        state->last_direction = direction;
        note_reversal(rule, state, now_ns);
        return;
    }
    forget_old_reversals(rule, state, now_ns);
    if (state->last_direction == direction && state->n_reversals == 0) {
        state->widening = state->floor = 0; /* the plant is moving to another state */
    }
    state->last_direction = direction;
}

void control_law_moved(struct control_state *state, double position, int64_t now_ns) {
    state->position = position;
    state->output = position;
    state->last_ns = 0;
    state->last_direction = 0;
    state->has_changed = true;
    state->changed_ns = now_ns;
}

bool control_law_oscillates(const struct control_state *state) {
    return state->widening > 0;
}
