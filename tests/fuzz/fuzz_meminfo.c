/* Covers 10 % of collectors/source/procfs.c. */
#include "collectors/source/procfs.h"
#include "tests/fuzz/lines.h"

static void check(const struct meminfo_line *parsed, const char *line) {
    check_word(parsed->key, line);
    assert(parsed->key.text[parsed->key.len] == ':');
}

FUZZ_LINES(meminfo_parse, struct meminfo_line)
