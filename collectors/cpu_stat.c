#include "collectors/cpu_stat.h"

#include <errno.h>
#include <string.h>

#include "collectors/scan.h"

enum { CPU_MIN_MODES = 4 };

int cpu_stat_parse(const char *line, struct cpu_stat_line *ret_line) {
    struct scan_word word;
    if (!scan_word(&line, &word) || word.len < 4 || memcmp(word.text, "cpu", 3) != 0) {
        return -EINVAL;
    }
    const char *id = word.text + 3;
    if (!scan_u64(&id, &ret_line->id)) {
        return -EINVAL;
    }
    int n = scan_numbers(&line, ret_line->ticks, CPU_STAT_N_MODES);
    if (n < CPU_MIN_MODES) {
        return -EINVAL;
    }
    ret_line->n_modes = (size_t)n;
    return 0;
}
