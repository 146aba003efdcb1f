#include "exporter/channel/knobs_knob.h"

#include <stdlib.h>
#include <string.h>

void params_knob_destroy(struct params_knob *knob) {
    param_spec_finish(&knob->spec);
    param_value_finish(&knob->requested);
    param_value_finish(&knob->applied);
    labels_destroy(knob->requested_labels);
    labels_destroy(knob->applied_labels);
    free(knob->requested_by);
    free(knob);
}

size_t params_knob_room(const struct param_spec *spec) {
    return sizeof(struct params_knob) + param_spec_room(spec);
}

struct params_knob *params_find_knob(const struct params_plugin *plugin, const char *name) {
    struct params_knob *knob = plugin->knobs;
    while (knob != NULL && strcmp(knob->spec.name, name) != 0) {
        knob = knob->next;
    }
    return knob;
}

void params_knob_insert(struct params_plugin *plugin, struct params_knob *knob) {
    struct params_knob **link = &plugin->knobs;
    while (*link != NULL && strcmp((*link)->spec.name, knob->spec.name) < 0) {
        link = &(*link)->next;
    }
    knob->next = *link;
    *link = knob;
    plugin->n_knobs++;
}

bool params_knob_ask(struct params_knob *knob, const struct params_wish *wish) {
    char *by = strdup(wish->by);
    if (by == NULL || param_value_set(&knob->requested, &wish->value, NULL) < 0) {
        free(by);
        return false;
    }
    labels_destroy(TAKE(knob->requested_labels));
    knob->requested_seconds = wish->seconds;
    free(knob->requested_by);
    knob->requested_by = by;
    return true;
}
