#include "exporter/channel/knobs_export.h"

#include <stdlib.h>
#include <string.h>

const struct metric_desc params_applied_metric = {
    .name = "plugin_param",
    .help = "Value of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_requested_metric = {
    .name = "plugin_param_requested",
    .help = "Value that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_applied_info_metric = {
    .name = "plugin_param_info",
    .help = "Text of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};
const struct metric_desc params_requested_info_metric = {
    .name = "plugin_param_requested_info",
    .help = "Text that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};

/* One of the two values of a knob, and where it is shown. */
struct shelf {
    struct push_store *store;
    struct push_owner *owner;
    const char *param;
    const struct metric_desc *number, *text;
    bool is_away; /* the owner is not connected */
};

static bool is_shown(const struct push_series_view *series, void *context) {
    static const struct metric_desc *const descs[] = {
        &params_applied_metric, &params_requested_metric, &params_applied_info_metric,
        &params_requested_info_metric};
    (void)context;
    for (size_t i = 0; i < ARRAY_LEN(descs); i++) {
        if (strcmp(series->name, descs[i]->name) == 0) {
            return true;
        }
    }
    return false;
}

/* The series that shows a value; `labels` and `number` are room for what it refers to. */
static struct push_update update_of(const struct shelf *shelf, const struct param_value *value,
                                    struct label labels[static 2], double *number) {
    bool is_text = value->form == PARAM_TEXT && value->text != NULL;
    const struct metric_desc *desc = is_text ? shelf->text : shelf->number;
    labels[0] = (struct label){"param", shelf->param};
    labels[1] = (struct label){"value", value->text};
    *number = is_text ? 1 : value->number;
    return (struct push_update){
        .name = desc->name,
        .help = desc->help,
        .type = PUSH_GAUGE,
        .op = PUSH_SET,
        .labels = labels,
        .n_labels = is_text && value->text[0] != '\0' ? 2 : 1,
        .values = number,
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
        .own = true,
    };
}

/* Takes away what is shown unless the value stands in the same series. */
static void clear(const struct shelf *shelf, const struct param_value *shown,
                  const struct param_value *value) {
    struct label labels[2];
    double number;
    bool was_text = shown->form == PARAM_TEXT;
    bool same = was_text ? param_value_equal(shown, value)
                         : value->form == PARAM_NUMBER || value->form == PARAM_TRUTH;
    if (!same && shown->form != PARAM_ABSENT) {
        struct push_update old = update_of(shelf, shown, labels, &number);
        push_store_remove_series(shelf->store, shelf->owner, &old);
    }
}

static void export_value(const struct shelf *shelf, struct param_value *shown,
                         const struct param_value *value) {
    struct label labels[2];
    double number;
    clear(shelf, shown, value);
    free((char *)shown->text);
    *shown = *value;
    shown->text = value->text != NULL ? strdup(value->text) : NULL;
    if (value->text != NULL && shown->text == NULL) { /* what cannot be remembered is not shown */
        *shown = (struct param_value){0};
        return;
    }
    if (value->form != PARAM_ABSENT) {
        const struct push_update update = update_of(shelf, value, labels, &number);
        const struct push_batch batch = {.updates = &update, .n_updates = 1};
        if (shelf->is_away) {
            push_store_apply_for(shelf->store, shelf->owner, &batch, NULL);
        } else {
            push_store_apply(shelf->store, shelf->owner, &batch, NULL, NULL);
        }
    }
}

static struct shelf requested_shelf(struct push_store *store, struct push_owner *owner,
                                    const struct params_knob *knob) {
    return (struct shelf){.store = store,
                          .owner = owner,
                          .param = knob->spec.name,
                          .number = &params_requested_metric,
                          .text = &params_requested_info_metric};
}

void params_export(struct push_store *store, struct push_owner *owner, struct params_knob *knob) {
    struct shelf requested = requested_shelf(store, owner, knob);
    struct shelf applied = requested;
    applied.number = &params_applied_metric;
    applied.text = &params_applied_info_metric;
    export_value(&applied, &knob->shown_applied, &knob->applied);
    export_value(&requested, &knob->shown_requested, &knob->requested);
}

struct search {
    const char *param;
    bool found;
};

/* Whether it shows what the plugin has applied. */
static void look_at(const struct push_series_view *series, void *context) {
    struct search *search = context;
    bool applied = strcmp(series->name, params_applied_metric.name) == 0 ||
                   strcmp(series->name, params_applied_info_metric.name) == 0;
    for (size_t i = 0; applied && i < series->n_labels; i++) {
        search->found |= strcmp(series->labels[i].name, "param") == 0 &&
                         strcmp(series->labels[i].value, search->param) == 0;
    }
}

void params_export_away(struct push_store *store, struct push_owner *owner,
                        struct params_knob *knob) {
    struct shelf requested = requested_shelf(store, owner, knob);
    struct search search = {.param = knob->spec.name};
    push_store_visit(store, owner, look_at, &search);
    requested.is_away = true;
    const struct param_value nothing = {0};
    export_value(&requested, &knob->shown_requested, search.found ? &knob->requested : &nothing);
}

void params_export_clear(struct push_store *store, struct push_owner *owner) {
    push_store_remove_of(store, owner, is_shown, NULL);
}
