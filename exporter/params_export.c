#include "exporter/params_export.h"

#include <stdlib.h>
#include <string.h>

const struct metric_desc params_applied_metric = {
    .name = "plugin_param",
    .help = "Value of a plugin's knob as the plugin has applied it",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_requested_metric = {
    .name = "plugin_param_requested",
    .help = "Value that was asked of a plugin's knob; absent where the default holds",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_applied_info_metric = {
    .name = "plugin_param_info",
    .help = "Text of a plugin's knob as the plugin has applied it",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};
const struct metric_desc params_requested_info_metric = {
    .name = "plugin_param_requested_info",
    .help = "Text that was asked of a plugin's knob; absent where the default holds",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};

/* One of the two values of a knob, and where it is shown. */
struct shelf {
    struct push_store *store;
    struct push_owner *owner;
    const char *param;
    const struct metric_desc *number, *text;
};

static const char *label_of(const struct push_series_view *series, const char *name) {
    for (size_t i = 0; i < series->n_labels; i++) {
        if (strcmp(series->labels[i].name, name) == 0) {
            return series->labels[i].value;
        }
    }
    return "";
}

static bool is_on_shelf(const struct push_series_view *series, void *context) {
    const struct shelf *shelf = context;
    bool named = strcmp(series->name, shelf->number->name) == 0 ||
                 strcmp(series->name, shelf->text->name) == 0;
    return named && strcmp(label_of(series, "param"), shelf->param) == 0;
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
static void clear(struct shelf *shelf, const struct params_shown *shown,
                  const struct param_value *value) {
    struct label labels[2];
    double number;
    bool was_text = shown->value.form == PARAM_TEXT;
    bool same = was_text ? param_value_equal(&shown->value, value)
                         : value->form == PARAM_NUMBER || value->form == PARAM_TRUTH;
    if (!shown->known) {
        push_store_remove_of(shelf->store, shelf->owner, is_on_shelf, shelf);
    } else if (!same && shown->value.form != PARAM_ABSENT) {
        struct push_update old = update_of(shelf, &shown->value, labels, &number);
        push_store_remove_series(shelf->store, shelf->owner, &old);
    }
}

static void export_value(struct shelf *shelf, struct params_shown *shown,
                         const struct param_value *value) {
    struct label labels[2];
    double number;
    clear(shelf, shown, value);
    free((char *)shown->value.text);
    shown->value = *value;
    shown->value.text = value->text != NULL ? strdup(value->text) : NULL;
    shown->known = value->text == NULL || shown->value.text != NULL;
    if (value->form != PARAM_ABSENT) {
        const struct push_update update = update_of(shelf, value, labels, &number);
        const struct push_batch batch = {.updates = &update, .n_updates = 1};
        push_store_apply(shelf->store, shelf->owner, &batch, NULL, NULL);
    }
}

void params_export(struct push_store *store, struct push_owner *owner, struct params_knob *knob) {
    struct shelf applied = {store, owner, knob->spec.name, &params_applied_metric,
                            &params_applied_info_metric};
    struct shelf requested = {store, owner, knob->spec.name, &params_requested_metric,
                              &params_requested_info_metric};
    export_value(&applied, &knob->shown_applied, &knob->applied);
    export_value(&requested, &knob->shown_requested, &knob->requested);
}
