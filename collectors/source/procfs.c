#include "collectors/source/procfs.h"

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

int net_dev_parse(const char *line, struct net_dev_line *ret_line) {
    struct scan_word name;
    const char *cursor = line;
    if (!scan_word(&cursor, &name)) {
        return -EINVAL;
    }
    /* The kernel refuses colons in names, so the first one ends it. */
    const char *colon = memchr(name.text, ':', name.len);
    if (colon == NULL || colon == name.text) {
        return -EINVAL;
    }
    ret_line->device = (struct scan_word){.text = name.text, .len = (size_t)(colon - name.text)};
    cursor = colon + 1;
    int n = scan_numbers(&cursor, ret_line->fields, NET_DEV_FIELDS);
    return n == NET_DEV_FIELDS ? 0 : -EINVAL;
}

int pressure_parse(const char *line, struct pressure_line *ret_line) {
    static const char key[] = "total=";
    struct scan_word word;
    if (!scan_word(&line, &word)) {
        return -EINVAL;
    }
    ret_line->full = scan_word_equal(word, "full");
    if (!ret_line->full && !scan_word_equal(word, "some")) {
        return -EINVAL;
    }
    while (scan_word(&line, &word)) {
        const char *number = word.text + strlen(key);
        if (word.len > strlen(key) && memcmp(word.text, key, strlen(key)) == 0) {
            return scan_u64(&number, &ret_line->total_usec) ? 0 : -EINVAL;
        }
    }
    return -EINVAL;
}
