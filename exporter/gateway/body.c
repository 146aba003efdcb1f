#include "exporter/gateway/body.h"

#include <assert.h>
#include <stdlib.h>

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

bool gateway_body_reserve(struct gateway_body *body, size_t n) {
    const struct arena *arena = &body->arena;
    size_t left = (arena->max - arena->taken) / sizeof(*body->updates) + 1;
    n = arena->max > 0 && n > left ? left : n;
    if (n <= body->cap_updates) {
        return true;
    }
    struct push_update *updates = reallocarray(body->updates, n, sizeof(*updates));
    if (updates == NULL) {
        return false;
    }
    body->updates = updates;
    body->cap_updates = n;
    return true;
}

struct push_update *gateway_body_add(struct gateway_body *body) {
    if (!arena_charge(&body->arena, PUSH_UPDATE_COST)) {
        return NULL;
    }
    assert(body->n_updates < body->cap_updates);
    struct push_update *update = &body->updates[body->n_updates++];
    *update = (struct push_update){
        .op = PUSH_SET, .ttl_ms = PUSH_TTL_DEFAULT, .index = (uint32_t)body->n_updates};
    return update;
}

void gateway_body_drop_labels(struct gateway_body *body, const struct label *labels, size_t n) {
    for (size_t i = 0; i < body->n_updates; i++) {
        struct push_update *update = &body->updates[i];
        struct label *kept = (struct label *)update->labels; /* in memory of the body's own */
        uint32_t n_kept = 0;
        for (size_t j = 0; j < update->n_labels; j++) {
            if (label_find(labels, n, kept[j].name) == NULL) {
                kept[n_kept++] = kept[j];
            }
        }
        update->n_labels = n_kept;
    }
}
