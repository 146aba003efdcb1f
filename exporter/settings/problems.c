#include "exporter/settings/problems.h"

#include <stdarg.h>
#include <stdlib.h>

#include "exporter/core/buf.h"

enum { PROBLEMS_MAX = 100 };

void problems_finish(struct problems *problems) {
    for (size_t i = 0; i < problems->n_lines; i++) {
        free(problems->lines[i]);
    }
    free(problems->lines);
    *problems = (struct problems){0};
}

/* What users wrote may hold line breaks and terminal codes; a problem stays one plain line. */
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
    if (problems->n_lines == problems->cap_lines) {
        size_t cap = problems->cap_lines == 0 ? 8 : 2 * problems->cap_lines;
        char **lines = reallocarray(problems->lines, cap, sizeof(*lines));
        if (lines == NULL) {
            return;
        }
        problems->lines = lines;
        problems->cap_lines = cap;
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
    char *line_text = buf_take(&text);
    if (line_text != NULL) {
        blank_control_characters(line_text);
        problems->lines[problems->n_lines++] = line_text;
    }
}

void problems_print(const struct problems *problems, FILE *to) {
    for (size_t i = 0; i < problems->n_lines; i++) {
        fprintf(to, "%s\n", problems->lines[i]);
    }
}
