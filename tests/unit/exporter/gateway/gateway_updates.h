#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/number.h"
#include "exporter/gateway/body.h"

/* Updates as one line each: "counter a{x=1} 3", "histogram h{} 1:2 | 3 4.5" (bounds and figures,
 * then count and sum), with the help in quotes behind it. */

static void gateway_updates_add_number(struct buf *out, double value) {
    char text[NUMBER_MAX_LEN];
    buf_add(out, text, number_format(value, text));
}

static void gateway_updates_add_values(struct buf *out, const struct push_update *update) {
    for (size_t i = 0; i < update->n_bounds; i++) {
        buf_add_char(out, ' ');
        gateway_updates_add_number(out, update->bounds[i]);
        buf_add_char(out, ':');
        gateway_updates_add_number(out, update->values[i]);
    }
    buf_add_str(out, update->bounds != NULL ? " |" : "");
    for (size_t i = update->n_bounds; i < update->n_values; i++) {
        buf_add_char(out, ' ');
        gateway_updates_add_number(out, update->values[i]);
    }
}

static const char *gateway_updates_text(struct buf *out, const struct gateway_body *body) {
    static const char *const types[] = {
        [PUSH_UNSAID] = "unsaid", [PUSH_UNTYPED] = "untyped",     [PUSH_COUNTER] = "counter",
        [PUSH_GAUGE] = "gauge",   [PUSH_HISTOGRAM] = "histogram", [PUSH_SUMMARY] = "summary",
        [PUSH_RATE] = "rate",
    };
    for (size_t i = 0; i < body->n_updates; i++) {
        const struct push_update *update = &body->updates[i];
        buf_printf(out, "%s %s{", types[update->type], update->name);
        for (size_t j = 0; j < update->n_labels; j++) {
            buf_printf(out, "%s%s=%s", j > 0 ? "," : "", update->labels[j].name,
                       update->labels[j].value);
        }
        buf_add_char(out, '}');
        gateway_updates_add_values(out, update);
        if (update->help != NULL && update->help[0] != '\0') {
            buf_printf(out, " \"%s\"", update->help);
        }
        buf_add_char(out, '\n');
    }
    return buf_str(out);
}
