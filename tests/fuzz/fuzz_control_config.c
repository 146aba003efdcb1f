/* Covers placement/control/config.c. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "placement/control/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The knob stays within its bounds for every measure. */
static void run(const struct control_rule *rule) {
    static const double measures[] = {0, 1e9, 1e9, -1e9, 20, 1, 5};
    struct control_state state;
    int64_t now_ns = CLOCK_NS_PER_SEC;
    control_law_start(&state, rule->min);
    for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
        struct control_input input = {.now_ns = now_ns, .measure = measures[i]};
        struct control_decision decision = control_law_decide(rule, &state, &input);
        assert(decision.position >= rule->min && decision.position <= rule->max);
        control_law_turned(rule, &state, &decision, decision.position, now_ns);
        now_ns += rule->up.dwell_ns + rule->down.dwell_ns + CLOCK_NS_PER_SEC;
    }
}

static void check(const struct control_loop_config *loop) {
    const struct control_rule *rule = &loop->rule;
    assert(loop->name != NULL && loop->query != NULL);
    assert(loop->knob.plugin != NULL && loop->knob.param != NULL);
    assert(loop->from_exporter == (loop->selector != NULL));
    assert(rule->low <= rule->high && rule->deadband >= 0);
    assert(rule->direction == 1 || rule->direction == -1);
    assert(rule->kind != CONTROL_TABLE || rule->n_table >= 2);
    for (size_t i = 0; i < loop->n_levels; i++) {
        assert(control_config_position(loop, &loop->levels[i]) == (double)i);
    }
    run(rule);
}

/* A file of `waap control`: any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct control_config config;
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = control_config_parse("f", (const char *)data, len, &config, &problems);
    assert((r == 0) == (problems.n_lines == 0));
    for (size_t i = 0; i < problems.n_lines; i++) {
        assert(strncmp(problems.lines[i], "f:", 2) == 0);
        assert(strchr(problems.lines[i], '\n') == NULL);
    }
    for (size_t i = 0; r == 0 && i < config.n_loops; i++) {
        check(&config.loops[i]);
    }
    control_config_finish(&config);
    return 0;
}
