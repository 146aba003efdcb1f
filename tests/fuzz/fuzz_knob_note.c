/* Covers exporter/channel/knob_note.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knob_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct push_store *create(void) {
    struct push_store_config config = {
        .limits = {.max_owner_series = 1, .max_peer_bytes = 1 << 20},
        .table_bytes = 1 << 20,
    };
    struct push_store *store = NULL;
    int r = push_store_create(&config, &store, NULL);
    assert(r == 0);
    return store;
}

/* A note that is kept and found again means the same. */
static void keep(struct push_store *store, struct push_owner *owner, const struct knob_spec *spec,
                 const struct knob_request *request) {
    struct knob_note again;
    if (knob_note_keep(store, owner, spec, request, NULL) < 0) {
        return;
    }
    bool found = knob_note_find(store, owner, spec->name, &again);
    assert(found == (request->value.form != KNOB_ABSENT));
    if (found) {
        assert(knob_value_equal(&request->value, &again.request.value));
        assert(again.declaration == NULL || knob_note_declares(&again, spec));
        knob_note_finish(&again);
    }
}

static void count(const char *key, const char *text, void *context) {
    struct knob_note note;
    bool good = knob_note_read(key, text, &note);
    assert(good);
    knob_note_finish(&note);
    ++*(size_t *)context;
}

/* The text of a note as the store gives it back, up to the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct push_store *store;
    static struct push_owner *owner;
    static struct push_json *reader;
    if (store == NULL) {
        store = create();
        reader = push_json_create();
        int r = push_store_owner(store, &(struct push_identity){.plugin = "p"}, &owner, NULL);
        assert(r == 0);
    }
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    struct knob_note note;
    struct knob_spec spec;
    if (!knob_note_parse(text, &note)) {
        return 0;
    }
    if (knob_note_spec(&note, reader, &spec)) {
        assert(knob_spec_check(&spec, NULL) == 0);
        keep(store, owner, &spec, &note.request);
        size_t n = 0;
        push_store_visit_notes(store, owner, count, &n);
        assert(n == (note.request.value.form != KNOB_ABSENT));
        keep(store, owner, &spec, &(struct knob_request){0});
    }
    knob_note_finish(&note);
    return 0;
}
