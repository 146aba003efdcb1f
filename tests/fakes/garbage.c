#include "tests/fakes/collectors_fake.h"

/* A collector that breaks the rules of the exposition formats wherever it can. */

static const struct metric_desc piles = {
    .name = "garbage_piles",
    .help = "The same series again and again.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc piles_again = {
    .name = "garbage_piles",
    .help = "The same family, described again with another type.",
    .type = METRIC_UNTYPED,
};
static const struct metric_desc nap = {
    .name = "garbage_nap_seconds",
    .help = "A histogram.",
    .type = METRIC_HISTOGRAM,
    .unit = "seconds",
};
static const struct metric_desc nap_count = {
    .name = "garbage_nap_seconds_count",
    .help = "A family that has the name of the histogram's samples.",
    .type = METRIC_GAUGE,
};
/* Collectors stand in the table by name: fail comes before this one, zoo after it. */
static const struct metric_desc attempts = {
    .name = "fail_attempts_total",
    .help = "A counter of the collector before, as an untyped one.",
    .type = METRIC_UNTYPED,
};
static const struct metric_desc frames = {
    .name = "zoo_frames",
    .help = "A family of the collector behind.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc *const metrics[] = {&piles, &nap, NULL};

struct garbage {
    struct labels *big;
    struct labels *big_again;
    struct labels *nothing;
    struct labels *infinity;
};

static void garbage_close(void *state) {
    struct garbage *garbage = state;
    labels_destroy(garbage->big);
    labels_destroy(garbage->big_again);
    labels_destroy(garbage->nothing);
    labels_destroy(garbage->infinity);
    free(garbage);
}

static int garbage_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    struct garbage *garbage = calloc(1, sizeof(*garbage));
    if (garbage == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    garbage->big = labels_render("size", "big");
    garbage->big_again = labels_render("size", "big");
    garbage->nothing = labels_render("size", "");
    garbage->infinity = labels_render("le", "+Inf");
    *ret_state = garbage;
    return 0;
}

/* Six samples too many in itself: three equal ones, one of another type, one whose family has the
 * name of a sample, and one that the collector before has. */
static int garbage_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    const struct garbage *garbage = state;
    snapshot_add(out, &piles, garbage->big, 1);
    snapshot_add(out, &piles, garbage->big, 2);
    snapshot_add(out, &piles, garbage->big_again, 3);
    snapshot_add(out, &piles, NULL, 4);
    snapshot_add(out, &piles, garbage->nothing, 5);
    snapshot_add(out, &piles_again, NULL, 6);
    snapshot_add_suffixed(out, &nap, "_bucket", garbage->infinity, 7);
    snapshot_add_suffixed(out, &nap, "_sum", NULL, 7);
    snapshot_add_suffixed(out, &nap, "_count", NULL, 7);
    snapshot_add(out, &nap_count, NULL, 8);
    snapshot_add(out, &attempts, NULL, 9);
    snapshot_add(out, &frames, NULL, 10);
    return 0;
}

const struct collector collector_garbage = {
    .name = "garbage",
    .help = "duplicates and clashes",
    .metrics = metrics,
    .open = garbage_open,
    .collect = garbage_collect,
    .close = garbage_close,
};
