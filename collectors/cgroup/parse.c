#include "collectors/cgroup/parse.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "collectors/source/procfs.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/scan.h"

/* A number that the kernel may have printed as signed: its counts of 32 bits (nr_periods) turn
 * negative half way round, and v1 writes -1 for no limit. */
static bool scan_signed(const char **cursor, bool *ret_negative, uint64_t *ret_value) {
    const char *at = *cursor + strspn(*cursor, " \t");
    *ret_negative = *at == '-';
    at += *ret_negative ? 1 : 0;
    if (*at == ' ' || *at == '\t' || !scan_u64(&at, ret_value)) {
        return false;
    }
    *cursor = at;
    return true;
}

static int parse_count(const char *text, double divisor, double *ret_value) {
    bool negative;
    uint64_t value;
    if (!scan_signed(&text, &negative, &value)) {
        return -EINVAL;
    }
    *ret_value = (double)(negative ? (uint32_t)-value : value) / divisor;
    return 0;
}

static const struct cgroup_key *find_key(const struct cgroup_key *keys, size_t n_keys,
                                         const char *text, size_t len) {
    for (size_t i = 0; i < n_keys; i++) {
        if (keys[i].len == len && memcmp(keys[i].key, text, len) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

int cgroup_parse_keyed(const char *text, const struct cgroup_key *keys, size_t n_keys,
                       struct cgroup_stats *out) {
    int result = 0;
    size_t next = 0; /* the key that comes next if the kernel keeps to our order */
    for (const char *line = text; *line != '\0';) {
        size_t len = 0;
        while (line[len] != ' ' && line[len] != '\n' && line[len] != '\0') {
            len++;
        }
        const struct cgroup_key *key = NULL;
        if (line[len] == ' ') {
            key = next < n_keys ? find_key(&keys[next], 1, line, len) : NULL;
            key = key != NULL ? key : find_key(keys, n_keys, line, len);
        }
        if (key != NULL) {
            next = (size_t)(key - keys) + 1;
            int r = parse_count(line + len + 1, key->divisor, &out->values[key->value]);
            result = result == 0 ? r : result;
        }
        line = strchrnul(line + len, '\n');
        line += *line == '\n' ? 1 : 0;
    }
    return result;
}

/* v1's "no limit" is the largest number of pages that fits, so it depends on the page size. */
static double limit_of(bool negative, uint64_t value) {
    return negative || value >= UINT64_C(1) << 62 ? INFINITY : (double)value;
}

static int scan_limit(const char **cursor, double *ret_value) {
    const char *at = *cursor;
    struct scan_word word;
    if (scan_word(&at, &word) && scan_word_equal(word, "max")) {
        *ret_value = INFINITY;
        *cursor = at;
        return 0;
    }
    bool negative;
    uint64_t value;
    if (!scan_signed(cursor, &negative, &value)) {
        return -EINVAL;
    }
    *ret_value = limit_of(negative, value);
    return 0;
}

int cgroup_parse_scalar(const char *text, enum cgroup_value value, double divisor,
                        struct cgroup_stats *out) {
    double number;
    int r = scan_limit(&text, &number);
    if (r == 0) {
        out->values[value] = number / divisor;
    }
    return r;
}

int cgroup_parse_cpu_max(const char *text, struct cgroup_stats *out) {
    double quota;
    uint64_t period;
    if (scan_limit(&text, &quota) < 0 || !scan_u64(&text, &period) || period == 0) {
        return -EINVAL;
    }
    out->values[CGROUP_CPU_QUOTA_USEC] = quota;
    out->values[CGROUP_CPU_PERIOD_USEC] = (double)period;
    return 0;
}

int cgroup_parse_pressure(const char *text, enum cgroup_value waiting, struct cgroup_stats *out) {
    int result = 0;
    while (*text != '\0') {
        struct pressure_line line;
        int r = *text == '\n' ? 0 : pressure_parse(text, &line);
        if (r < 0) {
            result = r;
        } else if (*text != '\n') {
            out->values[waiting + (line.full ? 1 : 0)] = (double)line.total_usec / 1e6;
        }
        text = strchrnul(text, '\n');
        text += *text == '\n' ? 1 : 0;
    }
    return result;
}

/* "8:16", all of it. */
static bool parse_device(struct scan_word word, uint32_t *ret_major, uint32_t *ret_minor) {
    uint32_t numbers[2] = {0, 0};
    size_t i = 0;
    bool digit = false;
    for (size_t n = 0; n < word.len; n++) {
        char c = word.text[n];
        if (c == ':' && i == 0 && digit) {
            i = 1;
            digit = false;
        } else if (c >= '0' && c <= '9' && numbers[i] < UINT32_MAX / 10 - 1) {
            numbers[i] = numbers[i] * 10 + (uint32_t)(c - '0');
            digit = true;
        } else {
            return false;
        }
    }
    *ret_major = numbers[0];
    *ret_minor = numbers[1];
    return i == 1 && digit;
}

static int parse_io_field(struct scan_word word, uint32_t major, uint32_t minor,
                          struct cgroup_stats *out) {
    static const char *const names[CGROUP_IO_N_VALUES] = {
        [CGROUP_IO_READ_BYTES] = "rbytes=",
        [CGROUP_IO_WRITTEN_BYTES] = "wbytes=",
        [CGROUP_IO_READS] = "rios=",
        [CGROUP_IO_WRITES] = "wios=",
        [CGROUP_IO_DISCARDED_BYTES] = "dbytes=",
        [CGROUP_IO_DISCARDS] = "dios=",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i]);
        if (word.len <= len || memcmp(word.text, names[i], len) != 0) {
            continue;
        }
        uint64_t value;
        const char *number = word.text + len;
        if (!scan_u64(&number, &value)) {
            return -EINVAL;
        }
        struct cgroup_io *device = cgroup_stats_device(out, major, minor);
        if (device == NULL) {
            return -ENOMEM;
        }
        device->values[i] = (double)value;
        return 0;
    }
    return 0;
}

static int io_stat_line(const char *line, struct cgroup_stats *out) {
    int result = 0;
    uint32_t major, minor;
    struct scan_word word;
    if (!scan_word(&line, &word)) {
        return 0;
    }
    if (!parse_device(word, &major, &minor)) {
        return -EINVAL;
    }
    while (scan_word(&line, &word)) {
        /* Some kernels print a device without statistics and forget the newline. */
        if (parse_device(word, &major, &minor)) {
            continue;
        }
        int r = parse_io_field(word, major, minor, out);
        result = result == 0 ? r : result;
    }
    return result;
}

static int blkio_line(const char *line, enum cgroup_io_value read, enum cgroup_io_value discard,
                      struct cgroup_stats *out) {
    uint32_t major, minor;
    struct scan_word device_word, kind;
    uint64_t value;
    if (!scan_word(&line, &device_word) || scan_word_equal(device_word, "Total")) {
        return 0;
    }
    if (!parse_device(device_word, &major, &minor) || !scan_word(&line, &kind)) {
        return -EINVAL;
    }
    bool is_read = scan_word_equal(kind, "Read");
    bool is_discard = scan_word_equal(kind, "Discard");
    if (!is_read && !is_discard && !scan_word_equal(kind, "Write")) {
        return 0;
    }
    if (!scan_u64(&line, &value)) {
        return -EINVAL;
    }
    struct cgroup_io *device = cgroup_stats_device(out, major, minor);
    if (device == NULL) {
        return -ENOMEM;
    }
    device->values[is_discard ? discard : read + (is_read ? 0U : 1U)] = (double)value;
    return 0;
}

int cgroup_parse_io_stat(const char *text, struct cgroup_stats *out) {
    int result = 0;
    while (*text != '\0') {
        int r = io_stat_line(text, out);
        result = result == 0 ? r : result;
        text = strchrnul(text, '\n');
        text += *text == '\n' ? 1 : 0;
    }
    return result;
}

int cgroup_parse_blkio(const char *text, enum cgroup_io_value read, enum cgroup_io_value discard,
                       struct cgroup_stats *out) {
    int result = 0;
    while (*text != '\0') {
        int r = blkio_line(text, read, discard, out);
        result = result == 0 ? r : result;
        text = strchrnul(text, '\n');
        text += *text == '\n' ? 1 : 0;
    }
    return result;
}
