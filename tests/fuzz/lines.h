#pragma once

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The word is part of the line. */
static inline void check_word(struct scan_word word, const char *line) {
    assert(word.len > 0 && word.text >= line);
    assert(word.text + word.len <= line + strcspn(line, "\n"));
}

/* A target for a file of /proc that is read line by line: `parse` fills a struct of that type from
 * a line, and check(parsed, line) asserts what holds if it succeeds. */
#define FUZZ_LINES(parse, type)                                                                    \
    static int take_line(void *context, size_t number, const char *line) {                         \
        (void)context;                                                                             \
        (void)number;                                                                              \
        type parsed;                                                                               \
        int r = parse(line, &parsed);                                                              \
        if (r == 0) {                                                                              \
            check(&parsed, line);                                                                  \
        }                                                                                          \
        return r;                                                                                  \
    }                                                                                              \
                                                                                                   \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {                                  \
        char *text CLEANUP_FREE = strndup((const char *)data, len);                                \
        struct error err = {0};                                                                    \
        int r = scan_lines(text, "file", take_line, NULL, &err);                                   \
        assert((r == 0) == (err.text[0] == '\0'));                                                 \
        return 0;                                                                                  \
    }
