#include "placement/control/draft.h"

#include <math.h>
#include <string.h>

#include "exporter/core/file.h"
#include "placement/control/table.h"

enum { MAX_TABLE_BYTES = 16 << 20, NS_PER_MS = 1000000 };

struct place {
    struct yaml_reader *reader;
    const struct yaml_node *node; /* of the loop */
};

#define COMPLAIN(place, ...) yaml_key_complain((place)->reader, (place)->node, __VA_ARGS__)

/* The node of a key, for complaints about its value; the loop's where it is not given. */
static const struct yaml_node *at_key(const struct place *place, const char *key) {
    const struct yaml_node *node = yaml_node_get(place->node, key);
    return node != NULL ? node : place->node;
}

static size_t choose(const struct place *place, const char *key, const char *text,
                     const char *const *choices, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(choices[i], text) == 0) {
            return i;
        }
    }
    struct buf all CLEANUP_BUF = {0};
    for (size_t i = 0; i < n; i++) {
        buf_printf(&all, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
    yaml_key_complain(place->reader, at_key(place, key), "%s: expected one of %s, got \"%s\"", key,
                      buf_str(&all), text);
    return 0;
}

static void finish_source(const struct place *place, struct control_draft *draft) {
    static const char *const sources[] = {"prometheus", "exporter"};
    struct error err;
    draft->loop.from_exporter =
        choose(place, "source", draft->source, sources, ARRAY_LEN(sources)) == 1;
    if (draft->loop.query == NULL) {
        COMPLAIN(place, "expected a query");
        return;
    }
    struct selector *selector CLEANUP_SELECTOR = NULL;
    bool simple = selector_create(draft->loop.query, &selector, &err) == 0;
    if (draft->loop.from_exporter && !simple) {
        yaml_key_complain(place->reader, at_key(place, "query"),
                          "query: expected a selector such as fps{plugin=\"a\"}: %s", err.text);
    }
    if (draft->loop.from_exporter && draft->loop.age_query != NULL) {
        yaml_key_complain(place->reader, at_key(place, "age_query"),
                          "age_query: an exporter's page is always of the moment");
    }
    /* Of a plain series Prometheus knows how old it is; of anything computed it does not. */
    if (!draft->loop.from_exporter && draft->loop.age_query == NULL && simple) {
        struct buf query CLEANUP_BUF = {0};
        buf_printf(&query, "time() - timestamp(%s)", draft->loop.query);
        draft->loop.age_query = arena_copy(place->reader->arena, buf_str(&query), query.len + 1);
    }
    if (draft->loop.from_exporter) {
        draft->loop.selector = TAKE(selector);
    }
}

static void finish_target(const struct place *place, struct control_draft *draft) {
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

static void finish_knob(const struct place *place, struct control_draft *draft) {
    const struct control_knob_name *knob = &draft->loop.knob;
    if (knob->plugin == NULL || knob->param == NULL) {
        yaml_key_complain(place->reader, at_key(place, "knob"),
                          "knob: expected a plugin and a param");
    }
    if (knob->param != NULL && strchr(knob->param, '/') != NULL) {
        yaml_key_complain(place->reader, at_key(place, "knob"),
                          "knob: a param has no / in its name");
    }
}

static void finish_bounds(const struct place *place, struct control_draft *draft) {
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
        yaml_key_complain(place->reader, at_key(place, "step"),
                          "step: larger than from min to max");
    }
}

static struct control_side finish_side(const struct place *place, const struct control_draft *draft,
                                       const struct control_draft_side *side, const char *name) {
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

static void finish_safe(const struct place *place, struct control_draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    rule->max_failures = draft->safe != NULL ? (unsigned)draft->failures : 0;
    if (draft->safe == NULL) {
        return;
    }
    struct knob_value value = control_draft_value(place->reader, draft->safe);
    int level = control_config_level(&draft->loop, &value);
    rule->safe = draft->loop.n_levels > 0 ? level : value.number;
    bool is_level = draft->loop.n_levels > 0 && level >= 0;
    bool is_inside = draft->loop.n_levels == 0 && value.form == KNOB_NUMBER &&
                     value.number >= rule->min && value.number <= rule->max;
    if (!is_level && !is_inside) {
        yaml_key_complain(place->reader, draft->safe, "safe: expected %s, got \"%s\"",
                          draft->loop.n_levels > 0 ? "one of the levels"
                                                   : "a number between min and max",
                          draft->safe->text);
    }
}

static void read_table(const struct place *place, struct control_draft *draft) {
    struct control_rule *rule = &draft->loop.rule;
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    int r = file_read_stored(draft->table_file, MAX_TABLE_BYTES, &text, &err);
    if (r == 0) {
        buf_add_char(&text, ' '); /* an empty file has memory too */
        r = control_table_parse(text.data, text.len, &draft->loop, draft->table_measure,
                                place->reader->arena, &rule->table, &rule->n_table, &err);
        if (r < 0) {
            error_set(&err, r, "%s: %s", draft->table_file, err.text);
        }
    }
    if (r < 0) {
        yaml_key_complain(place->reader, at_key(place, "table"), "table: %s", err.text);
    }
}

static void finish_law(const struct place *place, struct control_draft *draft) {
    static const char *const laws[] = {"step", "pi", "table"};
    static const char *const directions[] = {"up", "down"};
    struct control_rule *rule = &draft->loop.rule;
    rule->kind = (enum control_kind)choose(place, "law", draft->law, laws, ARRAY_LEN(laws));
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
    if (draft->direction == NULL && rule->kind == CONTROL_TABLE && rule->n_table > 0) {
        bool rises = rule->table[rule->n_table - 1].measure > rule->table[0].measure;
        rule->direction = rises ? 1 : -1;
    } else if (draft->direction == NULL) {
        COMPLAIN(place, "expected a direction: whether the measure goes up or down as the knob "
                        "goes up");
    } else {
        size_t way =
            choose(place, "direction", draft->direction, directions, ARRAY_LEN(directions));
        rule->direction = way == 0 ? 1 : -1;
    }
}

static void finish_times(const struct place *place, struct control_draft *draft) {
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

void control_draft_finish(struct yaml_reader *reader, const struct yaml_node *node,
                          struct control_draft *draft) {
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
