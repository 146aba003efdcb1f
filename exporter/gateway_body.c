#include "exporter/gateway_body.h"

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
