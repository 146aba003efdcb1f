#include "collectors/source/cpu_stat.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/scan.h"

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

int cpu_stat_parse_busy(const char *text, uint64_t *ret_ticks) {
    static const enum cpu_stat_mode modes[] = {CPU_STAT_USER, CPU_STAT_NICE, CPU_STAT_SYSTEM,
                                               CPU_STAT_IRQ, CPU_STAT_SOFTIRQ};
    uint64_t ticks[CPU_STAT_N_MODES] = {0};
    struct scan_word word;
    if (!scan_word(&text, &word) || !scan_word_equal(word, "cpu") ||
        scan_numbers(&text, ticks, CPU_STAT_N_MODES) < CPU_MIN_MODES) {
        return -EINVAL;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        sum += ticks[modes[i]];
    }
    *ret_ticks = sum;
    return 0;
}
