#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/gateway_body.h"
#include "exporter/gateway_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct exposition_limits limits = {
    .max_families = 1000,
    .max_samples = 1000,
    .max_labels = 16,
    .max_name_len = 256,
    .max_value_len = 1024,
};

/* What the store relies on. */
static void check(const struct gateway_body *body) {
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

/* The same bytes as a path, as a body in the text format and as one in protobuf. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct gateway_body body;
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    struct error err = {0};
    char *text CLEANUP_FREE = malloc(len + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, len);
    text[len] = '\0';
    if (gateway_path_parse(text, &path, &err) == 0) {
        assert(path.n_labels > 0 && path.n_labels <= GATEWAY_PATH_MAX_LABELS);
    }
    gateway_protobuf_read(text, len, &limits, &body, &err);
    check(&body);
    gateway_text_read(text, len, &limits, &body, &err);
    check(&body);
    return 0;
}
