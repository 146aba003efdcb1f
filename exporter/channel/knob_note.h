#pragma once

#include "exporter/channel/knob.h"
#include "exporter/channel/push_json.h"
#include "exporter/core/error.h"
#include "exporter/push/store.h"

/* A request for a knob, kept as a note of the plugin's owner in the push store. Its lines are time
 * and requester, the value, and the knob's declaration, so that the knob can be shown and set
 * before the plugin is back. */

struct knob_request {
    struct knob_value value; /* absent: the default */
    double seconds;          /* since 1970 */
    const char *by;
};

/* Replaces the request for the knob; omits a declaration that is too long. -ENOSPC, -E2BIG. */
int knob_note_keep(struct push_store *store, struct push_owner *owner, const struct knob_spec *spec,
                   const struct knob_request *request, struct error *err);

/* A note, taken apart. */
struct knob_note {
    char *text; /* the other members point into it */
    struct knob_request request;
    char *declaration; /* NULL: not kept */
};

/* Parses the text of a note; false: invalid. Free it with knob_note_finish. */
bool knob_note_parse(const char *text, struct knob_note *ret_note);
void knob_note_finish(struct knob_note *note);

/* The note of a knob; false: it has none. */
bool knob_note_find(const struct push_store *store, const struct push_owner *owner,
                    const char *name, struct knob_note *ret_note);

/* Whether the note was kept with this declaration. */
bool knob_note_declares(const struct knob_note *note, const struct knob_spec *spec);

/* Reads its declaration; the spec points into the note and the reader. False: there is none. */
bool knob_note_spec(struct knob_note *note, struct push_json *reader, struct knob_spec *ret_spec);

/* Parses a note as push_store_visit_notes yields it; false: invalid, or not about a knob. */
bool knob_note_read(const char *key, const char *text, struct knob_note *ret_note);
