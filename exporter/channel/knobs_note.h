#pragma once

#include "exporter/channel/knob.h"
#include "exporter/channel/push_json.h"
#include "exporter/core/error.h"
#include "exporter/push/store.h"

/* What was asked of a knob, as a note of the plugin's owner in the push store: when and by whom, on
 * a line of its own the value, and on another the knob's declaration, so that it can be shown and
 * turned before the plugin is back. */

struct params_wish {
    struct param_value value; /* absent: the default */
    double seconds;           /* since 1970 */
    const char *by;
};

/* Keeps what is asked of the knob, instead of what was kept. A declaration that is too long for the
 * store is left out. -ENOSPC, -ENOMEM, -E2BIG. */
int params_note_keep(struct push_store *store, struct push_owner *owner,
                     const struct param_spec *spec, const struct params_wish *wish,
                     struct error *err);

/* A note, taken apart. */
struct params_note {
    char *text; /* what the others point into */
    struct params_wish wish;
    char *declaration; /* NULL: not kept */
};

/* Takes the text of a note apart; false: it is none. Free it with params_note_finish. */
bool params_note_parse(const char *text, struct params_note *ret_note);
void params_note_finish(struct params_note *note);

/* The note of a knob; false: nothing was asked of it. */
bool params_note_find(const struct push_store *store, const struct push_owner *owner,
                      const char *name, struct params_note *ret_note);

/* Whether the note was kept with this declaration. */
bool params_note_declares(const struct params_note *note, const struct param_spec *spec);

/* Reads its declaration; the spec points into the note and the reader. False: there is none. */
bool params_note_spec(struct params_note *note, struct push_json *reader,
                      struct param_spec *ret_spec);

/* Calls `visit` with each note of the owner that is one of a knob. */
void params_note_visit(const struct push_store *store, const struct push_owner *owner,
                       void (*visit)(struct params_note *note, void *context), void *context);
