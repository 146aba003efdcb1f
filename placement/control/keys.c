#include <math.h>
#include <string.h>

#include "exporter/core/number.h"
#include "placement/client/endpoint_keys.h"
#include "placement/control/draft.h"

enum { SECOND_MS = 1000, DAY_MS = 24 * 3600 * SECOND_MS };

/* ---- values ---- */

static void read_double(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    double value;
    const char *text = yaml_key_scalar(reader, node);
    if (text != NULL && (number_parse(text, strlen(text), &value) < 0 || !isfinite(value))) {
        yaml_key_complain(reader, node, "expected a number, got \"%s\"", text);
    } else if (text != NULL) {
        *(double *)to = value;
    }
}

static void read_positive(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    double value = 1;
    read_double(reader, key, node, &value);
    if (value <= 0) {
        yaml_key_complain(reader, node, "expected a number above 0, got \"%s\"", node->text);
    } else {
        *(double *)to = value;
    }
}

/* 0.5, or 5% of the target. */
static void read_deadband(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    (void)key;
    struct control_draft *draft = to;
    const char *text = yaml_key_scalar(reader, node);
    if (text == NULL) {
        return;
    }
    size_t len = strlen(text);
    bool share = len > 0 && text[len - 1] == '%';
    double value;
    if (number_parse(text, len - share, &value) < 0 || !isfinite(value) || value < 0) {
        yaml_key_complain(reader, node, "expected a number such as 0.5 or 5%%, got \"%s\"", text);
        return;
    }
    draft->deadband = share ? value / 100 : value;
    draft->deadband_is_share = share;
}

static void read_band(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    double *band = to;
    if (node->kind != YAML_KIND_SEQUENCE || node->n_items != 2) {
        yaml_key_complain(reader, node, "expected a list of two numbers");
        return;
    }
    read_double(reader, key, &node->items[0], &band[0]);
    read_double(reader, key, &node->items[1], &band[1]);
    if (band[0] > band[1]) {
        yaml_key_complain(reader, node, "expected the lower number first");
    }
}

struct knob_value control_draft_value(struct yaml_reader *reader, const struct yaml_node *node) {
    double number;
    const char *text = node->text;
    if (node->plain && number_parse(text, strlen(text), &number) == 0) {
        return (struct knob_value){.form = KNOB_NUMBER, .number = number};
    }
    if (node->plain && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        return (struct knob_value){.form = KNOB_TRUTH, .number = text[0] == 't'};
    }
    return (struct knob_value){.form = KNOB_TEXT,
                               .text = arena_copy(reader->arena, text, strlen(text) + 1)};
}

static void read_level(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                       void *to) {
    struct control_draft *draft = to;
    (void)index;
    if (yaml_key_scalar(reader, node) == NULL) {
        return;
    }
    struct knob_value value = control_draft_value(reader, node);
    if (control_config_level(&draft->loop, &value) >= 0) {
        yaml_key_complain(reader, node, "%s stands there twice", node->text);
        return;
    }
    draft->loop.levels[draft->loop.n_levels++] = value;
}

static void read_levels(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    struct control_draft *draft = to;
    draft->loop.levels =
        arena_take(reader->arena, (node->n_items + 1) * sizeof(*draft->loop.levels));
    if (draft->loop.levels != NULL) {
        yaml_key_each(reader, node, read_level, draft);
    }
    if (draft->loop.n_levels < 2) {
        yaml_key_complain(reader, node, "expected a list of at least two values, in order");
    }
}

static void read_node(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    (void)key;
    if (yaml_key_scalar(reader, node) != NULL) {
        *(const struct yaml_node **)to = node;
    }
}

/* ---- keys ---- */

#define TEXT(key, owner, field)                                                                    \
    {                                                                                              \
        key, yaml_key_text, offsetof(owner, field), {                                              \
            0                                                                                      \
        }                                                                                          \
    }
#define NUMBER(key, owner, field, low, high)                                                       \
    {                                                                                              \
        key, yaml_key_number, offsetof(owner, field), {                                            \
            .type = OPTION_INT, .min = (low), .max = (high)                                        \
        }                                                                                          \
    }
#define DURATION(key, owner, field)                                                                \
    {                                                                                              \
        key, yaml_key_number, offsetof(owner, field), {                                            \
            .type = OPTION_DURATION, .max = DAY_MS                                                 \
        }                                                                                          \
    }
static const struct yaml_key knob_keys[] = {
    TEXT("container", struct control_knob_name, container),
    TEXT("job", struct control_knob_name, job),
    TEXT("namespace", struct control_knob_name, namespace),
    TEXT("param", struct control_knob_name, param),
    TEXT("plugin", struct control_knob_name, plugin),
    TEXT("pod", struct control_knob_name, pod),
    {0},
};

static const struct yaml_key oscillation_keys[] = {
    NUMBER("reversals", struct control_draft, reversals, 0, CONTROL_MAX_REVERSALS),
    DURATION("window", struct control_draft, window_ms),
    {0},
};

static const struct yaml_key pi_keys[] = {
    {"ki", read_double, offsetof(struct control_draft, ki), {0}},
    {"kp", read_double, offsetof(struct control_draft, kp), {0}},
    {0},
};

static const struct yaml_key side_keys[] = {
    DURATION("dwell", struct control_draft_side, dwell_ms),
    {"max_step", read_positive, offsetof(struct control_draft_side, max_step), {0}},
    {0},
};

static const struct yaml_key table_keys[] = {
    {"file", endpoint_keys_path, offsetof(struct control_draft, table_file), {0}},
    TEXT("measure", struct control_draft, table_measure),
    {0},
};

static const struct {
    const char *name;
    const struct yaml_key *keys;
} groups[] = {
    {"down", side_keys}, {"knob", knob_keys},   {"oscillation", oscillation_keys},
    {"pi", pi_keys},     {"table", table_keys}, {"up", side_keys},
};

static void read_group(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        if (strcmp(groups[i].name, key->name) == 0) {
            yaml_key_read_all(reader, groups[i].keys, node, to);
        }
    }
}

static const struct yaml_key loop_keys[] = {
    DURATION("ack_timeout", struct control_draft, loop.ack_ms),
    TEXT("age_query", struct control_draft, loop.age_query),
    {"band", read_band, offsetof(struct control_draft, band), {0}},
    {"deadband", read_deadband, 0, {0}},
    TEXT("direction", struct control_draft, direction),
    {"down", read_group, offsetof(struct control_draft, down), {0}},
    DURATION("dwell", struct control_draft, dwell_ms),
    NUMBER("failures", struct control_draft, failures, 1, 1000000),
    {"interval",
     yaml_key_number,
     offsetof(struct control_draft, loop.interval_ms),
     {.type = OPTION_DURATION, .min = 100, .max = DAY_MS}},
    {"knob", read_group, offsetof(struct control_draft, loop.knob), {0}},
    TEXT("law", struct control_draft, law),
    {"levels", read_levels, 0, {0}},
    {"max", read_double, offsetof(struct control_draft, max), {0}},
    {"max_step", read_positive, offsetof(struct control_draft, max_step), {0}},
    {"min", read_double, offsetof(struct control_draft, min), {0}},
    TEXT("name", struct control_draft, loop.name),
    {"oscillation", read_group, 0, {0}},
    {"pi", read_group, 0, {0}},
    TEXT("query", struct control_draft, loop.query),
    {"safe", read_node, offsetof(struct control_draft, safe), {0}},
    {"setpoint", read_double, offsetof(struct control_draft, setpoint), {0}},
    TEXT("source", struct control_draft, source),
    DURATION("stale_after", struct control_draft, loop.stale_ms),
    {"step", read_positive, offsetof(struct control_draft, step), {0}},
    {"table", read_group, 0, {0}},
    {"up", read_group, offsetof(struct control_draft, up), {0}},
    {0},
};

static const struct control_draft defaults = {
    .loop = {.interval_ms = 10 * SECOND_MS, .stale_ms = 60 * SECOND_MS, .ack_ms = 5 * SECOND_MS},
    .source = "prometheus",
    .law = "step",
    .setpoint = NAN,
    .band = {NAN, NAN},
    .min = NAN,
    .max = NAN,
    .step = NAN,
    .deadband = 0.05,
    .deadband_is_share = true,
    .max_step = NAN,
    .dwell_ms = 60 * SECOND_MS,
    .up = {.max_step = NAN, .dwell_ms = -1},
    .down = {.max_step = NAN, .dwell_ms = -1},
    .failures = 5,
    .reversals = 4,
    .window_ms = -1,
};

void control_draft_read(struct yaml_reader *reader, const struct yaml_node *node,
                        struct control_draft *ret_draft) {
    *ret_draft = defaults;
    yaml_key_read_all(reader, loop_keys, node, ret_draft);
}
