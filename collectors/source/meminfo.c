#include "collectors/source/meminfo.h"

#include <errno.h>

int meminfo_parse(const char *line, struct meminfo_line *ret_line) {
    struct scan_word unit;
    if (!scan_word(&line, &ret_line->key) || ret_line->key.len < 2 ||
        ret_line->key.text[--ret_line->key.len] != ':' || !scan_u64(&line, &ret_line->value)) {
        return -EINVAL;
    }
    ret_line->kilobytes = scan_word(&line, &unit);
    if (ret_line->kilobytes && !scan_word_equal(unit, "kB")) {
        return -EINVAL;
    }
    return scan_word(&line, &unit) ? -EINVAL : 0;
}
