#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "placement/control/law.h"

/* The state of a loop that outlives its process: a restart neither cuts the dwell short nor forgets
 * an oscillation. */
struct control_memory {
    const char *name; /* of the loop */
    bool is_set;
    double position;
    double output;
    double widening, floor;
    double changed_at; /* since 1970; 0: never */
    int last_direction;
};

/* The part of the state of a loop to remember. */
struct control_memory control_memory_of(const char *name, const struct control_state *state);

/* Restores a state that has just been started, if its knob is at the same position. */
void control_memory_recall(const struct control_memory *memory, struct control_state *state);

/* Appends all as JSON. */
void control_memory_format(const struct control_memory *memories, size_t n, struct buf *out);

/* Reads the output of control_memory_format, in place, into the memories of these names. -EINVAL
 * with what is wrong with it. */
int control_memory_parse(char *text, size_t len, struct control_memory *memories, size_t n,
                         struct error *err);

/* The same from and to a file, which is replaced as a whole or not at all. A file that does not
 * exist is an empty one. */
int control_memory_load(const char *path, struct control_memory *memories, size_t n,
                        struct error *err);
int control_memory_save(const char *path, const struct control_memory *memories, size_t n,
                        struct error *err);
