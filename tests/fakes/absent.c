#include "tests/fakes/collectors_fake.h"

/* A source that appears and disappears with a file. */

static const struct metric_desc present = {
    .name = "absent_present",
    .help = "1 while the file exists.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc *const metrics[] = {&present, NULL};

static const struct option options[] = {
    {
        .name = "collector.absent.file",
        .type = OPTION_STRING,
        .help = "The source is there while this file exists",
    },
    {.name = NULL},
};

static int check(const char *file, struct error *err) {
    if (access(file, F_OK) < 0) {
        return error_set(err, -ENODEV, "%s: %m", file);
    }
    return 0;
}

static int absent_open(const struct collector_env *env, void **ret_state, struct error *err) {
    const char *file = settings_string(env->settings, "collector.absent.file");
    *ret_state = (void *)file;
    return check(file, err);
}

static int absent_collect(void *state, struct snapshot *out, struct error *err) {
    int r = check(state, err);
    if (r == 0) {
        snapshot_add(out, &present, NULL, 1);
    }
    return r;
}

static void absent_close(void *state) {
    (void)state;
}

const struct collector collector_absent = {
    .name = "absent",
    .help = "a source that comes with a file",
    .metrics = metrics,
    .options = options,
    .open = absent_open,
    .collect = absent_collect,
    .close = absent_close,
};
