#include "exporter/channel/push_collector.h"

#include <errno.h>

#include "exporter/channel/knobs.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store.h"

static const struct metric_desc *const metrics[] = {
    &knobs_applied_metric,
    &knobs_applied_info_metric,
    &knobs_requested_metric,
    &knobs_requested_info_metric,
    &push_failure_time,
    &push_time,
    NULL,
};

static int push_open(const struct collector_env *env, void **ret_state, struct error *err) {
    if (env->push_store == NULL) {
        return error_set(err, -ENODEV, "nothing can be pushed to this program");
    }
    *ret_state = push_reader_create(env->push_store);
    return 0;
}

static int push_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    push_reader_collect(state, out);
    return 0;
}

static void push_close(void *state) {
    push_reader_destroy(state);
}

const struct collector push_collector = {
    .name = "push",
    .help = "Metrics that plugins and other clients pushed",
    .metrics = metrics,
    .on_by_default = true,
    .open = push_open,
    .collect = push_collect,
    .close = push_close,
};
