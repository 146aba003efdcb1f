/* Covers 16 % of collectors/source/procfs.c. */
#include "collectors/source/procfs.h"
#include "tests/fuzz/lines.h"

static void check(const struct pressure_line *parsed, const char *line) {
    assert(strstr(line, parsed->full ? "full" : "some") != NULL);
}

FUZZ_LINES(pressure_parse, struct pressure_line)
