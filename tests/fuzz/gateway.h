#pragma once

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/gateway/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct exposition_limits limits = {
    .max_families = 1000,
    .max_samples = 1000,
    .max_labels = 16,
    .max_name_len = 256,
    .max_value_len = 1024,
};

/* What the store relies on. */
static inline void check_body(const struct gateway_body *body) {
    for (size_t i = 0; i < body->n_updates; i++) {
        const struct push_update *update = &body->updates[i];
        bool composed = update->type == PUSH_HISTOGRAM || update->type == PUSH_SUMMARY;
        assert(update->name[0] != '\0' && update->help != NULL);
        assert(update->n_values == (composed ? update->n_bounds + 2 : 1));
        for (size_t j = 0; j < update->n_labels; j++) {
            assert(update->labels[j].value[0] != '\0');
            assert(j == 0 || strcmp(update->labels[j - 1].name, update->labels[j].name) < 0);
        }
    }
}
