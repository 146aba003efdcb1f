#include "tests/fakes/collectors_fake.h"

#include <stdatomic.h>
#include <unistd.h>

/* Counts its samples, and the calls that came while another one was still under way. */

static const struct metric_desc samples = {
    .name = "sampled_samples_total",
    .help = "Calls between collections.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc overlaps = {
    .name = "sampled_overlaps_total",
    .help = "Calls that came while another was under way.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc *const metrics[] = {&samples, &overlaps, NULL};

/* Long enough that a second caller would be noticed. */
enum { WORK_USEC = 3000 };

struct sampled {
    atomic_flag busy;
    atomic_uint n_samples;
    atomic_uint n_overlaps;
};

static int sampled_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    struct sampled *sampled = calloc(1, sizeof(*sampled));
    if (sampled == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    atomic_flag_clear(&sampled->busy);
    *ret_state = sampled;
    return 0;
}

static void work(struct sampled *sampled) {
    if (atomic_flag_test_and_set(&sampled->busy)) {
        atomic_fetch_add(&sampled->n_overlaps, 1);
    }
    usleep(WORK_USEC);
    atomic_flag_clear(&sampled->busy);
}

static int sampled_sample(void *state) {
    struct sampled *sampled = state;
    work(sampled);
    atomic_fetch_add(&sampled->n_samples, 1);
    return 0;
}

static int sampled_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    struct sampled *sampled = state;
    work(sampled);
    snapshot_add(out, &samples, NULL, atomic_load(&sampled->n_samples));
    snapshot_add(out, &overlaps, NULL, atomic_load(&sampled->n_overlaps));
    return 0;
}

const struct collector collector_sampled = {
    .name = "sampled",
    .help = "something that changes between scrapes",
    .metrics = metrics,
    .open = sampled_open,
    .sample = sampled_sample,
    .collect = sampled_collect,
    .close = free,
};
