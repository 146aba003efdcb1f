#include "collectors/cgroup/parse.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/source/procfs.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

enum { MAX_DEVICES = 1024 };

void cgroup_stats_reset(struct cgroup_stats *stats) {
    for (size_t i = 0; i < CGROUP_N_VALUES; i++) {
        stats->values[i] = NAN;
    }
    stats->n_devices = 0;
}

void cgroup_stats_finish(struct cgroup_stats *stats) {
    free(stats->devices);
    *stats = (struct cgroup_stats){0};
}

/* The row of that device, added without values if there is none; NULL if there are too many. */
static struct cgroup_io *find_device(struct cgroup_stats *stats, uint32_t major, uint32_t minor) {
    for (size_t i = 0; i < stats->n_devices; i++) {
        if (stats->devices[i].major == major && stats->devices[i].minor == minor) {
            return &stats->devices[i];
        }
    }
    if (stats->n_devices == MAX_DEVICES) {
        return NULL;
    }
    ARRAY_GROW(&stats->devices, &stats->cap_devices, stats->n_devices + 1);
    struct cgroup_io *device = &stats->devices[stats->n_devices++];
    *device = (struct cgroup_io){.major = major, .minor = minor};
    for (size_t i = 0; i < CGROUP_IO_N_VALUES; i++) {
        device->values[i] = NAN;
    }
    return device;
}

double cgroup_stats_working_set(const struct cgroup_stats *stats) {
    double set = stats->values[CGROUP_MEMORY_CURRENT] - stats->values[CGROUP_MEMORY_INACTIVE_FILE];
    return set < 0 ? 0 : set; /* the two files are not read at the same moment */
}

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

/* "50000 100000" or "max 100000". */
static int parse_cpu_max(const char *text, struct cgroup_stats *out) {
    double quota;
    uint64_t period;
    if (scan_limit(&text, &quota) < 0 || !scan_u64(&text, &period) || period == 0) {
        return -EINVAL;
    }
    out->values[CGROUP_CPU_QUOTA_USEC] = quota;
    out->values[CGROUP_CPU_PERIOD_USEC] = (double)period;
    return 0;
}

/* "some avg10=0.00 … total=1234" and "full …"; the latter goes to `waiting` + 1. */
static int parse_pressure(const char *text, enum cgroup_value waiting, struct cgroup_stats *out) {
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
        struct cgroup_io *device = find_device(out, major, minor);
        if (device == NULL) {
            return -ENOSPC;
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
    struct cgroup_io *device = find_device(out, major, minor);
    if (device == NULL) {
        return -ENOSPC;
    }
    device->values[is_discard ? discard : read + (is_read ? 0U : 1U)] = (double)value;
    return 0;
}

/* v2: "8:0 rbytes=1 wbytes=2 …". */
static int parse_io_stat(const char *text, struct cgroup_stats *out) {
    int result = 0;
    while (*text != '\0') {
        int r = io_stat_line(text, out);
        result = result == 0 ? r : result;
        text = strchrnul(text, '\n');
        text += *text == '\n' ? 1 : 0;
    }
    return result;
}

/* v1: "8:0 Read 1", "8:0 Write 2", …, "Total 3"; `read` is the value for reads, the next one is for
 * writes. */
static int parse_blkio(const char *text, enum cgroup_io_value read, enum cgroup_io_value discard,
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

#define KEY(text, value) CGROUP_KEY(text, CGROUP_##value, 1)
#define USEC 1e6
#define NSEC 1e9

/* One reader per file, so that the table of files needs no arguments. */
#define SCALAR(function, value, divisor)                                                           \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return cgroup_parse_scalar(text, value, divisor, out);                                     \
    }
#define KEYED(function, ...)                                                                       \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        static const struct cgroup_key keys[] = {__VA_ARGS__};                                     \
        return cgroup_parse_keyed(text, keys, ARRAY_LEN(keys), out);                               \
    }
#define PRESSURE(function, waiting)                                                                \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return parse_pressure(text, waiting, out);                                                 \
    }
#define BLKIO(function, read, discard)                                                             \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return parse_blkio(text, read, discard, out);                                              \
    }

/* Keys stand in the kernel's order, which the parser takes as a hint. */
KEYED(cpu_stat, CGROUP_KEY("usage_usec", CGROUP_CPU_USAGE, USEC),
      CGROUP_KEY("user_usec", CGROUP_CPU_USER, USEC),
      CGROUP_KEY("system_usec", CGROUP_CPU_SYSTEM, USEC), KEY("nr_periods", CPU_PERIODS),
      KEY("nr_throttled", CPU_THROTTLED_PERIODS),
      CGROUP_KEY("throttled_usec", CGROUP_CPU_THROTTLED, USEC), KEY("nr_bursts", CPU_BURSTS),
      CGROUP_KEY("burst_usec", CGROUP_CPU_BURST, USEC))

KEYED(memory_events, KEY("low", MEMORY_EVENTS_LOW), KEY("high", MEMORY_EVENTS_HIGH),
      KEY("max", MEMORY_EVENTS_MAX), KEY("oom", MEMORY_EVENTS_OOM),
      KEY("oom_kill", MEMORY_EVENTS_OOM_KILL), KEY("oom_group_kill", MEMORY_EVENTS_OOM_GROUP_KILL))

KEYED(memory_stat, KEY("anon", MEMORY_ANON), KEY("file", MEMORY_FILE), KEY("kernel", MEMORY_KERNEL),
      KEY("kernel_stack", MEMORY_KERNEL_STACK), KEY("pagetables", MEMORY_PAGETABLES),
      KEY("percpu", MEMORY_PERCPU), KEY("sock", MEMORY_SOCK), KEY("shmem", MEMORY_SHMEM),
      KEY("zswap", MEMORY_ZSWAP), KEY("zswapped", MEMORY_ZSWAPPED),
      KEY("file_mapped", MEMORY_FILE_MAPPED), KEY("file_dirty", MEMORY_FILE_DIRTY),
      KEY("file_writeback", MEMORY_FILE_WRITEBACK), KEY("swapcached", MEMORY_SWAPCACHED),
      KEY("inactive_anon", MEMORY_INACTIVE_ANON), KEY("active_anon", MEMORY_ACTIVE_ANON),
      KEY("inactive_file", MEMORY_INACTIVE_FILE), KEY("active_file", MEMORY_ACTIVE_FILE),
      KEY("unevictable", MEMORY_UNEVICTABLE), KEY("slab_reclaimable", MEMORY_SLAB_RECLAIMABLE),
      KEY("slab_unreclaimable", MEMORY_SLAB_UNRECLAIMABLE),
      KEY("workingset_refault_anon", MEMORY_REFAULT_ANON),
      KEY("workingset_refault_file", MEMORY_REFAULT_FILE), KEY("pgscan", MEMORY_PGSCAN),
      KEY("pgsteal", MEMORY_PGSTEAL), KEY("pgfault", MEMORY_PGFAULT),
      KEY("pgmajfault", MEMORY_PGMAJFAULT))

KEYED(cgroup_stat, KEY("nr_descendants", DESCENDANTS),
      KEY("nr_dying_descendants", DYING_DESCENDANTS))

KEYED(v1_cpu_stat, KEY("nr_periods", CPU_PERIODS), KEY("nr_throttled", CPU_THROTTLED_PERIODS),
      CGROUP_KEY("throttled_time", CGROUP_CPU_THROTTLED, NSEC), KEY("nr_bursts", CPU_BURSTS),
      CGROUP_KEY("burst_time", CGROUP_CPU_BURST, NSEC))

/* Only total_* counts the children, as all of v2 does. */
KEYED(v1_memory_stat, KEY("total_cache", MEMORY_FILE), KEY("total_rss", MEMORY_ANON),
      KEY("total_shmem", MEMORY_SHMEM), KEY("total_mapped_file", MEMORY_FILE_MAPPED),
      KEY("total_dirty", MEMORY_FILE_DIRTY), KEY("total_writeback", MEMORY_FILE_WRITEBACK),
      KEY("total_workingset_refault_anon", MEMORY_REFAULT_ANON),
      KEY("total_workingset_refault_file", MEMORY_REFAULT_FILE),
      KEY("total_swap", MEMORY_SWAP_CURRENT), KEY("total_swapcached", MEMORY_SWAPCACHED),
      KEY("total_pgfault", MEMORY_PGFAULT), KEY("total_pgmajfault", MEMORY_PGMAJFAULT),
      KEY("total_inactive_anon", MEMORY_INACTIVE_ANON),
      KEY("total_active_anon", MEMORY_ACTIVE_ANON),
      KEY("total_inactive_file", MEMORY_INACTIVE_FILE),
      KEY("total_active_file", MEMORY_ACTIVE_FILE), KEY("total_unevictable", MEMORY_UNEVICTABLE))

KEYED(v1_oom_control, KEY("oom_kill", MEMORY_EVENTS_OOM_KILL))

/* In clock ticks, of which there are 100 a second on every machine of today. */
static int v1_cpuacct_stat(const char *text, struct cgroup_stats *out) {
    static const struct cgroup_key keys[] = {
        KEY("user", CPU_USER),
        KEY("system", CPU_SYSTEM),
    };
    int r = cgroup_parse_keyed(text, keys, ARRAY_LEN(keys), out);
    double ticks = (double)sysconf(_SC_CLK_TCK);
    out->values[CGROUP_CPU_USER] /= ticks;
    out->values[CGROUP_CPU_SYSTEM] /= ticks;
    return r;
}

SCALAR(cpu_weight, CGROUP_CPU_WEIGHT, 1)
SCALAR(memory_current, CGROUP_MEMORY_CURRENT, 1)
SCALAR(memory_high, CGROUP_MEMORY_HIGH, 1)
SCALAR(memory_low, CGROUP_MEMORY_LOW, 1)
SCALAR(memory_max, CGROUP_MEMORY_MAX, 1)
SCALAR(memory_min, CGROUP_MEMORY_MIN, 1)
SCALAR(memory_peak, CGROUP_MEMORY_PEAK, 1)
SCALAR(memory_swap_current, CGROUP_MEMORY_SWAP_CURRENT, 1)
SCALAR(memory_swap_max, CGROUP_MEMORY_SWAP_MAX, 1)
SCALAR(pids_current, CGROUP_PIDS_CURRENT, 1)
SCALAR(pids_max, CGROUP_PIDS_MAX, 1)
SCALAR(pids_peak, CGROUP_PIDS_PEAK, 1)
PRESSURE(cpu_pressure, CGROUP_PRESSURE_CPU_WAITING)
PRESSURE(io_pressure, CGROUP_PRESSURE_IO_WAITING)
PRESSURE(memory_pressure, CGROUP_PRESSURE_MEMORY_WAITING)

SCALAR(v1_cpu_period, CGROUP_CPU_PERIOD_USEC, 1)
SCALAR(v1_cpu_quota, CGROUP_CPU_QUOTA_USEC, 1)
SCALAR(v1_cpu_shares, CGROUP_CPU_SHARES, 1)
SCALAR(v1_cpuacct_usage, CGROUP_CPU_USAGE, NSEC)
SCALAR(v1_memory_failcnt, CGROUP_MEMORY_FAILCNT, 1)
SCALAR(v1_memory_kernel, CGROUP_MEMORY_KERNEL, 1)
SCALAR(v1_memory_memsw_max, CGROUP_MEMORY_MEMSW_MAX, 1)
SCALAR(v1_memory_soft_limit, CGROUP_MEMORY_SOFT_LIMIT, 1)
BLKIO(v1_blkio_bytes, CGROUP_IO_READ_BYTES, CGROUP_IO_DISCARDED_BYTES)
BLKIO(v1_blkio_requests, CGROUP_IO_READS, CGROUP_IO_DISCARDS)

#define V2(name, controller, readers, parse)                                                       \
    { name, true, false, controller, readers, NULL, parse }
#define V2_LIMIT(name, controller, readers, parse)                                                 \
    { name, true, true, controller, readers, NULL, parse }
#define V1(name, controller, readers, parse)                                                       \
    { name, false, false, controller, readers, NULL, parse }
#define V1_LIMIT(name, controller, readers, parse)                                                 \
    { name, false, true, controller, readers, NULL, parse }
#define V1_UNLESS(other, name, controller, readers, parse)                                         \
    { name, false, false, controller, readers, other, parse }

const struct cgroup_file cgroup_files[] = {
    V2("cgroup.stat", CGROUP_CORE, CGROUP_FOR_CGROUP, cgroup_stat),
    V2_LIMIT("cpu.max", CGROUP_CPU, CGROUP_FOR_BOTH, parse_cpu_max),
    V2("cpu.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, cpu_pressure),
    V2("cpu.stat", CGROUP_CPUACCT, CGROUP_FOR_ALL, cpu_stat),
    V2_LIMIT("cpu.weight", CGROUP_CPU, CGROUP_FOR_BOTH, cpu_weight),
    V2("io.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, io_pressure),
    V2("io.stat", CGROUP_IO, CGROUP_FOR_ALL, parse_io_stat),
    V2("memory.current", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_current),
    V2("memory.events", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_events),
    V2_LIMIT("memory.high", CGROUP_MEMORY, CGROUP_FOR_CGROUP, memory_high),
    V2_LIMIT("memory.low", CGROUP_MEMORY, CGROUP_FOR_CGROUP, memory_low),
    V2_LIMIT("memory.max", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_max),
    V2_LIMIT("memory.min", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_min),
    V2("memory.peak", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_peak),
    V2("memory.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, memory_pressure),
    V2("memory.stat", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_stat),
    V2("memory.swap.current", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_swap_current),
    V2_LIMIT("memory.swap.max", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_swap_max),
    V2("pids.current", CGROUP_PIDS, CGROUP_FOR_ALL, pids_current),
    V2_LIMIT("pids.max", CGROUP_PIDS, CGROUP_FOR_BOTH, pids_max),
    V2("pids.peak", CGROUP_PIDS, CGROUP_FOR_CGROUP, pids_peak),

    V1("blkio.throttle.io_service_bytes_recursive", CGROUP_IO, CGROUP_FOR_ALL, v1_blkio_bytes),
    V1_UNLESS("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes",
              CGROUP_IO, CGROUP_FOR_ALL, v1_blkio_bytes),
    V1("blkio.throttle.io_serviced_recursive", CGROUP_IO, CGROUP_FOR_BOTH, v1_blkio_requests),
    V1_UNLESS("blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced", CGROUP_IO,
              CGROUP_FOR_BOTH, v1_blkio_requests),
    V1_LIMIT("cpu.cfs_period_us", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_period),
    V1_LIMIT("cpu.cfs_quota_us", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_quota),
    V1_LIMIT("cpu.shares", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_shares),
    V1("cpu.stat", CGROUP_CPU, CGROUP_FOR_ALL, v1_cpu_stat),
    V1("cpuacct.stat", CGROUP_CPUACCT, CGROUP_FOR_ALL, v1_cpuacct_stat),
    V1("cpuacct.usage", CGROUP_CPUACCT, CGROUP_FOR_ALL, v1_cpuacct_usage),
    V1("memory.failcnt", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_failcnt),
    V1("memory.kmem.usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_kernel),
    V1_LIMIT("memory.limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_max),
    V1("memory.max_usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_peak),
    V1_LIMIT("memory.memsw.limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_memsw_max),
    V1("memory.oom_control", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_oom_control),
    V1_LIMIT("memory.soft_limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_soft_limit),
    V1("memory.stat", CGROUP_MEMORY, CGROUP_FOR_ALL, v1_memory_stat),
    V1("memory.usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_current),
    V1("pids.current", CGROUP_PIDS, CGROUP_FOR_ALL, pids_current),
    V1_LIMIT("pids.max", CGROUP_PIDS, CGROUP_FOR_BOTH, pids_max),
};

const size_t cgroup_n_files = ARRAY_LEN(cgroup_files);
_Static_assert(ARRAY_LEN(cgroup_files) <= CGROUP_MAX_FILES, "a mask has a bit per file");
