#include "profiler/run/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/source/energy.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/engine/worker.h"
#include "exporter/settings/settings.h"

/* A metric, its key and group in the record, type, unit and help; then the fields that most rows
 * leave out. */
#define ROW(metric_, key_, group_, type_, unit_, help_, ...)                                       \
    {                                                                                              \
        .metric = (metric_), .key = (key_), .group = RUN_METRICS_##group_, .type = RECORD_##type_, \
        .unit = (unit_), .help = (help_), __VA_ARGS__                                              \
    }

#define BOARD_ENERGY "Energy that the board has used, or its GPUs if only they are measured"
#define BOARD_POWER "Power that the board draws, or its GPUs if only they are measured"
#define THROTTLED "1 while the hardware slows itself down"
#define ZONE_TEMPERATURE "Temperature by thermal zone"

/* If a metric has several rows, each makes a value of it. Sorted by metric. */
const struct run_probe_row run_probe_rows[] = {
    ROW("gpu_busy_seconds_total", "gpu.busy_seconds", GPU, COUNTER, "s",
        "Time in which the GPU was busy", .label = "gpu"),
    ROW("gpu_energy_joules_total", "gpu.energy_joules", GPU, COUNTER, "J",
        "Energy that the GPU has used", .label = "gpu"),
    ROW("gpu_energy_joules_total", "energy.joules", POWER, COUNTER, "J", BOARD_ENERGY,
        .unless = "jetson_energy_joules_total", .use = RUN_PROBE_SUM),
    ROW("gpu_frequency_hertz", "gpu.frequency_hertz", GPU, GAUGE, "Hz", "Clock of the GPU",
        .label = "gpu"),
    ROW("gpu_memory_used_bytes", "gpu.memory_bytes", GPU, GAUGE, "B", "Memory of the GPU in use",
        .label = "gpu"),
    ROW("gpu_power_watts", "gpu.power_watts", GPU, GAUGE, "W", "Power that the GPU draws",
        .label = "gpu"),
    ROW("gpu_power_watts", "power.watts", POWER, GAUGE, "W", BOARD_POWER,
        .unless = "jetson_power_total_watts", .use = RUN_PROBE_SUM),
    ROW("gpu_temperature_celsius", "gpu.temperature_celsius", GPU, GAUGE, "°C",
        "Temperature of the GPU", .label = "gpu"),
    ROW("gpu_utilization_ratio", "gpu.utilization_ratio", GPU, GAUGE, "",
        "Part of the time in which the GPU was busy", .label = "gpu"),
    ROW("jetson_cpu_frequency_hertz", "system.cpu_frequency_hertz", SYSTEM, GAUGE, "Hz",
        "Clock by CPU core", .label = "cpu"),
    ROW("jetson_emc_utilization_ratio", "memory.bandwidth_ratio", SYSTEM, GAUGE, "",
        "Part of the memory's bandwidth in use"),
    ROW("jetson_energy_joules_total", "energy.joules", POWER, COUNTER, "J", BOARD_ENERGY),
    ROW("jetson_power_total_watts", "power.watts", POWER, GAUGE, "W", BOARD_POWER),
    ROW("jetson_rail_energy_joules_total", "energy.rail_joules", POWER, COUNTER, "J",
        "Energy by power rail", .label = "rail"),
    ROW("jetson_rail_power_watts", "power.rail_watts", POWER, GAUGE, "W", "Power by power rail",
        .label = "rail"),
    ROW("jetson_temperature_celsius", "temperature.celsius", SYSTEM, GAUGE, "°C", ZONE_TEMPERATURE,
        .label = "zone"),
    ROW("jetson_throttle_alert", "throttled.ratio", SYSTEM, GAUGE, "", THROTTLED,
        .use = RUN_PROBE_MAX),
    ROW("node_load1", "system.load1", SYSTEM, GAUGE, "", "Load of the machine over a minute"),
    ROW("node_memory_MemAvailable_bytes", "system.memory_available_bytes", SYSTEM, GAUGE, "B",
        "Memory that the machine has left"),
    ROW("node_thermal_zone_temp", "temperature.celsius", SYSTEM, GAUGE, "°C", ZONE_TEMPERATURE,
        .label = "type", .as_label = "zone", .unless = "jetson_temperature_celsius"),
    ROW("nvidia_throttle_active", "throttled.ratio", SYSTEM, GAUGE, "", THROTTLED,
        .label = "reason", .unless = "jetson_throttle_alert", .only = "slowdown",
        .use = RUN_PROBE_MAX),
};

const size_t run_probe_n_rows = ARRAY_LEN(run_probe_rows);

const char *run_probe_label(const char *labels, size_t len, const char *name, size_t *ret_len) {
    size_t name_len = strlen(name);
    const char *end = labels + len;
    while (labels < end) {
        const char *equals = memchr(labels, '=', (size_t)(end - labels));
        if (equals == NULL || end - equals < 3) {
            return NULL;
        }
        const char *value = equals + 2;
        const char *at = value;
        while (at < end && *at != '"') {
            at += *at == '\\' ? 2 : 1;
        }
        if (at >= end) {
            return NULL;
        }
        if ((size_t)(equals - labels) == name_len && memcmp(labels, name, name_len) == 0) {
            *ret_len = (size_t)(at - value);
            return value;
        }
        labels = at + 1 + (at + 1 < end ? 1 : 0); /* the quote and the comma */
    }
    return NULL;
}

void run_probe_key(const struct run_probe_row *row, const char *labels, size_t len,
                   struct buf *out) {
    buf_add_str(out, row->key);
    size_t value_len = 0;
    const char *value = row->label != NULL && row->use == RUN_PROBE_EACH
                            ? run_probe_label(labels, len, row->label, &value_len)
                            : NULL;
    bool first_gpu = value_len == 1 && *value == '0' && strcmp(row->label, "gpu") == 0;
    if (value != NULL && !first_gpu) {
        buf_printf(out, "{%s=\"%.*s\"}", row->as_label != NULL ? row->as_label : row->label,
                   (int)value_len, value);
    }
}

enum { MAX_WORKERS = 3, STOP_MS = 500 };

/* The collectors and how often they run. Expensive ones whose values change slowly do not run at
 * every sample. The Jetson collector reads some eighty files; it integrates power and load itself.
 */
static const struct {
    const char *name;
    int64_t min_interval_ns;
    int64_t every; /* runs every n-th sample, but at least five times a second */
} sources[MAX_WORKERS] = {
    {"host", CLOCK_NS_PER_SEC, 1},
    {"jetson", 0, 2},
    {"nvml", 0, 1},
};

#define OFTEN_NS (CLOCK_NS_PER_SEC / 5)

struct probe_worker {
    struct run_probe *probe;
    bool slow; /* does not run at every sample */
    struct engine_worker *worker;
    int64_t interval_ns;
    int64_t due_ns;
    bool busy;
    bool fresh; /* has run since the last sample */
    struct exposition_part *part;
};

struct run_probe {
    struct config *config;
    struct energy *energy;
    struct probe_worker workers[MAX_WORKERS];
    size_t n_workers;
    bool seen[64]; /* by row of run_probe_rows: the metric has occurred */
};

static int compare_block(const void *name, const void *block) {
    return strcmp(name, ((const struct exposition_block *)block)->name);
}

static const struct exposition_block *find_block(const struct exposition_part *part,
                                                 const char *name) {
    size_t n_blocks;
    const struct exposition_block *blocks = exposition_part_blocks(part, &n_blocks);
    return n_blocks > 0 ? bsearch(name, blocks, n_blocks, sizeof(*blocks), compare_block) : NULL;
}

static void note_seen(struct run_probe *probe, const struct exposition_part *part) {
    for (size_t row = 0; row < run_probe_n_rows; row++) {
        if (!probe->seen[row]) {
            const struct exposition_block *block = find_block(part, run_probe_rows[row].metric);
            probe->seen[row] = block != NULL && block->n_samples > 0;
        }
    }
}

static void finished(struct engine_worker *engine_worker, void *context) {
    struct probe_worker *worker = context;
    struct engine_result *result = engine_worker_result(engine_worker);
    worker->busy = false;
    exposition_part_unref(TAKE(worker->part));
    worker->part = result->part != NULL ? exposition_part_ref(result->part) : NULL;
    worker->fresh = worker->part != NULL;
    if (worker->fresh) {
        note_seen(worker->probe, worker->part);
    }
}

/* The interval between two runs of a collector. */
static int64_t interval_of(size_t source, int64_t interval_ns) {
    int64_t min_ns = sources[source].min_interval_ns;
    int64_t spread_ns = interval_ns * sources[source].every;
    spread_ns = spread_ns < OFTEN_NS ? spread_ns : OFTEN_NS;
    int64_t wanted_ns = interval_ns > spread_ns ? interval_ns : spread_ns;
    return wanted_ns > min_ns ? wanted_ns : min_ns;
}

static int start_worker(struct run_probe *probe, struct loop *loop,
                        const struct collector *collector, size_t source, int64_t interval_ns,
                        struct error *err) {
    const struct settings *settings = probe->config->settings;
    struct probe_worker *worker = &probe->workers[probe->n_workers];
    struct engine_worker_config config = {
        .collector = collector,
        .env =
            {
                .procfs = settings_string(settings, "path.procfs"),
                .sysfs = settings_string(settings, "path.sysfs"),
                .cgroupfs = settings_string(settings, "path.cgroupfs"),
                .rootfs = settings_string(settings, "path.rootfs"),
                .settings = settings,
                .energy = probe->energy,
            },
        .sample_interval_ns = interval_ns,
        .reprobe_interval_ns = 10 * CLOCK_NS_PER_SEC,
        .loop = loop,
        .finished = finished,
        .context = worker,
    };
    *worker = (struct probe_worker){
        .probe = probe,
        .slow = sources[source].min_interval_ns > 0,
        .interval_ns = interval_of(source, interval_ns),
    };
    int r = engine_worker_create(&config, &worker->worker, err);
    probe->n_workers += r == 0 ? 1 : 0;
    return r;
}

static int start_workers(struct run_probe *probe, struct loop *loop,
                         const struct collector *const *collectors, int64_t interval_ns,
                         struct error *err) {
    int r = 0;
    for (; r == 0 && *collectors != NULL; collectors++) {
        struct buf option CLEANUP_BUF = {0};
        buf_printf(&option, "collector.%s", (*collectors)->name);
        for (size_t i = 0; r == 0 && i < MAX_WORKERS; i++) {
            if (strcmp(sources[i].name, (*collectors)->name) == 0 &&
                settings_bool(probe->config->settings, buf_str(&option))) {
                r = start_worker(probe, loop, *collectors, i, interval_ns, err);
            }
        }
    }
    return r;
}

int run_probe_create(struct loop *loop, struct config *config,
                     const struct collector *const *collectors, int64_t interval_ms,
                     struct run_probe **ret_probe, struct error *err) {
    struct run_probe *probe = mem_zalloc(1, sizeof(*probe));
    probe->energy = energy_create();
    probe->config = config_ref(config);
    int r = start_workers(probe, loop, collectors, interval_ms * CLOCK_NS_PER_MS, err);
    if (r < 0) {
        run_probe_destroy(probe);
        return r;
    }
    *ret_probe = probe;
    return 0;
}

bool run_probe_destroy(struct run_probe *probe) {
    if (probe == NULL) {
        return true;
    }
    bool clean = true;
    for (size_t i = 0; i < probe->n_workers; i++) {
        engine_worker_quit(probe->workers[i].worker);
    }
    for (size_t i = 0; i < probe->n_workers; i++) {
        clean = engine_worker_destroy(probe->workers[i].worker, STOP_MS) && clean;
    }
    if (!clean) {
        return false;
    }
    for (size_t i = 0; i < probe->n_workers; i++) {
        exposition_part_unref(probe->workers[i].part);
    }
    energy_destroy(probe->energy);
    config_unref(probe->config);
    free(probe);
    return true;
}

void run_probe_start(struct run_probe *probe, bool all, int64_t now_ns) {
    for (size_t i = 0; i < probe->n_workers; i++) {
        struct probe_worker *worker = &probe->workers[i];
        bool due = now_ns >= worker->due_ns || (all && !worker->slow);
        enum engine_worker_state state = engine_worker_state(worker->worker);
        bool there = state == ENGINE_WORKER_OPENING || state == ENGINE_WORKER_OPEN;
        if (there && due && !worker->busy) {
            worker->busy = true;
            worker->due_ns = now_ns + worker->interval_ns - CLOCK_NS_PER_MS;
            engine_worker_start(worker->worker);
        }
    }
}

bool run_probe_is_busy(const struct run_probe *probe) {
    bool busy = false;
    for (size_t i = 0; i < probe->n_workers; i++) {
        busy = busy || probe->workers[i].busy;
    }
    return busy;
}

/* ---- samples ---- */

/* One sample line: `name{labels} value` or `name value`. */
struct line {
    const char *labels;
    size_t len;
    double value;
};

/* Takes the next line; label values may contain braces and blanks. */
static bool next_line(const char **at, const char *end, struct line *ret_line) {
    const char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (newline == NULL) {
        return false;
    }
    const char *blank = memrchr(*at, ' ', (size_t)(newline - *at));
    const char *brace = blank != NULL ? memchr(*at, '{', (size_t)(blank - *at)) : NULL;
    ret_line->labels = brace != NULL ? brace + 1 : "";
    ret_line->len = brace != NULL ? (size_t)(blank - 1 - brace - 1) : 0;
    if (blank == NULL ||
        number_parse(blank + 1, (size_t)(newline - blank - 1), &ret_line->value) < 0) {
        ret_line->value = NAN;
    }
    *at = newline + 1;
    return true;
}

static bool matches(const struct run_probe_row *row, const struct line *line) {
    size_t len;
    const char *value =
        row->only != NULL ? run_probe_label(line->labels, line->len, row->label, &len) : NULL;
    return row->only == NULL ||
           (value != NULL && memmem(value, len, row->only, strlen(row->only)) != NULL);
}

static void put(const struct run_probe_row *row, const struct line *line, double value,
                struct run_record *record) {
    struct buf key CLEANUP_BUF = {0};
    run_probe_key(row, line->labels, line->len, &key);
    struct run_series series = {
        .key = buf_str(&key),
        .type = row->type,
        .unit = row->unit,
        .help = row->help,
    };
    run_record_value(record, &series, value);
}

static void show_live(const char *key, double value, struct run_live *live) {
    if (strcmp(key, "gpu.utilization_ratio") == 0) {
        live->gpu_ratio = value;
    } else if (strcmp(key, "power.watts") == 0) {
        live->watts = value;
    } else if (strcmp(key, "temperature.celsius") == 0) {
        live->celsius = value;
    }
}

/* Writes the values of one metric; the largest is shown in the progress line. */
static void write_block(const struct run_probe_row *row, const struct exposition_block *block,
                        struct run_record *record, struct run_live *live) {
    double sum = NAN, max = NAN;
    for (size_t i = 0; i < block->n_pieces; i++) {
        const char *at = block->pieces[i].iov_base;
        const char *end = at + block->pieces[i].iov_len;
        struct line line;
        while (next_line(&at, end, &line)) {
            if (isnan(line.value) || !matches(row, &line)) {
                continue;
            }
            sum = isnan(sum) ? line.value : sum + line.value;
            max = isnan(max) || line.value > max ? line.value : max;
            if (row->use == RUN_PROBE_EACH) {
                put(row, &line, line.value, record);
            }
        }
    }
    static const struct line bare = {.labels = ""};
    if (row->use != RUN_PROBE_EACH) {
        put(row, &bare, row->use == RUN_PROBE_SUM ? sum : max, record);
    }
    show_live(row->key, row->use == RUN_PROBE_SUM ? sum : max, live);
}

/* Whether a better metric for the same key has occurred. */
static bool is_superseded(const struct run_probe *probe, const struct run_probe_row *row) {
    for (size_t i = 0; row->unless != NULL && i < run_probe_n_rows; i++) {
        if (probe->seen[i] && strcmp(run_probe_rows[i].metric, row->unless) == 0) {
            return true;
        }
    }
    return false;
}

void run_probe_write(struct run_probe *probe, int64_t metrics, struct run_record *record,
                     struct run_live *live) {
    for (size_t i = 0; i < probe->n_workers; i++) {
        struct probe_worker *worker = &probe->workers[i];
        for (size_t r = 0; worker->fresh && r < run_probe_n_rows; r++) {
            const struct run_probe_row *row = &run_probe_rows[r];
            const struct exposition_block *block =
                probe->seen[r] && (row->group & metrics) != 0 && !is_superseded(probe, row)
                    ? find_block(worker->part, row->metric)
                    : NULL;
            if (block != NULL) {
                write_block(row, block, record, live);
            }
        }
        worker->fresh = false;
    }
}

/* ---- the machine ---- */

/* Writes `name="value",…` as members, with the escapes of the exposition format undone. */
static void write_labels(struct run_record *record, const char *at, const char *end) {
    while (at < end) {
        struct buf name CLEANUP_BUF = {0}, value CLEANUP_BUF = {0};
        const char *equals = memchr(at, '=', (size_t)(end - at));
        if (equals == NULL || end - equals < 3) {
            return;
        }
        buf_add(&name, at, (size_t)(equals - at));
        for (at = equals + 2; at < end && *at != '"'; at++) {
            bool escaped = *at == '\\' && at + 1 < end;
            at += escaped;
            buf_add_char(&value, escaped && *at == 'n' ? '\n' : *at);
        }
        run_record_text(record, buf_str(&name), buf_str(&value));
        at += 2; /* the quote and the comma */
    }
}

/* The labels of the first sample of a metric. */
static void describe(const struct run_probe *probe, const char *metric, const char *key,
                     struct run_record *record) {
    for (size_t i = 0; i < probe->n_workers; i++) {
        const struct exposition_part *part = probe->workers[i].part;
        const struct exposition_block *block = part != NULL ? find_block(part, metric) : NULL;
        const char *at = block != NULL && block->n_pieces > 0 ? block->pieces[0].iov_base : NULL;
        struct line line;
        if (at == NULL || !next_line(&at, at + block->pieces[0].iov_len, &line) || line.len == 0) {
            continue;
        }
        json_open(&record->line, key, '{');
        write_labels(record, line.labels, line.labels + line.len);
        json_close(&record->line, '}');
        return;
    }
}

void run_probe_describe(struct run_probe *probe, struct run_record *record) {
    describe(probe, "jetson_info", "board", record);
    describe(probe, "jetson_power_mode", "power_mode", record);
    describe(probe, "gpu_info", "gpu", record);
}
