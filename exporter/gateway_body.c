#include "exporter/gateway_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_BYTES = 256 << 10, KEPT_UPDATES = 4096 };

void gateway_body_finish(struct gateway_body *body) {
    free(body->updates);
    arena_finish(&body->arena);
    exposition_doc_finish(&body->doc);
    *body = (struct gateway_body){0};
}

void gateway_body_reset(struct gateway_body *body) {
    body->n_updates = 0;
    body->has_timestamps = false;
    arena_reset(&body->arena, KEPT_BYTES);
    exposition_doc_reset(&body->doc);
    if (body->cap_updates > KEPT_UPDATES) {
        gateway_body_finish(body);
    }
}

struct push_update *gateway_body_add(struct gateway_body *body) {
    if (body->n_updates == body->cap_updates) {
        size_t cap = body->cap_updates > 0 ? 2 * body->cap_updates : 64;
        struct push_update *updates = reallocarray(body->updates, cap, sizeof(*updates));
        if (updates == NULL) {
            return NULL;
        }
        body->updates = updates;
        body->cap_updates = cap;
    }
    struct push_update *update = &body->updates[body->n_updates++];
    *update =
        (struct push_update){.op = PUSH_SET, .ttl_ms = PUSH_TTL_DEFAULT, .index = body->n_updates};
    return update;
}

int gateway_body_drop_labels(struct gateway_body *body, const struct label *labels, size_t n) {
    for (size_t i = 0; i < body->n_updates; i++) {
        struct push_update *update = &body->updates[i];
        size_t n_kept = 0;
        for (size_t j = 0; j < update->n_labels; j++) {
            n_kept += label_find(labels, n, update->labels[j].name) == NULL;
        }
        if (n_kept == update->n_labels) {
            continue;
        }
        struct label *kept = arena_take(&body->arena, (n_kept + 1) * sizeof(*kept));
        if (kept == NULL) {
            return -ENOMEM;
        }
        n_kept = 0;
        for (size_t j = 0; j < update->n_labels; j++) {
            if (label_find(labels, n, update->labels[j].name) == NULL) {
                kept[n_kept++] = update->labels[j];
            }
        }
        update->labels = kept;
        update->n_labels = n_kept;
    }
    return 0;
}
