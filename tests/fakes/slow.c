#include "tests/fakes/collectors_fake.h"

#include <unistd.h>

/* A source that takes its time, and counts how often it is asked. */

static const struct metric_desc calls = {
    .name = "slow_calls_total",
    .help = "Collections.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc *const metrics[] = {&calls, NULL};

static const struct option options[] = {
    {
        .name = "collector.slow.delay",
        .type = OPTION_DURATION,
        .default_text = "300ms",
        .help = "How long a collection takes",
    },
    {.name = NULL},
};

struct slow {
    int64_t delay_ms;
    double n_calls;
};

static int slow_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct slow *slow = calloc(1, sizeof(*slow));
    if (slow == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    slow->delay_ms = settings_duration_ms(env->settings, "collector.slow.delay");
    *ret_state = slow;
    return 0;
}

static int slow_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    struct slow *slow = state;
    usleep((useconds_t)(slow->delay_ms * 1000));
    snapshot_add(out, &calls, NULL, ++slow->n_calls);
    return 0;
}

const struct collector collector_slow = {
    .name = "slow",
    .help = "a source that takes its time",
    .metrics = metrics,
    .options = options,
    .open = slow_open,
    .collect = slow_collect,
    .close = free,
};
