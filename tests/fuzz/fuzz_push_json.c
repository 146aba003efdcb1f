/* Covers exporter/channel/push_json.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/push_json.h"
#include "exporter/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { MAX_BYTES = 16384 };

static void check_update(const struct push_update *update) {
    assert(update->name != NULL && update->n_values > 0 && update->ttl_ms >= PUSH_TTL_DEFAULT);
    for (size_t i = 0; i < update->n_labels; i++) {
        assert(update->labels[i].value[0] != '\0');
        assert(i == 0 || strcmp(update->labels[i - 1].name, update->labels[i].name) < 0);
    }
}

/* Reads objects until one is rejected. */
static void read_objects(struct push_json *reader, struct json *json) {
    struct push_message message;
    struct error err = {0};
    size_t index = 0;
    while (!json_at_end(json) && push_json_read(reader, json, ++index, &message, &err) == 0) {
        assert(message.kind != PUSH_MESSAGE_DECLARE ||
               knob_check(&message.declared, &message.declared.initial, NULL) == 0);
    }
    assert(err.text[0] != '\0' || json_at_end(json));
    for (size_t i = 0; i < reader->n_updates; i++) {
        check_update(&reader->updates[i]);
    }
}

/* What a peer sends: objects one after the other. Reading goes on after a rejected line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct push_json *reader = push_json_create();
    char *text CLEANUP_FREE = malloc(len > 0 ? len : 1);
    if (reader == NULL || text == NULL) {
        push_json_destroy(reader);
        return 0;
    }
    memcpy(text, data, len);
    reader->arena.max = MAX_BYTES;
    struct json json = json_begin(text, len, 1);
    while (!json_at_end(&json)) {
        read_objects(reader, &json);
        push_json_reset(reader);
        char *newline = memchr(json.at, '\n', (size_t)(json.end - json.at));
        char *next = newline != NULL ? newline + 1 : json.end;
        json = json_begin(next, (size_t)(json.end - next), json.line + 1);
    }
    push_json_destroy(reader);
    return 0;
}
