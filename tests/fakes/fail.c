#include "tests/fakes/collectors_fake.h"

/* A source that cannot be read, always or every so often. */

static const struct metric_desc attempts = {
    .name = "fail_attempts_total",
    .help = "Collections tried.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc *const metrics[] = {&attempts, NULL};

static const struct option options[] = {
    {
        .name = "collector.fail.every",
        .type = OPTION_INT,
        .default_text = "1",
        .min = 1,
        .max = 1000,
        .help = "Of so many collections the last one fails",
    },
    {.name = NULL},
};

struct fail {
    int64_t every;
    int64_t n_attempts;
};

static int fail_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct fail *fail = calloc(1, sizeof(*fail));
    if (fail == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    fail->every = settings_int(env->settings, "collector.fail.every");
    *ret_state = fail;
    return 0;
}

static int fail_collect(void *state, struct snapshot *out, struct error *err) {
    struct fail *fail = state;
    fail->n_attempts++;
    snapshot_add(out, &attempts, NULL, (double)fail->n_attempts);
    if (fail->n_attempts % fail->every == 0) {
        errno = EIO;
        return error_set(err, -EIO, "read the \"source\": %m");
    }
    return 0;
}

const struct collector collector_fail = {
    .name = "fail",
    .help = "a source that cannot be read",
    .metrics = metrics,
    .options = options,
    .open = fail_open,
    .collect = fail_collect,
    .close = free,
};
