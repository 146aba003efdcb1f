#include "placement/control/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/number.h"
#include "exporter/settings/yaml.h"

/* A loop while it is read: what depends on several keys is computed at the end. */
struct draft {
    struct control_loop_config loop;
    int64_t source, law, direction; /* indices of the choices below */
    double setpoint, band[2];       /* NAN: not given */
    double min, max, step;
    double deadband;
    bool deadband_is_share; /* of the target */
    double max_step;
    int64_t dwell_ms;
    struct side_draft {
        double max_step;
        int64_t dwell_ms;
    } up, down; /* of the knob; NAN and -1: as above */
    double kp, ki;
    int64_t failures, reversals, window_ms;
    const struct yaml_node *safe;
    const char *table_file, *table_measure;
};

enum {
    MAX_CONFIG_BYTES = 1 << 20,
    MAX_TABLE_BYTES = 16 << 20,
    MAX_LOOPS = 100,
    MAX_MESSAGES = 100,
    NS_PER_MS = 1000000,
    SECOND_MS = 1000,
    DAY_MS = 24 * 3600 * SECOND_MS,
};

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
    struct draft *draft = to;
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

/* A scalar as JSON has it: a number or truth without quotes, else a text. */
static struct knob_value value_of(struct yaml_reader *reader, const struct yaml_node *node) {
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

/* -1: it is none of the levels. */
static int find_level(const struct control_loop_config *loop, const struct knob_value *value) {
    for (size_t i = 0; i < loop->n_levels; i++) {
        if (knob_value_equal(&loop->levels[i], value)) {
            return (int)i;
        }
    }
    return -1;
}

static void read_level(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                       void *to) {
    struct draft *draft = to;
    (void)index;
    if (yaml_key_scalar(reader, node) == NULL) {
        return;
    }
    struct knob_value value = value_of(reader, node);
    if (find_level(&draft->loop, &value) >= 0) {
        yaml_key_complain(reader, node, "%s: duplicate level", node->text);
        return;
    }
    draft->loop.levels[draft->loop.n_levels++] = value;
}

static void read_levels(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    struct draft *draft = to;
    draft->loop.levels =
        arena_take(reader->arena, (node->n_items + 1) * sizeof(*draft->loop.levels));
    yaml_key_each(reader, node, read_level, draft);
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

static const char *const sources[] = {"prometheus", "exporter", NULL};
static const char *const laws[] = {
    [CONTROL_STEP] = "step", [CONTROL_PI] = "pi", [CONTROL_TABLE] = "table", NULL};
static const char *const directions[] = {"up", "down", NULL};

#define TEXT(key, field) YAML_KEY_TEXT(key, struct draft, field)
#define CHOICE(key, field, words)                                                                  \
    {                                                                                              \
        key, yaml_key_number, offsetof(struct draft, field), {                                     \
            .type = OPTION_CHOICE, .choices = (words)                                              \
        }                                                                                          \
    }

static const struct yaml_key knob_keys[] = {
    YAML_KEY_TEXT("container", struct control_knob_name, container),
    YAML_KEY_TEXT("job", struct control_knob_name, job),
    YAML_KEY_TEXT("namespace", struct control_knob_name, namespace),
    YAML_KEY_TEXT("param", struct control_knob_name, param),
    YAML_KEY_TEXT("plugin", struct control_knob_name, plugin),
    YAML_KEY_TEXT("pod", struct control_knob_name, pod),
    {0},
};

static const struct yaml_key oscillation_keys[] = {
    {"reversals",
     yaml_key_number,
     offsetof(struct draft, reversals),
     {.type = OPTION_INT, .max = CONTROL_MAX_REVERSALS}},
    {"window", yaml_key_number, offsetof(struct draft, window_ms), YAML_KEY_DURATION(0, DAY_MS)},
    {0},
};

static const struct yaml_key pi_keys[] = {
    {"ki", read_double, offsetof(struct draft, ki), {0}},
    {"kp", read_double, offsetof(struct draft, kp), {0}},
    {0},
};

static const struct yaml_key side_keys[] = {
    {"dwell", yaml_key_number, offsetof(struct side_draft, dwell_ms), YAML_KEY_DURATION(0, DAY_MS)},
    {"max_step", read_positive, offsetof(struct side_draft, max_step), {0}},
    {0},
};

static const struct yaml_key table_keys[] = {
    {"file", web_endpoint_read_path, offsetof(struct draft, table_file), {0}},
    TEXT("measure", table_measure),
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
    {"ack_timeout", yaml_key_number, offsetof(struct draft, loop.ack_ms),
     YAML_KEY_DURATION(0, DAY_MS)},
    TEXT("age_query", loop.age_query),
    {"band", read_band, offsetof(struct draft, band), {0}},
    {"deadband", read_deadband, 0, {0}},
    CHOICE("direction", direction, directions),
    {"down", read_group, offsetof(struct draft, down), {0}},
    {"dwell", yaml_key_number, offsetof(struct draft, dwell_ms), YAML_KEY_DURATION(0, DAY_MS)},
    {"failures",
     yaml_key_number,
     offsetof(struct draft, failures),
     {.type = OPTION_INT, .min = 1, .max = 1000000}},
    {"interval", yaml_key_number, offsetof(struct draft, loop.interval_ms),
     YAML_KEY_DURATION(100, DAY_MS)},
    {"knob", read_group, offsetof(struct draft, loop.knob), {0}},
    CHOICE("law", law, laws),
    {"levels", read_levels, 0, {0}},
    {"max", read_double, offsetof(struct draft, max), {0}},
    {"max_step", read_positive, offsetof(struct draft, max_step), {0}},
    {"min", read_double, offsetof(struct draft, min), {0}},
    TEXT("name", loop.name),
    {"oscillation", read_group, 0, {0}},
    {"pi", read_group, 0, {0}},
    TEXT("query", loop.query),
    {"safe", read_node, offsetof(struct draft, safe), {0}},
    {"setpoint", read_double, offsetof(struct draft, setpoint), {0}},
    CHOICE("source", source, sources),
    {"stale_after", yaml_key_number, offsetof(struct draft, loop.stale_ms),
     YAML_KEY_DURATION(0, DAY_MS)},
    {"step", read_positive, offsetof(struct draft, step), {0}},
    {"table", read_group, 0, {0}},
    {"up", read_group, offsetof(struct draft, up), {0}},
    {0},
};

static const struct draft defaults = {
    .loop = {.interval_ms = 10 * SECOND_MS, .stale_ms = 60 * SECOND_MS, .ack_ms = 5 * SECOND_MS},
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

/* ---- what depends on several keys ---- */

struct place {
    struct yaml_reader *reader;
    const struct yaml_node *node; /* of the loop */
};

#define COMPLAIN(place, ...) yaml_key_complain((place)->reader, (place)->node, __VA_ARGS__)

/* The node of a key, for errors about its value; the loop's if the key is missing. */
static const struct yaml_node *at_key(const struct place *place, const char *key) {
    const struct yaml_node *node = yaml_node_get(place->node, key);
    return node != NULL ? node : place->node;
}

/* Complains about the value of a key. */
#define COMPLAIN_AT(place, key, ...)                                                               \
    yaml_key_complain((place)->reader, at_key(place, key), key ": " __VA_ARGS__)

static void finish_source(const struct place *place, struct draft *draft) {
    struct error err;
    draft->loop.from_exporter = draft->source == 1;
    if (draft->loop.query == NULL) {
        COMPLAIN(place, "expected a query");
        return;
    }
    struct selector *selector CLEANUP_SELECTOR = NULL;
    bool simple = selector_create(draft->loop.query, &selector, &err) == 0;
    if (draft->loop.from_exporter && !simple) {
        COMPLAIN_AT(place, "query", "expected a selector such as fps{plugin=\"a\"}: %s", err.text);
    }
    if (draft->loop.from_exporter && draft->loop.age_query != NULL) {
        COMPLAIN_AT(place, "age_query", "an exporter's page is always current");
    }
    /* Prometheus knows the age of a plain series, but not of a computed value. */
    if (!draft->loop.from_exporter && draft->loop.age_query == NULL && simple) {
        struct buf query CLEANUP_BUF = {0};
        buf_printf(&query, "time() - timestamp(%s)", draft->loop.query);
        draft->loop.age_query = arena_copy(place->reader->arena, buf_str(&query), query.len + 1);
    }
    if (draft->loop.from_exporter) {
        draft->loop.selector = TAKE(selector);
    }
}

static void finish_target(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    bool has_setpoint = !isnan(draft->setpoint);
    bool has_band = !isnan(draft->band[0]) && !isnan(draft->band[1]);
    if (has_setpoint == has_band) {
        COMPLAIN(place, "expected either setpoint or band");
        return;
    }
    rule->low = has_band ? draft->band[0] : draft->setpoint;
    rule->high = has_band ? draft->band[1] : draft->setpoint;
    double size = fmax(fabs(rule->low), fabs(rule->high));
    rule->deadband = draft->deadband_is_share ? draft->deadband * size : draft->deadband;
}

static void finish_knob(const struct place *place, struct draft *draft) {
    const struct control_knob_name *knob = &draft->loop.knob;
    if (knob->plugin == NULL || knob->param == NULL) {
        COMPLAIN_AT(place, "knob", "expected a plugin and a param");
    }
    if (knob->param != NULL && strchr(knob->param, '/') != NULL) {
        COMPLAIN_AT(place, "knob", "a param has no / in its name");
    }
}

static void finish_bounds(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    bool numbers = !isnan(draft->min) || !isnan(draft->max) || !isnan(draft->step);
    if (draft->loop.n_levels > 0) {
        if (numbers) {
            COMPLAIN(place, "expected either levels, or min, max and step");
        }
        rule->max = (double)draft->loop.n_levels - 1;
        rule->step = 1;
        return;
    }
    if (isnan(draft->min) || isnan(draft->max) || draft->min >= draft->max) {
        COMPLAIN(place, "expected min and, above it, max (or levels): the bounds of the knob");
        return;
    }
    rule->min = draft->min;
    rule->max = draft->max;
    rule->step = isnan(draft->step) ? 0 : draft->step;
    if (rule->step > rule->max - rule->min) {
        COMPLAIN_AT(place, "step", "larger than from min to max");
    }
}

static struct control_side finish_side(const struct place *place, const struct draft *draft,
                                       const struct side_draft *side, const char *name) {
    const struct control_rule *rule = &draft->loop.rule;
    double range = rule->max - rule->min;
    double usual = rule->kind == CONTROL_TABLE ? range : rule->step > 0 ? rule->step : range / 10;
    double max_step = !isnan(side->max_step)    ? side->max_step
                      : !isnan(draft->max_step) ? draft->max_step
                                                : usual;
    int64_t dwell_ms = side->dwell_ms >= 0 ? side->dwell_ms : draft->dwell_ms;
    if (max_step < rule->step) {
        COMPLAIN(place, "%s: max_step is smaller than step: the knob could not move", name);
    }
    return (struct control_side){.max_step = max_step, .dwell_ns = dwell_ms * NS_PER_MS};
}

static void finish_safe(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    rule->max_failures = draft->safe != NULL ? (unsigned)draft->failures : 0;
    if (draft->safe == NULL) {
        return;
    }
    struct knob_value value = value_of(place->reader, draft->safe);
    rule->safe = control_config_position(&draft->loop, &value);
    if (!(rule->safe >= rule->min && rule->safe <= rule->max)) {
        yaml_key_complain(place->reader, draft->safe, "safe: expected %s, got \"%s\"",
                          draft->loop.n_levels > 0 ? "one of the levels"
                                                   : "a number between min and max",
                          draft->safe->text);
    }
}

static void read_table(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    int r = file_read_stored(draft->table_file, MAX_TABLE_BYTES, &text, &err);
    if (r == 0) {
        buf_add_char(&text, ' '); /* so that an empty file has data */
        r = control_table_parse(text.data, text.len, &draft->loop, draft->table_measure,
                                place->reader->arena, &rule->table, &rule->n_table, &err);
        if (r < 0) {
            error_set(&err, r, "%s: %s", draft->table_file, err.text);
        }
    }
    if (r < 0) {
        COMPLAIN_AT(place, "table", "%s", err.text);
    }
}

static void finish_law(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    rule->kind = (enum control_kind)draft->law;
    rule->kp = draft->kp;
    rule->ki = draft->ki;
    if (rule->kind == CONTROL_PI && (draft->kp < 0 || draft->ki <= 0)) {
        COMPLAIN(place, "expected pi: {kp, ki} of the law, ki above 0 and kp not below");
    }
    bool has_table = draft->table_file != NULL && draft->table_measure != NULL;
    if (rule->kind == CONTROL_TABLE && !has_table) {
        COMPLAIN(place, "expected table: {file, measure} of the law");
    } else if (rule->kind == CONTROL_TABLE && draft->loop.knob.param != NULL) {
        read_table(place, draft);
    }
    bool is_up = draft->direction == 0;
    if (yaml_node_get(place->node, "direction") == NULL) {
        is_up =
            rule->n_table > 0 && rule->table[rule->n_table - 1].measure > rule->table[0].measure;
        if (rule->n_table == 0) {
            COMPLAIN(place, "expected a direction: whether the measure goes up or down as the knob "
                            "goes up");
        }
    }
    rule->direction = is_up ? 1 : -1;
}

static void finish_times(const struct place *place, struct draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    rule->up = finish_side(place, draft, &draft->up, "up");
    rule->down = finish_side(place, draft, &draft->down, "down");
    rule->max_reversals = (unsigned)draft->reversals;
    int64_t longest_ns =
        rule->up.dwell_ns > rule->down.dwell_ns ? rule->up.dwell_ns : rule->down.dwell_ns;
    int64_t interval_ns = draft->loop.interval_ms * NS_PER_MS;
    rule->window_ns = draft->window_ms >= 0
                          ? draft->window_ms * NS_PER_MS
                          : 20 * (longest_ns > interval_ns ? longest_ns : interval_ns);
}

/* Adds what does not fit together to the problems. */
static void finish_draft(struct yaml_reader *reader, const struct yaml_node *node,
                         struct draft *draft) {
    struct place place = {.reader = reader, .node = node};
    if (draft->loop.name == NULL) {
        COMPLAIN(&place, "expected a name");
        draft->loop.name = "";
    }
    finish_source(&place, draft);
    finish_target(&place, draft);
    finish_knob(&place, draft);
    finish_bounds(&place, draft);
    finish_law(&place, draft);
    finish_times(&place, draft);
    finish_safe(&place, draft);
}

static void read_loop(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    (void)index;
    struct control_config *config = to;
    struct draft draft = defaults;
    yaml_key_read_all(reader, loop_keys, node, &draft);
    if (node->kind == YAML_KIND_MAPPING) {
        finish_draft(reader, node, &draft);
    }
    config->loops[config->n_loops++] = draft.loop;
}

/* ---- between loops ---- */

static bool may_be_same(const char *a, const char *b) {
    return a == NULL || b == NULL || strcmp(a, b) == 0;
}

/* Two loops must not turn the same knob. */
static bool share_a_knob(const struct control_knob_name *a, const struct control_knob_name *b) {
    return a->plugin != NULL && b->plugin != NULL && strcmp(a->plugin, b->plugin) == 0 &&
           a->param != NULL && b->param != NULL && strcmp(a->param, b->param) == 0 &&
           may_be_same(a->container, b->container) && may_be_same(a->job, b->job) &&
           may_be_same(a->namespace, b->namespace) && may_be_same(a->pod, b->pod);
}

static void check_pair(struct yaml_reader *reader, const struct yaml_node *node,
                       const struct control_loop_config *loop,
                       const struct control_loop_config *earlier) {
    if (loop->name != NULL && earlier->name != NULL && strcmp(loop->name, earlier->name) == 0) {
        yaml_key_complain(reader, node, "another loop is called %s", loop->name);
    }
    if (share_a_knob(&loop->knob, &earlier->knob)) {
        yaml_key_complain(reader, node, "the loop %s turns the same knob, %s of %s", earlier->name,
                          loop->knob.param, loop->knob.plugin);
    }
}

static void read_loops(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    struct control_config *config = to;
    if (node->kind == YAML_KIND_SEQUENCE && node->n_items > MAX_LOOPS) {
        yaml_key_complain(reader, node, "more than %d loops", MAX_LOOPS);
        return;
    }
    config->loops = arena_take(&config->arena, (node->n_items + 1) * sizeof(*config->loops));
    yaml_key_each(reader, node, read_loop, config);
    for (size_t i = 1; i < config->n_loops; i++) {
        for (size_t k = 0; k < i; k++) {
            check_pair(reader, &node->items[i], &config->loops[i], &config->loops[k]);
        }
    }
}

/* ---- the file ---- */

/* "" means all namespaces. */
static void read_namespace(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to) {
    (void)key;
    if (node->kind != YAML_KIND_SCALAR) {
        yaml_key_complain(reader, node, "expected a text, got %s", yaml_node_kind_name(node));
        return;
    }
    *(const char **)to = arena_copy(reader->arena, node->text, strlen(node->text) + 1);
}

static const struct yaml_key amqp_keys[] = {
    YAML_KEY_TEXT("exchange", struct amqp_target, exchange),
    YAML_KEY_TEXT("host", struct amqp_target, host),
    {"password_file", web_endpoint_read_path, offsetof(struct amqp_target, password_file), {0}},
    {"port",
     yaml_key_number,
     offsetof(struct amqp_target, port),
     {.type = OPTION_INT, .min = 1, .max = 65535}},
    YAML_KEY_TEXT("scope", struct amqp_target, routing_key),
    YAML_KEY_TEXT("user", struct amqp_target, user),
    {0},
};

static void read_amqp(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    (void)key;
    struct amqp_target *target = to;
    *target = (struct amqp_target){
        .port = 5672, .user = "service", .exchange = "to-validator", .routing_key = "node"};
    yaml_key_read_all(reader, amqp_keys, node, target);
    if (target->host == NULL || target->password_file == NULL) {
        yaml_key_complain(reader, node, "expected a host and a password_file");
    }
}

static const struct yaml_key message_keys[] = {
    YAML_KEY_TEXT("name", struct control_message, name),
    YAML_KEY_TEXT("query", struct control_message, query),
    {0},
};

static void read_message(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                         void *to) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    struct control_config *config = to;
    struct control_message *message = &config->waggle.messages[config->waggle.n_messages++];
    (void)index;
    *message = (struct control_message){0};
    yaml_key_read_all(reader, message_keys, node, message);
    if (message->name == NULL || message->query == NULL) {
        yaml_key_complain(reader, node, "expected a name and a query");
    } else if (strlen(message->name) > WAGGLE_MAX_NAME ||
               message->name[strspn(message->name, allowed)] != '\0') {
        yaml_key_complain(reader, node,
                          "name: expected at most %d lower-case letters, digits, _ and dots, got "
                          "\"%s\"",
                          WAGGLE_MAX_NAME, message->name);
    }
}

static void read_messages(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    (void)key;
    struct control_config *config = to;
    if (node->kind == YAML_KIND_SEQUENCE && node->n_items > MAX_MESSAGES) {
        yaml_key_complain(reader, node, "more than %d messages", MAX_MESSAGES);
        return;
    }
    config->waggle.messages =
        arena_take(&config->arena, (node->n_items + 1) * sizeof(*config->waggle.messages));
    yaml_key_each(reader, node, read_message, config);
}

static const struct yaml_key waggle_keys[] = {
    {"amqp", read_amqp, offsetof(struct control_config, waggle.amqp), {0}},
    {"directory", yaml_key_text, offsetof(struct control_config, waggle.directory), {0}},
    {"interval", yaml_key_number, offsetof(struct control_config, waggle.interval_ms),
     YAML_KEY_DURATION(100, DAY_MS)},
    {"messages", read_messages, 0, {0}},
    {"namespace", read_namespace, offsetof(struct control_config, waggle.namespace), {0}},
    {0},
};

static void read_waggle(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    struct control_config *config = to;
    yaml_key_read_all(reader, waggle_keys, node, config);
    if (config->waggle.directory == NULL && config->waggle.amqp.host == NULL) {
        config->waggle.directory = "/run/metrics";
    }
}

static const struct yaml_key config_keys[] = {
    {"exporter", web_endpoint_read, offsetof(struct control_config, exporter), {0}},
    {"loops", read_loops, 0, {0}},
    {"metrics_path", yaml_key_text, offsetof(struct control_config, metrics_path), {0}},
    {"prometheus", web_endpoint_read, offsetof(struct control_config, prometheus), {0}},
    {"waggle", read_waggle, 0, {0}},
    {0},
};

/* Every server that is used needs an address. */
static void check_endpoints(const char *file, struct control_config *config,
                            struct problems *problems) {
    bool asks_prometheus = config->waggle.n_messages > 0;
    for (size_t i = 0; i < config->n_loops; i++) {
        asks_prometheus = asks_prometheus || !config->loops[i].from_exporter;
    }
    if (config->n_loops == 0 && !control_config_has_waggle(config)) {
        problems_add(problems, file, 0, 0, "expected at least one loop under loops");
    }
    if (config->exporter.url == NULL) {
        problems_add(problems, file, 0, 0, "expected exporter: {url: …}, where the knobs are");
    }
    if (asks_prometheus && config->prometheus.url == NULL) {
        problems_add(problems, file, 0, 0, "expected prometheus: {url: …} for the queries");
    }
    if (config->metrics_path[0] != '/') {
        problems_add(problems, file, 0, 0, "metrics_path: expected a path that begins with /");
    }
}

int control_config_parse(const char *file, const char *text, size_t len,
                         struct control_config *config, struct problems *problems) {
    size_t n_before = problems->n_lines;
    *config = (struct control_config){.metrics_path = "/metrics",
                                      .waggle = {.namespace = "ses", .interval_ms = 30 * 1000}};
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse(file, text, len, problems);
    if (doc == NULL) {
        return -EINVAL;
    }
    struct yaml_reader reader = {.file = file, .problems = problems, .arena = &config->arena};
    yaml_key_read_all(&reader, config_keys, yaml_doc_root(doc), config);
    buf_finish(&reader.path);
    if (problems->n_lines == n_before) {
        check_endpoints(file, config, problems);
    }
    return problems->n_lines > n_before ? -EINVAL : 0;
}

int control_config_load(const char *path, struct control_config *config,
                        struct problems *problems) {
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    *config = (struct control_config){0};
    if (file_read_stored(path, MAX_CONFIG_BYTES, &text, &err) < 0) {
        problems_add(problems, "control", 0, 0, "%s", err.text);
        return -EINVAL;
    }
    return control_config_parse(path, buf_str(&text), text.len, config, problems);
}

void control_config_finish(struct control_config *config) {
    for (size_t i = 0; i < config->n_loops; i++) {
        selector_destroy(config->loops[i].selector);
    }
    arena_finish(&config->arena);
    *config = (struct control_config){0};
}

double control_config_position(const struct control_loop_config *loop,
                               const struct knob_value *value) {
    if (loop->n_levels == 0) {
        return value->form == KNOB_NUMBER ? value->number : NAN;
    }
    int level = find_level(loop, value);
    return level >= 0 ? level : NAN;
}
