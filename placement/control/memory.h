#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "placement/control/law.h"

/* What of a loop outlives its process, so that a restart is not felt: the dwell goes on, and what
 * was learnt of oscillations stays. */
struct control_memory {
    bool is_set;
    double position;
    double output;
    double widening, floor;
    double changed_at; /* since 1970; 0: never */
    int last_direction;
};

/* What there is to remember of a state. */
struct control_memory control_memory_of(const struct control_state *state);

/* Gives a state that has just been started what it had, if its knob is where it was. */
void control_memory_recall(const struct control_memory *memory, struct control_state *state);

struct control_memory_entry {
    const char *name;
    struct control_memory memory;
};

/* Appends all as JSON. */
void control_memory_format(const struct control_memory_entry *entries, size_t n, struct buf *out);

/* Reads what control_memory_format wrote, in place, into those of `entries` that are in it. -EINVAL
 * says what is wrong with it. */
int control_memory_parse(char *text, size_t len, struct control_memory_entry *entries, size_t n,
                         struct error *err);

/* The same from and to a file; the latter is there as a whole or not at all. One that does not
 * exist is an empty one. */
int control_memory_load(const char *path, struct control_memory_entry *entries, size_t n,
                        struct error *err);
int control_memory_save(const char *path, const struct control_memory_entry *entries, size_t n,
                        struct error *err);
