#include "exporter/settings/problems.h"

#include <stdarg.h>
#include <stdlib.h>

#include "exporter/core/buf.h"
#include "exporter/core/memory.h"

enum { PROBLEMS_MAX = 100 };

void problems_finish(struct problems *problems) {
    for (size_t i = 0; i < problems->n_lines; i++) {
        free(problems->lines[i]);
    }
    free(problems->lines);
    *problems = (struct problems){0};
}

/* A user's text may hold line breaks and terminal codes; a problem stays one plain line. */
static void blank_control_characters(char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            *text = '?';
        }
    }
}

void problems_add(struct problems *problems, const char *file, size_t line, size_t column,
                  const char *format, ...) {
    if (problems->n_lines >= PROBLEMS_MAX) {
        return;
    }
    struct buf text = {0};
    buf_add_str(&text, file);
    if (line > 0) {
        buf_printf(&text, ":%zu:%zu", line, column);
    }
    buf_add_str(&text, ": ");
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    blank_control_characters(text.data);
    ARRAY_GROW(&problems->lines, &problems->cap_lines, problems->n_lines + 1);
    problems->lines[problems->n_lines++] = buf_take(&text);
}

void problems_print(const struct problems *problems, FILE *to) {
    for (size_t i = 0; i < problems->n_lines; i++) {
        fprintf(to, "%s\n", problems->lines[i]);
    }
}
