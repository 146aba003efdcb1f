/* Covers 28 % of collectors/source/procfs.c. */
#include "collectors/source/procfs.h"
#include "tests/fuzz/lines.h"

static void check(const struct cpu_stat_line *parsed, const char *line) {
    uint64_t ticks;
    assert(parsed->n_modes <= CPU_STAT_N_MODES);
    assert(cpu_stat_parse_busy(line, &ticks) < 0); /* the line of all CPUs */
}

/* A line of one CPU, or of all of them together. */
static int parse(const char *line, struct cpu_stat_line *ret_line) {
    uint64_t ticks;
    cpu_stat_parse_busy(line, &ticks);
    return cpu_stat_parse(line, ret_line);
}

FUZZ_LINES(parse, struct cpu_stat_line)
