#include "placement/place/measured.h"

#include <math.h>
#include <string.h>

#include "placement/place/index.h"

void place_measured_query_write(const char *expression, const char *model, struct buf *out) {
    static const char name[] = "$model";
    const char *at;
    while ((at = strstr(expression, name)) != NULL) {
        buf_add(out, expression, (size_t)(at - expression));
        for (const char *c = model; *c != '\0'; c++) {
            if (*c == '\n') {
                buf_add_str(out, "\\n");
                continue;
            }
            buf_add_str(out, *c == '"' || *c == '\\' ? "\\" : "");
            buf_add_char(out, *c);
        }
        expression = at + strlen(name);
    }
    buf_add_str(out, expression);
}

enum { SECONDS, SAMPLES, AGE, N_QUANTITIES };

static const char *const quantities[N_QUANTITIES] = {
    [SECONDS] = "seconds",
    [SAMPLES] = "samples",
    [AGE] = "age",
};

struct join {
    struct place_index quantities[N_QUANTITIES];
};

static void join_finish(struct join *join) {
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        place_index_finish(&join->quantities[i]);
    }
}
#define CLEANUP_JOIN CLEANUP(join_finish)

static struct place_measured measured_of(const struct join *join,
                                         const struct place_measured_limits *limits,
                                         const struct promql_series *device) {
    double values[N_QUANTITIES];
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        bool is_twice;
        values[i] = place_index_value(&join->quantities[i], device, &is_twice);
        if (!isfinite(values[i])) {
            return (struct place_measured){.samples = 0};
        }
    }
    if (values[SECONDS] <= 0 || values[SAMPLES] <= 0) {
        return (struct place_measured){.samples = 0};
    }
    return (struct place_measured){
        .seconds = values[SECONDS],
        .samples = values[SAMPLES],
        .age_seconds = values[AGE],
        .unused = values[AGE] > limits->max_age_seconds   ? "too old"
                  : values[SAMPLES] < limits->min_samples ? "too few"
                                                          : NULL,
    };
}

int place_measured_join(const struct place_samples *samples, const char *model,
                        const struct place_measured_limits *limits, struct place_nodes *nodes,
                        struct error *err) {
    struct join join CLEANUP_JOIN = {0};
    for (size_t i = 0; i < N_QUANTITIES; i++) {
        const struct label match[] = {{"model", model}, {"quantity", quantities[i]}};
        int r =
            place_index_fill(&join.quantities[i], &samples->measured, match, ARRAY_LEN(match), err);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        node->measured = measured_of(&join, limits, node->device);
    }
    return 0;
}

bool place_node_is_measured(const struct place_node *node) {
    return node->measured.samples > 0 && node->measured.unused == NULL;
}

bool place_node_has_error(const struct place_node *node) {
    return node->excluded == NULL && place_node_is_measured(node) &&
           isfinite(node->predicted_seconds);
}
