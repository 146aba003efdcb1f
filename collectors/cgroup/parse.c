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

/* A line "key value" of a file; the value is divided by `divisor`. */
struct cgroup_key {
    const char *key;
    unsigned char len;
    unsigned char value; /* enum cgroup_value */
    double divisor;
};

#define KEY_IN(text, id, per)                                                                      \
    { text, sizeof(text) - 1, CGROUP_##id, per }
#define KEY(text, id) KEY_IN(text, id, 1)
#define USEC 1e6
#define NSEC 1e9
#define TICKS 100 /* a second, on every machine of today */

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

/* Lines "usage_usec 1234". */
static int parse_keyed(const struct cgroup_file *file, const char *text, struct cgroup_stats *out) {
    int result = 0;
    size_t next = 0; /* the key that comes next if the kernel keeps to our order */
    for (const char *line = text; *line != '\0';) {
        size_t len = 0;
        while (line[len] != ' ' && line[len] != '\n' && line[len] != '\0') {
            len++;
        }
        const struct cgroup_key *key = NULL;
        if (line[len] == ' ') {
            key = next < file->n_keys ? find_key(&file->keys[next], 1, line, len) : NULL;
            key = key != NULL ? key : find_key(file->keys, file->n_keys, line, len);
        }
        if (key != NULL) {
            next = (size_t)(key - file->keys) + 1;
            int r = parse_count(line + len + 1, key->divisor, &out->values[key->value]);
            result = result == 0 ? r : result;
        }
        line = scan_next_line(line + len);
    }
    return result;
}

/* "1234", "-1" or "max"; both of the latter are infinite, as is what v1 prints for no limit. */
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
    /* v1's "no limit" is the largest number of pages that fits, so it depends on the page size. */
    *ret_value = negative || value >= UINT64_C(1) << 62 ? INFINITY : (double)value;
    return 0;
}

static int parse_scalar(const struct cgroup_file *file, const char *text,
                        struct cgroup_stats *out) {
    return scan_limit(&text, &out->values[file->value]);
}

static int parse_cpuacct_usage(const struct cgroup_file *file, const char *text,
                               struct cgroup_stats *out) {
    return parse_count(text, NSEC, &out->values[file->value]);
}

/* "50000 100000" or "max 100000". */
static int parse_cpu_max(const struct cgroup_file *file, const char *text,
                         struct cgroup_stats *out) {
    (void)file;
    double quota;
    uint64_t period;
    if (scan_limit(&text, &quota) < 0 || !scan_u64(&text, &period) || period == 0) {
        return -EINVAL;
    }
    out->values[CGROUP_CPU_QUOTA_USEC] = quota;
    out->values[CGROUP_CPU_PERIOD_USEC] = (double)period;
    return 0;
}

/* Lines that are independent of each other. */
static int parse_lines(const struct cgroup_file *file, const char *text, struct cgroup_stats *out) {
    int result = 0;
    for (; *text != '\0'; text = scan_next_line(text)) {
        int r = *text != '\n' ? file->parse_line(file, text, out) : 0;
        result = result == 0 ? r : result;
    }
    return result;
}

/* "some avg10=0.00 … total=1234" and "full …"; the latter goes to the value after the file's. */
static int pressure_line(const struct cgroup_file *file, const char *text,
                         struct cgroup_stats *out) {
    struct pressure_line line;
    int r = pressure_parse(text, &line);
    if (r == 0) {
        out->values[file->value + (line.full ? 1 : 0)] = (double)line.total_usec / USEC;
    }
    return r;
}

static bool scan_u32(const char **cursor, uint32_t *ret_value) {
    uint64_t value = 0;
    const char *at = *cursor;
    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
    }
    if (at == *cursor || value > UINT32_MAX) {
        return false;
    }
    *ret_value = (uint32_t)value;
    *cursor = at;
    return true;
}

/* "8:16", all of it. */
static bool parse_device(struct scan_word word, uint32_t *ret_major, uint32_t *ret_minor) {
    const char *at = word.text;
    return scan_u32(&at, ret_major) && *at++ == ':' && scan_u32(&at, ret_minor) &&
           at == word.text + word.len;
}

static int set_device(struct cgroup_stats *stats, uint32_t major, uint32_t minor,
                      enum cgroup_io_value id, const char *number) {
    uint64_t value;
    if (!scan_u64(&number, &value)) {
        return -EINVAL;
    }
    struct cgroup_io *device = find_device(stats, major, minor);
    if (device == NULL) {
        return -ENOSPC;
    }
    device->values[id] = (double)value;
    return 0;
}

static int io_field(struct scan_word word, uint32_t major, uint32_t minor,
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
        if (word.len > len && memcmp(word.text, names[i], len) == 0) {
            return set_device(out, major, minor, i, word.text + len);
        }
    }
    return 0;
}

/* v2: "8:0 rbytes=1 wbytes=2 …". */
static int io_stat_line(const struct cgroup_file *file, const char *line,
                        struct cgroup_stats *out) {
    (void)file;
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
        int r = parse_device(word, &major, &minor) ? 0 : io_field(word, major, minor, out);
        result = result == 0 ? r : result;
    }
    return result;
}

/* v1: "8:0 Read 1", "8:0 Write 2", …, "Total 3". */
static int blkio_line(const struct cgroup_file *file, const char *line, struct cgroup_stats *out) {
    static const char *const kinds[ARRAY_LEN(file->io_values)] = {"Read", "Write", "Discard"};
    uint32_t major, minor;
    struct scan_word device, kind;
    if (!scan_word(&line, &device) || scan_word_equal(device, "Total")) {
        return 0;
    }
    if (!parse_device(device, &major, &minor) || !scan_word(&line, &kind)) {
        return -EINVAL;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (scan_word_equal(kind, kinds[i])) {
            return set_device(out, major, minor, file->io_values[i], line);
        }
    }
    return 0;
}

/* Keys are in the kernel's order, which the parser takes as a hint. */
static const struct cgroup_key cpu_stat[] = {
    KEY_IN("usage_usec", CPU_USAGE, USEC),
    KEY_IN("user_usec", CPU_USER, USEC),
    KEY_IN("system_usec", CPU_SYSTEM, USEC),
    KEY("nr_periods", CPU_PERIODS),
    KEY("nr_throttled", CPU_THROTTLED_PERIODS),
    KEY_IN("throttled_usec", CPU_THROTTLED, USEC),
    KEY("nr_bursts", CPU_BURSTS),
    KEY_IN("burst_usec", CPU_BURST, USEC),
};

static const struct cgroup_key memory_events[] = {
    KEY("low", MEMORY_EVENTS_LOW),           KEY("high", MEMORY_EVENTS_HIGH),
    KEY("max", MEMORY_EVENTS_MAX),           KEY("oom", MEMORY_EVENTS_OOM),
    KEY("oom_kill", MEMORY_EVENTS_OOM_KILL), KEY("oom_group_kill", MEMORY_EVENTS_OOM_GROUP_KILL),
};

static const struct cgroup_key memory_stat[] = {
    KEY("anon", MEMORY_ANON),
    KEY("file", MEMORY_FILE),
    KEY("kernel", MEMORY_KERNEL),
    KEY("kernel_stack", MEMORY_KERNEL_STACK),
    KEY("pagetables", MEMORY_PAGETABLES),
    KEY("percpu", MEMORY_PERCPU),
    KEY("sock", MEMORY_SOCK),
    KEY("shmem", MEMORY_SHMEM),
    KEY("zswap", MEMORY_ZSWAP),
    KEY("zswapped", MEMORY_ZSWAPPED),
    KEY("file_mapped", MEMORY_FILE_MAPPED),
    KEY("file_dirty", MEMORY_FILE_DIRTY),
    KEY("file_writeback", MEMORY_FILE_WRITEBACK),
    KEY("swapcached", MEMORY_SWAPCACHED),
    KEY("inactive_anon", MEMORY_INACTIVE_ANON),
    KEY("active_anon", MEMORY_ACTIVE_ANON),
    KEY("inactive_file", MEMORY_INACTIVE_FILE),
    KEY("active_file", MEMORY_ACTIVE_FILE),
    KEY("unevictable", MEMORY_UNEVICTABLE),
    KEY("slab_reclaimable", MEMORY_SLAB_RECLAIMABLE),
    KEY("slab_unreclaimable", MEMORY_SLAB_UNRECLAIMABLE),
    KEY("workingset_refault_anon", MEMORY_REFAULT_ANON),
    KEY("workingset_refault_file", MEMORY_REFAULT_FILE),
    KEY("pgscan", MEMORY_PGSCAN),
    KEY("pgsteal", MEMORY_PGSTEAL),
    KEY("pgfault", MEMORY_PGFAULT),
    KEY("pgmajfault", MEMORY_PGMAJFAULT),
};

static const struct cgroup_key cgroup_stat[] = {
    KEY("nr_descendants", DESCENDANTS),
    KEY("nr_dying_descendants", DYING_DESCENDANTS),
};

static const struct cgroup_key v1_cpu_stat[] = {
    KEY("nr_periods", CPU_PERIODS),
    KEY("nr_throttled", CPU_THROTTLED_PERIODS),
    KEY_IN("throttled_time", CPU_THROTTLED, NSEC),
    KEY("nr_bursts", CPU_BURSTS),
    KEY_IN("burst_time", CPU_BURST, NSEC),
};

/* Only total_* counts the children, as all of v2 does. */
static const struct cgroup_key v1_memory_stat[] = {
    KEY("total_cache", MEMORY_FILE),
    KEY("total_rss", MEMORY_ANON),
    KEY("total_shmem", MEMORY_SHMEM),
    KEY("total_mapped_file", MEMORY_FILE_MAPPED),
    KEY("total_dirty", MEMORY_FILE_DIRTY),
    KEY("total_writeback", MEMORY_FILE_WRITEBACK),
    KEY("total_workingset_refault_anon", MEMORY_REFAULT_ANON),
    KEY("total_workingset_refault_file", MEMORY_REFAULT_FILE),
    KEY("total_swap", MEMORY_SWAP_CURRENT),
    KEY("total_swapcached", MEMORY_SWAPCACHED),
    KEY("total_pgfault", MEMORY_PGFAULT),
    KEY("total_pgmajfault", MEMORY_PGMAJFAULT),
    KEY("total_inactive_anon", MEMORY_INACTIVE_ANON),
    KEY("total_active_anon", MEMORY_ACTIVE_ANON),
    KEY("total_inactive_file", MEMORY_INACTIVE_FILE),
    KEY("total_active_file", MEMORY_ACTIVE_FILE),
    KEY("total_unevictable", MEMORY_UNEVICTABLE),
};

static const struct cgroup_key v1_oom_control[] = {
    KEY("oom_kill", MEMORY_EVENTS_OOM_KILL),
};

static const struct cgroup_key v1_cpuacct_stat[] = {
    KEY_IN("user", CPU_USER, TICKS),
    KEY_IN("system", CPU_SYSTEM, TICKS),
};

#define SCALAR(id) .parse = parse_scalar, .value = CGROUP_##id
#define KEYED(table) .parse = parse_keyed, .keys = table, .n_keys = ARRAY_LEN(table)
#define LINES(function) .parse = parse_lines, .parse_line = function
#define BLKIO(reads, writes, discards)                                                             \
    LINES(blkio_line), .io_values = {CGROUP_IO_##reads, CGROUP_IO_##writes, CGROUP_IO_##discards}
#define PRESSURE(id) LINES(pressure_line), .value = CGROUP_PRESSURE_##id##_WAITING

#define V2(name, of, readers, ...)                                                                 \
    { name, true, false, CGROUP_##of, CGROUP_FOR_##readers, NULL, __VA_ARGS__ }
#define V2_LIMIT(name, of, readers, ...)                                                           \
    { name, true, true, CGROUP_##of, CGROUP_FOR_##readers, NULL, __VA_ARGS__ }
#define V1(name, of, readers, ...)                                                                 \
    { name, false, false, CGROUP_##of, CGROUP_FOR_##readers, NULL, __VA_ARGS__ }
#define V1_LIMIT(name, of, readers, ...)                                                           \
    { name, false, true, CGROUP_##of, CGROUP_FOR_##readers, NULL, __VA_ARGS__ }
#define V1_UNLESS(other, name, of, readers, ...)                                                   \
    { name, false, false, CGROUP_##of, CGROUP_FOR_##readers, other, __VA_ARGS__ }

const struct cgroup_file cgroup_files[] = {
    V2("cgroup.stat", CORE, CGROUP, KEYED(cgroup_stat)),
    V2_LIMIT("cpu.max", CPU, BOTH, .parse = parse_cpu_max),
    V2("cpu.pressure", CORE, BOTH, PRESSURE(CPU)),
    V2("cpu.stat", CPUACCT, ALL, KEYED(cpu_stat)),
    V2_LIMIT("cpu.weight", CPU, BOTH, SCALAR(CPU_WEIGHT)),
    V2("io.pressure", CORE, BOTH, PRESSURE(IO)),
    V2("io.stat", IO, ALL, LINES(io_stat_line)),
    V2("memory.current", MEMORY, ALL, SCALAR(MEMORY_CURRENT)),
    V2("memory.events", MEMORY, BOTH, KEYED(memory_events)),
    V2_LIMIT("memory.high", MEMORY, CGROUP, SCALAR(MEMORY_HIGH)),
    V2_LIMIT("memory.low", MEMORY, CGROUP, SCALAR(MEMORY_LOW)),
    V2_LIMIT("memory.max", MEMORY, BOTH, SCALAR(MEMORY_MAX)),
    V2_LIMIT("memory.min", MEMORY, BOTH, SCALAR(MEMORY_MIN)),
    V2("memory.peak", MEMORY, ALL, SCALAR(MEMORY_PEAK)),
    V2("memory.pressure", CORE, BOTH, PRESSURE(MEMORY)),
    V2("memory.stat", MEMORY, ALL, KEYED(memory_stat)),
    V2("memory.swap.current", MEMORY, BOTH, SCALAR(MEMORY_SWAP_CURRENT)),
    V2_LIMIT("memory.swap.max", MEMORY, BOTH, SCALAR(MEMORY_SWAP_MAX)),
    V2("pids.current", PIDS, ALL, SCALAR(PIDS_CURRENT)),
    V2_LIMIT("pids.max", PIDS, BOTH, SCALAR(PIDS_MAX)),
    V2("pids.peak", PIDS, CGROUP, SCALAR(PIDS_PEAK)),

    V1("blkio.throttle.io_service_bytes_recursive", IO, ALL,
       BLKIO(READ_BYTES, WRITTEN_BYTES, DISCARDED_BYTES)),
    V1_UNLESS("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes", IO,
              ALL, BLKIO(READ_BYTES, WRITTEN_BYTES, DISCARDED_BYTES)),
    V1("blkio.throttle.io_serviced_recursive", IO, BOTH, BLKIO(READS, WRITES, DISCARDS)),
    V1_UNLESS("blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced", IO, BOTH,
              BLKIO(READS, WRITES, DISCARDS)),
    V1_LIMIT("cpu.cfs_period_us", CPU, BOTH, SCALAR(CPU_PERIOD_USEC)),
    V1_LIMIT("cpu.cfs_quota_us", CPU, BOTH, SCALAR(CPU_QUOTA_USEC)),
    V1_LIMIT("cpu.shares", CPU, BOTH, SCALAR(CPU_SHARES)),
    V1("cpu.stat", CPU, ALL, KEYED(v1_cpu_stat)),
    V1("cpuacct.stat", CPUACCT, ALL, KEYED(v1_cpuacct_stat)),
    V1("cpuacct.usage", CPUACCT, ALL, .parse = parse_cpuacct_usage, .value = CGROUP_CPU_USAGE),
    V1("memory.failcnt", MEMORY, BOTH, SCALAR(MEMORY_FAILCNT)),
    V1("memory.kmem.usage_in_bytes", MEMORY, BOTH, SCALAR(MEMORY_KERNEL)),
    V1_LIMIT("memory.limit_in_bytes", MEMORY, BOTH, SCALAR(MEMORY_MAX)),
    V1("memory.max_usage_in_bytes", MEMORY, ALL, SCALAR(MEMORY_PEAK)),
    V1_LIMIT("memory.memsw.limit_in_bytes", MEMORY, BOTH, SCALAR(MEMORY_MEMSW_MAX)),
    V1("memory.oom_control", MEMORY, BOTH, KEYED(v1_oom_control)),
    V1_LIMIT("memory.soft_limit_in_bytes", MEMORY, BOTH, SCALAR(MEMORY_SOFT_LIMIT)),
    V1("memory.stat", MEMORY, ALL, KEYED(v1_memory_stat)),
    V1("memory.usage_in_bytes", MEMORY, ALL, SCALAR(MEMORY_CURRENT)),
    V1("pids.current", PIDS, ALL, SCALAR(PIDS_CURRENT)),
    V1_LIMIT("pids.max", PIDS, BOTH, SCALAR(PIDS_MAX)),
};

const size_t cgroup_n_files = ARRAY_LEN(cgroup_files);
_Static_assert(ARRAY_LEN(cgroup_files) <= CGROUP_MAX_FILES, "a mask has a bit per file");
