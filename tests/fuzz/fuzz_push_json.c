#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/push_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_update(const struct push_update *update) {
    assert(update->name != NULL && update->n_values > 0 && update->ttl_ms >= PUSH_TTL_DEFAULT);
    for (size_t i = 0; i < update->n_labels; i++) {
        assert(update->labels[i].value[0] != '\0');
        assert(i == 0 || strcmp(update->labels[i - 1].name, update->labels[i].name) < 0);
    }
}

/* What a peer sends: objects one after the other, until one is refused. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct push_json *reader = push_json_create();
    char *text CLEANUP_FREE = malloc(len > 0 ? len : 1);
    if (reader == NULL || text == NULL) {
        push_json_destroy(reader);
        return 0;
    }
    memcpy(text, data, len);
    struct json json = json_begin(text, len, 1);
    struct push_message message;
    struct error err = {0};
    size_t index = 0;
    while (!json_at_end(&json) && push_json_read(reader, &json, ++index, &message, &err) == 0) {
        assert(message.kind != PUSH_MESSAGE_DECLARE ||
               param_check(&message.declared, &message.declared.initial, NULL) == 0);
    }
    assert(json_at_end(&json) || err.text[0] != '\0');
    size_t n;
    const struct push_update *updates = push_json_updates(reader, &n);
    for (size_t i = 0; i < n; i++) {
        check_update(&updates[i]);
    }
    push_json_destroy(reader);
    return 0;
}
