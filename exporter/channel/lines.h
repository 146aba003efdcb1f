#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"

/* Makes lines out of what comes on a connection. Who takes them may say "not now": then they wait,
 * and nothing more should be read before push_lines_resume has found a taker. A zeroed struct but
 * for the first members is an empty stream. */
struct push_lines {
    size_t max_line; /* bytes */

    /* Takes a line without its newline, which it may write to; false: not now. */
    bool (*take)(struct push_lines *lines, char *text, size_t len);
    void (*too_long)(struct push_lines *lines);

    struct buf rest; /* the beginning of a line or, while `held`, lines that wait */
    bool held;
    bool skipping; /* the rest of a line that is too long */
    bool ended;
};

void push_lines_finish(struct push_lines *lines);

/* Takes what has come. Not while lines are held. */
void push_lines_add(struct push_lines *lines, char *data, size_t len);

/* Nothing more will come; what was said last needs no newline. Not while lines are held. */
void push_lines_end(struct push_lines *lines);

/* Tries again with the lines that are held; returns how many bytes were taken. */
size_t push_lines_resume(struct push_lines *lines);
