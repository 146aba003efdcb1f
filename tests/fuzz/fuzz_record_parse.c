/* Covers profiler/record/parse.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/record/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_line(const struct record_parser *parser, const struct record_line *line) {
    assert(line->target != NULL);
    assert((line->kind == RECORD_SAMPLE) == (line->object == NULL));
    assert(line->kind != RECORD_PHASE || record_phase_name(line->phase)[0] != '\0');
    for (size_t i = 0; i < line->n_values; i++) {
        const struct record_series *series = line->values[i].series;
        assert(parser->series[series->index] == series);
        assert(strncmp(series->key, series->name, strlen(series->name)) == 0);
    }
}

/* Lines of a record, one after the other, each judged by itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct record_parser parser = {0};
    char *text CLEANUP_FREE = malloc(len + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, len);
    text[len] = '\n';
    for (char *line = text; line < text + len;) {
        size_t n = (size_t)((char *)memchr(line, '\n', (size_t)(text + len + 1 - line)) - line);
        struct record_line parsed;
        struct error err = {0};
        if (record_parse(&parser, line, n, &parsed, &err) == 0) {
            check_line(&parser, &parsed);
        } else {
            assert(err.text[0] != '\0');
        }
        line += n + 1;
    }
    record_parser_finish(&parser);
    return 0;
}
