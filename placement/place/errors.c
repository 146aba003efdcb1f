#include "placement/place/errors.h"

#include <stdlib.h>
#include <string.h>

#include "placement/place/measured.h"

static void error_finish(struct place_error *error) {
    labels_destroy(error->labels);
    free(error->model);
}

void place_errors_finish(struct place_errors *errors) {
    for (size_t i = 0; i < errors->n_items; i++) {
        error_finish(&errors->items[i]);
    }
    free(errors->items);
    *errors = (struct place_errors){.n_items = 0};
}

static size_t count_known(const struct place_nodes *nodes) {
    size_t n = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        n += place_node_has_error(&nodes->nodes[i]);
    }
    return n < PLACE_MAX_ERRORS ? n : PLACE_MAX_ERRORS;
}

bool place_errors_collect(struct place_errors *errors, const char *model,
                          const struct place_nodes *nodes) {
    size_t max = count_known(nodes);
    errors->items = calloc(max + 1, sizeof(*errors->items));
    bool complete = errors->items != NULL;
    for (size_t i = 0; complete && i < nodes->n_nodes && errors->n_items < max; i++) {
        const struct place_node *node = &nodes->nodes[i];
        if (!place_node_has_error(node)) {
            continue;
        }
        struct place_error *error = &errors->items[errors->n_items++];
        *error = (struct place_error){
            .model = strdup(model),
            .labels = labels_render("node", node->name, "model", model),
            .ratio = (node->predicted_seconds - node->measured.seconds) / node->measured.seconds,
        };
        if (error->model == NULL || error->labels == NULL) {
            error_finish(error);
            errors->n_items--;
            complete = false;
        }
    }
    return complete;
}

/* Frees the first `n_first` and all of the model. */
static void drop(struct place_errors *errors, size_t n_first, const char *model) {
    size_t n = 0;
    for (size_t i = 0; i < errors->n_items; i++) {
        struct place_error *error = &errors->items[i];
        if (i < n_first || strcmp(error->model, model) == 0) {
            error_finish(error);
        } else {
            errors->items[n++] = *error;
        }
    }
    errors->n_items = n;
}

void place_errors_replace(struct place_errors *errors, const char *model,
                          struct place_errors *later) {
    drop(errors, 0, model);
    if (errors->n_items + later->n_items > PLACE_MAX_ERRORS) {
        drop(errors, errors->n_items + later->n_items - PLACE_MAX_ERRORS, model);
    }
    if (later->n_items == 0) {
        return;
    }
    struct place_error *items =
        reallocarray(errors->items, errors->n_items + later->n_items, sizeof(*items));
    if (items == NULL) {
        return;
    }
    memcpy(&items[errors->n_items], later->items, later->n_items * sizeof(*items));
    errors->items = items;
    errors->n_items += later->n_items;
    later->n_items = 0;
}
