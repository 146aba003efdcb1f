/* Covers 11 % of collectors/source/procfs.c. */
#include "collectors/source/procfs.h"
#include "tests/fuzz/lines.h"

static void check(const struct diskstats_line *parsed, const char *line) {
    check_word(parsed->device, line);
    assert(parsed->n_fields >= DISKSTATS_MIN_FIELDS && parsed->n_fields <= DISKSTATS_MAX_FIELDS);
}

FUZZ_LINES(diskstats_parse, struct diskstats_line)
