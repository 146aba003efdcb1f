#include "exporter/channel/knob_note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

#define PREFIX "param "

/* ---- writing ---- */

static void format_spec(const struct knob_spec *spec, struct buf *out) {
    json_open(out, NULL, '{');
    knob_spec_put(out, spec);
    json_close(out, '}');
}

int knob_note_keep(struct push_store *store, struct push_owner *owner, const struct knob_spec *spec,
                   const struct knob_request *request, struct error *err) {
    struct buf key CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    buf_printf(&key, PREFIX "%s", spec->name);
    if (request->value.form == KNOB_ABSENT) {
        return push_store_put_note(store, owner, buf_str(&key), NULL, err);
    }
    buf_printf(&text, "%.3f %s\n", request->seconds, request->by);
    knob_value_format(&request->value, &text);
    size_t len = text.len;
    buf_add_char(&text, '\n');
    format_spec(spec, &text);
    buf_add_char(&text, '\0');
    int r = push_store_put_note(store, owner, buf_str(&key), text.data, err);
    if (r == -E2BIG) {
        text.data[len] = '\0';
        r = push_store_put_note(store, owner, buf_str(&key), text.data, err);
    }
    return r;
}

/* ---- reading ---- */

/* Ends a line; returns the next one, or NULL. */
static char *cut_line(char *text) {
    char *end = strchr(text, '\n');
    if (end != NULL) {
        *end = '\0';
    }
    return end != NULL ? end + 1 : NULL;
}

bool knob_note_parse(const char *text, struct knob_note *ret_note) {
    struct knob_note note = {.text = mem_strdup(text)};
    char *value = cut_line(note.text);
    bool good = false;
    if (value != NULL) {
        char *by;
        note.declaration = cut_line(value);
        note.request.seconds = strtod(note.text, &by);
        note.request.by = by + strspn(by, " ");
        struct json json = json_begin(value, strlen(value), 1);
        good = knob_value_read(&json, &note.request.value, NULL) == 0;
    }
    if (!good) {
        knob_note_finish(&note);
        return false;
    }
    *ret_note = note;
    return true;
}

void knob_note_finish(struct knob_note *note) {
    free(note->text);
    *note = (struct knob_note){0};
}

bool knob_note_find(const struct push_store *store, const struct push_owner *owner,
                    const char *name, struct knob_note *ret_note) {
    struct buf key CLEANUP_BUF = {0};
    buf_printf(&key, PREFIX "%s", name);
    const char *text = push_store_note(store, owner, buf_str(&key));
    return text != NULL && knob_note_parse(text, ret_note);
}

bool knob_note_declares(const struct knob_note *note, const struct knob_spec *spec) {
    struct buf text CLEANUP_BUF = {0};
    format_spec(spec, &text);
    return note->declaration != NULL && strcmp(note->declaration, buf_str(&text)) == 0;
}

bool knob_note_spec(struct knob_note *note, struct push_json *reader, struct knob_spec *ret_spec) {
    struct push_message message;
    if (note->declaration == NULL) {
        return false;
    }
    struct json json = json_begin(note->declaration, strlen(note->declaration), 1);
    push_json_reset(reader);
    if (push_json_read(reader, &json, 1, &message, NULL) < 0 ||
        message.kind != PUSH_MESSAGE_DECLARE) {
        return false;
    }
    *ret_spec = message.declared;
    return true;
}

bool knob_note_read(const char *key, const char *text, struct knob_note *ret_note) {
    return strncmp(key, PREFIX, strlen(PREFIX)) == 0 && knob_note_parse(text, ret_note);
}
