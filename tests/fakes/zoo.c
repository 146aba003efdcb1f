#include "tests/fakes/collectors_fake.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "exporter/core/number.h"

/* One family of every type, with the values and labels that go wrong most easily. */

static const struct metric_desc frames = {
    .name = "zoo_frames",
    .help = "A gauge named like the counter beside it.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc frames_total = {
    .name = "zoo_frames_total",
    .help = "A counter whose short name is taken.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc keeper = {
    .name = "zoo_keeper_info",
    .help = "Who keeps the \"zoo\".\nSecond line, with a back\\slash.",
    .type = METRIC_INFO,
};
static const struct metric_desc meal = {
    .name = "zoo_meal_seconds",
    .help = "A summary.",
    .type = METRIC_SUMMARY,
    .unit = "seconds",
};
static const struct metric_desc nothing = {
    .name = "zoo_nothing_bytes",
    .help = "A family without samples.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};
static const struct metric_desc odd = {
    .name = "zoo_odd",
    .help = "Nobody knows what this is, \xff.",
    .type = METRIC_UNTYPED,
};
static const struct metric_desc sign = {
    .name = "zoo_sign",
    .help = "Awkward label values.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc steps = {
    .name = "zoo_steps_total",
    .help = "A counter.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc wait = {
    .name = "zoo_wait_seconds",
    .help = "A histogram.",
    .type = METRIC_HISTOGRAM,
    .unit = "seconds",
};
static const struct metric_desc weight = {
    .name = "zoo_weight_grams",
    .help = "Awkward values.",
    .type = METRIC_GAUGE,
    .unit = "grams",
};
static const struct metric_desc *const metrics[] = {
    &frames, &frames_total, &keeper, &meal, &nothing, &odd, &sign, &steps, &wait, &weight, NULL,
};

struct row {
    const struct metric_desc *desc;
    double value;
    const char *label;  /* NULL: none */
    const char *text;   /* its value */
    const char *suffix; /* NULL: none */
    const char *edge;   /* "le" or "quantile", or NULL: none */
    double bound;       /* its value */
};

static const struct row rows[] = {
    {&frames, 29.97},
    {&frames_total, 123456789},
    {&keeper, 1, "name", "Ada \"the\" L\\ion\n"},
    {&meal, 0.5, "who", "bear", "", "quantile", 0},
    {&meal, 1.25, "who", "bear", "", "quantile", 0.5},
    {&meal, 7e-9, "who", "bear", "", "quantile", 0.99},
    {&meal, 8, "who", "bear", "", "quantile", 1},
    {&meal, 1234.5678, "who", "bear", "_sum"},
    {&meal, 99, "who", "bear", "_count"},
    {&meal, NAN, "who", "bird", "", "quantile", 0.5},
    {&meal, 0, "who", "bird", "_sum"},
    {&meal, 0, "who", "bird", "_count"},
    {&odd, -1e-7},
    {&sign, 1, "text", "quote \" backslash \\ newline \n end"},
    {&sign, 2, "text", "not UTF-8: \xff \xc3( \xed\xa0\x80"},
    {&sign, 3, "text", "\xf0\x9f\xa6\x81 \xe2\x82\xac \xc3\xbc"},
    {&sign, 4, "text", ""},
    {&sign, 5, "text", " "},
    {&sign, 6, "text", "\\"},
    {&sign, 7, "text", "\\n"},
    {&sign, 8, "text", "}, {a=\"b\"} 7 # EOF"},
    {&sign, 9, "text", "tab \t return \r bell \a"},
    {&sign, 10, "text", "100% %s %n"},
    {&steps, 0, "who", "snail"},
    {&steps, 9007199254740992.0, "who", "ant"},
    {&steps, 1e22, "who", "centipede"},
    {&steps, 0.30000000000000004, "who", "sloth"},
    {&steps, INFINITY, "who", "rotifer"},
    {&wait, 1, "gate", "north", "_bucket", "le", 0.005},
    {&wait, 2, "gate", "north", "_bucket", "le", 1},
    {&wait, 2, "gate", "north", "_bucket", "le", 2.5},
    {&wait, 3, "gate", "north", "_bucket", "le", 1e6},
    {&wait, 4, "gate", "north", "_bucket", "le", 1e22},
    {&wait, 5, "gate", "north", "_bucket", "le", INFINITY},
    {&wait, 1e23, "gate", "north", "_sum"},
    {&wait, 5, "gate", "north", "_count"},
    {&wait, 0, "gate", "south", "_bucket", "le", INFINITY},
    {&wait, 0, "gate", "south", "_sum"},
    {&wait, 0, "gate", "south", "_count"},
    {&weight, 0, "who", "nothing"},
    {&weight, -0.0, "who", "less"},
    {&weight, 0.1, "who", "tenth"},
    {&weight, 1.0 / 3, "who", "third"},
    {&weight, 1e21, "who", "1e21"},
    {&weight, 1e22, "who", "1e22"},
    {&weight, 1e23, "who", "1e23"},
    {&weight, 123456789.125, "who", "eighth"},
    {&weight, 5e-324, "who", "least"},
    {&weight, DBL_MIN, "who", "least normal"},
    {&weight, DBL_MAX, "who", "most"},
    {&weight, -DBL_MAX, "who", "most negative"},
    {&weight, INFINITY, "who", "infinite"},
    {&weight, -INFINITY, "who", "infinitely negative"},
    {&weight, NAN, "who", "not a number"},
    {&weight, 9007199254740991.0, "who", "2^53-1"},
    {&weight, 9007199254740992.0, "who", "2^53"},
    {&weight, 9007199254740994.0, "who", "2^53+2"},
    {&weight, -9007199254740993.0, "who", "-2^53"},
    {&weight, 4294967296.5, "who", "2^32+0.5"},
    {&weight, 1e-5, "who", "1e-5"},
    {&weight, 2.2250738585072011e-308, "who", "hardest to read"},
    {&weight, 9.5367431640625e-07, "who", "2^-20"},
};

static void zoo_close(void *state) {
    struct labels **labels = state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        labels_destroy(labels[i]);
    }
    free(labels);
}

static struct labels *render(const struct row *row) {
    struct labels *base = row->label != NULL ? labels_render(row->label, row->text) : NULL;
    if (row->edge == NULL) {
        return base;
    }
    char bound[NUMBER_MAX_LEN + 1];
    bound[number_format_canonical(row->bound, bound)] = '\0';
    struct labels *labels = labels_with(base, row->edge, bound);
    labels_destroy(base);
    return labels;
}

static int zoo_open(const struct collector_env *env, void **ret_state, struct error *err) {
    (void)env;
    struct labels **labels = calloc(ARRAY_LEN(rows), sizeof(*labels));
    if (labels == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        labels[i] = render(&rows[i]);
    }
    *ret_state = labels;
    return 0;
}

static int zoo_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    struct labels **labels = state;
    snapshot_append(out, &nothing, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *suffix = rows[i].suffix != NULL ? rows[i].suffix : "";
        snapshot_add_suffixed(out, rows[i].desc, suffix, labels[i], rows[i].value);
    }
    return 0;
}

const struct collector collector_zoo = {
    .name = "zoo",
    .help = "every type, with awkward values",
    .metrics = metrics,
    .on_by_default = true,
    .open = zoo_open,
    .collect = zoo_collect,
    .close = zoo_close,
};
