#include "exporter/params_export.h"

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

struct stale {
    const struct push_owner *owner;
    const char *name;
    const char *param;
    const char *value; /* that stays; NULL: none does */
};

static const char *label_of(const struct push_series_view *series, const char *name) {
    for (size_t i = 0; i < series->n_labels; i++) {
        if (strcmp(series->labels[i].name, name) == 0) {
            return series->labels[i].value;
        }
    }
    return "";
}

static bool is_stale(const struct push_series_view *series, void *context) {
    const struct stale *stale = context;
    return series->owner == stale->owner && strcmp(series->name, stale->name) == 0 &&
           strcmp(label_of(series, "param"), stale->param) == 0 &&
           (stale->value == NULL || strcmp(label_of(series, "value"), stale->value) != 0);
}

/* Exports one value under `number`, or `text` where it has no number; what it was before goes. */
static void export_value(struct push_store *store, struct push_owner *owner, const char *param,
                         const struct param_value *value, const struct metric_desc *number,
                         const struct metric_desc *text) {
    bool is_text = value->form == PARAM_TEXT;
    const struct metric_desc *desc = is_text ? text : number;
    const struct metric_desc *other = is_text ? number : text;
    struct stale stale = {.owner = owner, .name = other->name, .param = param};
    push_store_remove_if(store, is_stale, &stale);
    if (is_text || value->form == PARAM_ABSENT) {
        stale.name = desc->name;
        stale.value = is_text && value->text[0] != '\0' ? value->text : NULL;
        push_store_remove_if(store, is_stale, &stale);
    }
    if (value->form == PARAM_ABSENT) {
        return;
    }
    double shown = is_text ? 1 : value->number;
    const struct label labels[] = {{"param", param}, {"value", value->text}};
    const struct push_update update = {
        .name = desc->name,
        .help = desc->help,
        .type = PUSH_GAUGE,
        .op = PUSH_SET,
        .labels = labels,
        .n_labels = is_text && value->text[0] != '\0' ? 2 : 1,
        .values = &shown,
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
        .own = true,
    };
    const struct push_batch batch = {.updates = &update, .n_updates = 1};
    push_store_apply(store, owner, &batch, NULL, NULL);
}

void params_export(struct push_store *store, struct push_owner *owner,
                   const struct params_knob *knob) {
    export_value(store, owner, knob->spec.name, &knob->applied, &params_applied_metric,
                 &params_applied_info_metric);
    export_value(store, owner, knob->spec.name, &knob->requested, &params_requested_metric,
                 &params_requested_info_metric);
}
