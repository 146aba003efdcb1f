#include "collectors/source/diskstats.h"

#include <errno.h>

int diskstats_parse(const char *line, struct diskstats_line *ret_line) {
    uint64_t major, minor;
    if (!scan_u64(&line, &major) || !scan_u64(&line, &minor) ||
        !scan_word(&line, &ret_line->device)) {
        return -EINVAL;
    }
    int n = scan_numbers(&line, ret_line->fields, DISKSTATS_MAX_FIELDS);
    if (n < DISKSTATS_MIN_FIELDS) {
        return -EINVAL;
    }
    ret_line->n_fields = (size_t)n;
    return 0;
}
