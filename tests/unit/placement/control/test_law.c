#include "placement/control/law.h"

#include <math.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define SECONDS(n) ((n)*CLOCK_NS_PER_SEC)

/* Frames per second from lines of resolution: more lines, fewer frames. */
static const struct control_rule base = {
    .kind = CONTROL_STEP,
    .low = 15,
    .high = 15,
    .deadband = 1,
    .direction = -1,
    .min = 240,
    .max = 1080,
    .step = 120,
    .up = {.max_step = 120, .dwell_ns = SECONDS(60)},
    .down = {.max_step = 240, .dwell_ns = SECONDS(20)},
    .max_failures = 3,
    .safe = 480,
    .max_reversals = 3,
    .window_ns = SECONDS(3600),
};

static struct control_decision decide(const struct control_rule *rule, struct control_state *state,
                                      int64_t second, double measure) {
    struct control_input input = {.now_ns = SECONDS(1000 + second), .measure = measure};
    return control_law_decide(rule, state, &input);
}

static struct control_decision decide_without(const struct control_rule *rule,
                                              struct control_state *state, int64_t second,
                                              enum control_reason trouble) {
    struct control_input input = {
        .now_ns = SECONDS(1000 + second), .measure = NAN, .trouble = trouble};
    return control_law_decide(rule, state, &input);
}

static void turn(const struct control_rule *rule, struct control_state *state, int64_t second,
                 const struct control_decision *decision) {
    control_law_turned(rule, state, decision, decision->position, SECONDS(1000 + second));
}

#define EXPECT(reason_, position_, decision_)                                                      \
    do {                                                                                           \
        struct control_decision d_ = (decision_);                                                  \
        TEST_ASSERT_EQUAL_STRING(control_reason_name(reason_), control_reason_name(d_.reason));    \
        TEST_ASSERT_EQUAL_DOUBLE(position_, d_.position);                                          \
    } while (0)

/* ---- single decisions ---- */

static void test_steps_towards_the_band(void) {
    struct control_state state;
    control_law_start(&state, 720);
    EXPECT(CONTROL_IN_BAND, 720, decide(&base, &state, 0, 15));
    EXPECT(CONTROL_IN_BAND, 720, decide(&base, &state, 0, 14));
    EXPECT(CONTROL_IN_BAND, 720, decide(&base, &state, 0, 16));
    EXPECT(CONTROL_BELOW, 480, decide(&base, &state, 0, 13.9));
    EXPECT(CONTROL_ABOVE, 840, decide(&base, &state, 0, 16.1));
    TEST_ASSERT_EQUAL_DOUBLE(-5, decide(&base, &state, 0, 10).error);
    struct control_rule other = base;
    other.direction = 1;
    EXPECT(CONTROL_BELOW, 840, decide(&other, &state, 0, 10));
}

static void test_a_band_is_no_setpoint(void) {
    struct control_rule rule = base;
    struct control_state state;
    rule.low = 10;
    rule.high = 20;
    control_law_start(&state, 720);
    EXPECT(CONTROL_IN_BAND, 720, decide(&rule, &state, 0, 9));
    EXPECT(CONTROL_IN_BAND, 720, decide(&rule, &state, 0, 21));
    EXPECT(CONTROL_BELOW, 480, decide(&rule, &state, 0, 8));
    EXPECT(CONTROL_ABOVE, 840, decide(&rule, &state, 0, 22));
}

static void test_bounds(void) {
    struct control_state state;
    control_law_start(&state, 360);
    EXPECT(CONTROL_BELOW, 240, decide(&base, &state, 0, 1));
    control_law_start(&state, 240);
    struct control_decision decision = decide(&base, &state, 0, 1);
    EXPECT(CONTROL_SATURATED, 240, decision);
    TEST_ASSERT_TRUE(decision.is_saturated);
    control_law_start(&state, 1080);
    EXPECT(CONTROL_SATURATED, 1080, decide(&base, &state, 0, 100));
    /* Somebody has put it outside of our bounds: back inside, never further out. */
    control_law_start(&state, 1920);
    EXPECT(CONTROL_SATURATED, 1920, (decide(&base, &state, 0, 100)));
    EXPECT(CONTROL_BELOW, 1080, (decide(&base, &state, 0, 1)));
}

static void test_dwell_of_each_direction(void) {
    struct control_state state;
    control_law_start(&state, 720);
    struct control_decision decision = decide(&base, &state, 0, 10);
    turn(&base, &state, 0, &decision);
    EXPECT(CONTROL_DWELL, 480, decide(&base, &state, 19, 10));
    EXPECT(CONTROL_BELOW, 240, decide(&base, &state, 20, 10));
    EXPECT(CONTROL_DWELL, 480, decide(&base, &state, 59, 30));
    EXPECT(CONTROL_ABOVE, 600, decide(&base, &state, 60, 30));
}

static void test_no_measure_is_never_zero(void) {
    static const enum control_reason troubles[] = {CONTROL_EMPTY, CONTROL_SEVERAL, CONTROL_NAN,
                                                   CONTROL_STALE, CONTROL_FAILED};
    for (size_t i = 0; i < ARRAY_LEN(troubles); i++) {
        struct control_state state;
        control_law_start(&state, 720);
        EXPECT(troubles[i], 720, decide_without(&base, &state, 0, troubles[i]));
        EXPECT(troubles[i], 720, decide_without(&base, &state, 1, troubles[i]));
        struct control_decision decision = decide_without(&base, &state, 2, troubles[i]);
        EXPECT(CONTROL_SAFE, 480, decision);
        TEST_ASSERT_TRUE(isnan(decision.error));
        turn(&base, &state, 2, &decision);
        TEST_ASSERT_TRUE(state.is_safe);
        EXPECT(troubles[i], 480, decide_without(&base, &state, 3, troubles[i]));
        EXPECT(CONTROL_IN_BAND, 480, decide(&base, &state, 4, 15));
        TEST_ASSERT_FALSE(state.is_safe);
    }
}

static void test_one_measure_ends_a_row_of_failures(void) {
    struct control_state state;
    control_law_start(&state, 720);
    for (int64_t i = 0; i < 10; i++) {
        EXPECT(CONTROL_NAN, 720, decide_without(&base, &state, 2 * i, CONTROL_NAN));
        EXPECT(CONTROL_NAN, 720, decide_without(&base, &state, 2 * i, CONTROL_NAN));
        EXPECT(CONTROL_IN_BAND, 720, decide(&base, &state, 2 * i + 1, 15));
    }
}

static void test_the_safe_position_waits_for_the_dwell(void) {
    struct control_state state;
    control_law_start(&state, 720);
    struct control_decision decision = decide(&base, &state, 0, 30);
    turn(&base, &state, 0, &decision);
    decide_without(&base, &state, 1, CONTROL_FAILED);
    decide_without(&base, &state, 2, CONTROL_FAILED);
    EXPECT(CONTROL_DWELL, 840, decide_without(&base, &state, 3, CONTROL_FAILED));
    EXPECT(CONTROL_SAFE, 480, decide_without(&base, &state, 20, CONTROL_FAILED));
}

static void test_without_a_safe_position(void) {
    struct control_rule rule = base;
    struct control_state state;
    rule.max_failures = 0;
    control_law_start(&state, 720);
    for (int64_t i = 0; i < 100; i++) {
        EXPECT(CONTROL_FAILED, 720, decide_without(&rule, &state, i, CONTROL_FAILED));
    }
}

static void test_moved_by_hand(void) {
    struct control_state state;
    control_law_start(&state, 720);
    control_law_moved(&state, 1080, SECONDS(1000));
    EXPECT(CONTROL_DWELL, 1080, decide(&base, &state, 10, 5));
    EXPECT(CONTROL_BELOW, 840, decide(&base, &state, 20, 5));
}

static void test_table(void) {
    static const struct control_entry entries[] = {
        {240, 60}, {480, 30}, {720, 20}, {960, 12}, {1080, 10}};
    struct control_rule rule = base;
    struct control_state state;
    rule.kind = CONTROL_TABLE;
    rule.table = entries;
    rule.n_table = ARRAY_LEN(entries);
    rule.up.max_step = rule.down.max_step = 840;
    control_law_start(&state, 720);
    /* Half as fast as when it was profiled: 480 gives 15. */
    EXPECT(CONTROL_BELOW, 480, decide(&rule, &state, 0, 10));
    /* Twice as fast: 1080 gives 20, nothing is nearer. */
    EXPECT(CONTROL_ABOVE, 1080, decide(&rule, &state, 0, 40));
    control_law_start(&state, 1080);
    EXPECT(CONTROL_SATURATED, 1080, decide(&rule, &state, 0, 20));
    control_law_start(&state, 240);
    rule.max = 480;
    EXPECT(CONTROL_ABOVE, 480, decide(&rule, &state, 0, 240));
    /* Between two entries: 25 at 600, so this machine is as fast. */
    rule.max = 1080;
    control_law_start(&state, 600);
    EXPECT(CONTROL_ABOVE, 960, decide(&rule, &state, 0, 25));
    /* A measure of nothing says nothing of the others. */
    EXPECT(CONTROL_SETTLED, 600, decide(&rule, &state, 0, 0));
}

/* Its values are taken as they were measured, whatever step and direction say. */
static void test_table_of_odd_values(void) {
    static const struct control_entry entries[] = {{240, 9}, {500, 30}, {700, 16}};
    struct control_rule rule = base;
    struct control_state state;
    rule.kind = CONTROL_TABLE;
    rule.table = entries;
    rule.n_table = ARRAY_LEN(entries);
    rule.up.max_step = rule.down.max_step = 840;
    control_law_start(&state, 500);
    EXPECT(CONTROL_ABOVE, 700, decide(&rule, &state, 0, 30));
    control_law_start(&state, 240);
    EXPECT(CONTROL_BELOW, 700, decide(&rule, &state, 0, 9));
}

static void test_pi_without_a_bump(void) {
    struct control_rule rule = base;
    struct control_state state;
    rule.kind = CONTROL_PI;
    rule.step = 0;
    rule.kp = 10;
    rule.ki = 1;
    control_law_start(&state, 720);
    EXPECT(CONTROL_SETTLED, 720, decide(&rule, &state, 0, 5));
    EXPECT(CONTROL_BELOW, 620, decide(&rule, &state, 10, 5));
    /* Cut off by the largest step, and not remembered. */
    struct control_decision decision = decide(&rule, &state, 100, 5);
    EXPECT(CONTROL_BELOW, 480, decision);
    turn(&rule, &state, 100, &decision);
    EXPECT(CONTROL_BELOW, 440, decide(&rule, &state, 160, 13));
}

static void test_pi_does_not_wind_up(void) {
    struct control_rule rule = base;
    struct control_state state;
    rule.kind = CONTROL_PI;
    rule.kp = 0;
    rule.ki = 1;
    rule.up.dwell_ns = rule.down.dwell_ns = 0;
    control_law_start(&state, 240);
    for (int64_t i = 0; i < 1000; i++) {
        EXPECT(CONTROL_SATURATED, 240, decide(&rule, &state, i, 1));
    }
    /* 60 units of error seconds are half a step. */
    decide(&rule, &state, 1000, 30);
    EXPECT(CONTROL_SETTLED, 240, decide(&rule, &state, 1002, 30));
    EXPECT(CONTROL_ABOVE, 360, decide(&rule, &state, 1005, 30));
}

/* ---- a plant ---- */

struct plant {
    double gain;       /* frames per second at one line, of an idle machine */
    double dead_time;  /* seconds until a turn is seen */
    double lag;        /* time constant of what follows */
    double load;       /* 1: idle */
    double load_after; /* from half of the time on */
    double quantum;    /* the measure comes in such steps; 0: as it is */
};

struct outcome {
    size_t n_turns;
    size_t n_late_turns; /* in the last quarter */
    double measure;      /* mean over the last quarter */
    double shortest;     /* seconds between two turns */
};

enum { PLANT_SECONDS = 4 * 3600, INTERVAL = 10, MAX_DEAD_TIME = 200 };

static struct outcome simulate(const struct control_rule *rule, const struct plant *plant,
                               double position) {
    struct outcome outcome = {.shortest = INFINITY};
    struct control_state state;
    double past[MAX_DEAD_TIME + 1];
    double measure = plant->gain / position;
    int64_t last_turn = 0;
    size_t n_late = 0;
    for (size_t i = 0; i <= MAX_DEAD_TIME; i++) {
        past[i] = position;
    }
    control_law_start(&state, position);
    for (int64_t t = 0; t < PLANT_SECONDS; t++) {
        size_t dead = (size_t)plant->dead_time;
        double seen = past[(size_t)(t + MAX_DEAD_TIME + 1 - (int64_t)dead) % (MAX_DEAD_TIME + 1)];
        double load = t < PLANT_SECONDS / 2 ? plant->load : plant->load_after;
        measure += (plant->gain / load / seen - measure) / plant->lag;
        double read =
            plant->quantum > 0 ? round(measure / plant->quantum) * plant->quantum : measure;
        if (t >= PLANT_SECONDS * 3 / 4) {
            outcome.measure += measure;
            n_late++;
        }
        if (t % INTERVAL == 0) {
            struct control_decision decision = decide(rule, &state, t, read);
            if (control_reason_is_action(decision.reason)) {
                TEST_ASSERT_TRUE(decision.position >= rule->min && decision.position <= rule->max);
                turn(rule, &state, t, &decision);
                outcome.shortest = fmin(outcome.shortest,
                                        outcome.n_turns > 0 ? (double)(t - last_turn) : INFINITY);
                outcome.n_turns++;
                outcome.n_late_turns += t >= PLANT_SECONDS * 3 / 4;
                last_turn = t;
            }
        }
        past[(size_t)(t + 1) % (MAX_DEAD_TIME + 1)] = state.position;
    }
    outcome.measure /= (double)n_late;
    return outcome;
}

/* A machine that becomes twice as slow, seen with a minute of dead time. */
static const struct plant slow_plant = {
    .gain = 720 * 15, .dead_time = 60, .lag = 20, .load = 1, .load_after = 2};

static void expect_settled(const struct outcome *outcome, double low, double high) {
    TEST_ASSERT_EQUAL_size_t_MESSAGE(0, outcome->n_late_turns, "turns in the last quarter");
    TEST_ASSERT_TRUE_MESSAGE(outcome->measure >= low && outcome->measure <= high, "measure");
}

static void test_step_law_settles(void) {
    struct control_rule rule = base;
    rule.deadband = 2;
    rule.step = rule.up.max_step = rule.down.max_step = 60;
    rule.up.dwell_ns = rule.down.dwell_ns = SECONDS(120);
    struct outcome outcome = simulate(&rule, &slow_plant, 720);
    expect_settled(&outcome, 13, 17);
    TEST_ASSERT_TRUE(outcome.n_turns >= 4 && outcome.n_turns <= 8);
    TEST_ASSERT_TRUE(outcome.shortest >= 120);
}

static void test_pi_law_settles(void) {
    struct control_rule rule = base;
    rule.kind = CONTROL_PI;
    rule.step = 1;
    rule.kp = 4;
    rule.ki = 0.1;
    rule.up = rule.down = (struct control_side){.max_step = 120, .dwell_ns = SECONDS(120)};
    struct outcome outcome = simulate(&rule, &slow_plant, 720);
    expect_settled(&outcome, 14, 16);
    TEST_ASSERT_TRUE(outcome.shortest >= 120);
}

static void test_table_law_settles(void) {
    static const struct control_entry entries[] = {
        {240, 45}, {360, 30}, {480, 22.5}, {720, 15}, {1080, 10}};
    struct control_rule rule = base;
    rule.kind = CONTROL_TABLE;
    rule.table = entries;
    rule.n_table = ARRAY_LEN(entries);
    rule.up = rule.down = (struct control_side){.max_step = 840, .dwell_ns = SECONDS(180)};
    struct outcome outcome = simulate(&rule, &slow_plant, 720);
    expect_settled(&outcome, 14, 16);
    TEST_ASSERT_TRUE(outcome.n_turns <= 3);
}

/* No position is within the band: 480 gives 22.5 and 720 gives 15 where 19 is wanted. */
static void test_coarse_steps_end_their_oscillation(void) {
    struct control_rule rule = base;
    rule.low = rule.high = 19;
    rule.deadband = 0.5;
    rule.step = rule.up.max_step = rule.down.max_step = 240;
    rule.up.dwell_ns = rule.down.dwell_ns = SECONDS(120);
    struct plant plant = slow_plant;
    plant.load_after = 1;
    struct outcome outcome = simulate(&rule, &plant, 720);
    expect_settled(&outcome, 15, 23);
    TEST_ASSERT_TRUE(outcome.n_turns >= 3 && outcome.n_turns <= 6);
    /* The better one is kept. */
    TEST_ASSERT_DOUBLE_WITHIN(0.1, 22.5, outcome.measure);
    rule.max_reversals = 0;
    outcome = simulate(&rule, &plant, 720);
    TEST_ASSERT_TRUE(outcome.n_late_turns > 10);
}

/* Too fast for its plant: every turn is made before the last is seen. */
static void test_an_impatient_loop_calms_down(void) {
    struct control_rule rule = base;
    rule.up = rule.down = (struct control_side){.max_step = 120, .dwell_ns = SECONDS(10)};
    struct outcome outcome = simulate(&rule, &slow_plant, 720);
    TEST_ASSERT_TRUE(outcome.shortest >= 10);
    rule.max_reversals = 0;
    struct outcome without = simulate(&rule, &slow_plant, 720);
    TEST_ASSERT_TRUE(without.n_late_turns > 100);
    TEST_ASSERT_TRUE(outcome.n_late_turns < without.n_late_turns / 5);
}

static void test_the_widening_ends_when_the_plant_moves(void) {
    struct control_state state;
    control_law_start(&state, 720);
    state.widening = 3;
    TEST_ASSERT_TRUE(control_law_oscillates(&state));
    EXPECT(CONTROL_IN_BAND, 720, decide(&base, &state, 0, 11));
    struct control_decision decision = decide(&base, &state, 0, 5);
    turn(&base, &state, 0, &decision);
    TEST_ASSERT_TRUE(control_law_oscillates(&state));
    decision = decide(&base, &state, 30, 5);
    turn(&base, &state, 30, &decision);
    TEST_ASSERT_FALSE(control_law_oscillates(&state));
}

static void test_reasons_have_names(void) {
    for (int i = 0; i < N_CONTROL_REASONS; i++) {
        TEST_ASSERT_NOT_NULL(control_reason_name((enum control_reason)i));
    }
}
