/* Covers collectors/source/pressure.c. */
#include "collectors/source/pressure.h"
#include "tests/fuzz/lines.h"

static void check(const struct pressure_line *parsed, const char *line) {
    assert(strstr(line, parsed->full ? "full" : "some") != NULL);
}

FUZZ_LINES(pressure_parse, struct pressure_line)
