#include "profiler/run/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "collectors/source/energy.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/core/utf8.h"
#include "exporter/engine/worker.h"
#include "exporter/metrics/parse.h"
#include "exporter/settings/settings.h"

/* A metric, its key, group, type, unit and help; then what most rows leave out. */
#define ROW(metric_, key_, group_, type_, unit_, help_, ...)                                       \
    {                                                                                              \
        .metric = (metric_), .key = (key_), .group = RUN_METRICS_##group_, .type = RECORD_##type_, \
        .unit = (unit_), .help = (help_), __VA_ARGS__                                              \
    }

#define BOARD_ENERGY "Energy that the board has used, or its GPUs if only they are measured"
#define BOARD_POWER "Power that the board draws, or its GPUs if only they are measured"
#define GPU_MEMORY_USED "gpu_memory_used_bytes"
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
    ROW(GPU_MEMORY_USED, "gpu.memory_bytes", GPU, GAUGE, "B", "Memory of the GPU in use",
        .label = "gpu"),
    ROW(GPU_MEMORY_USED, RECORD_NEW_GPU_MEMORY RECORD_OF_MACHINE, GPU, GAUGE, "B",
        "Growth of the GPU memory of all processes since before the application's start",
        .use = RUN_PROBE_NEW),
    ROW("gpu_power_watts", "gpu.power_watts", GPU, GAUGE, "W", "Power that the GPU draws",
        .label = "gpu"),
    ROW("gpu_power_watts", "power.watts", POWER, GAUGE, "W", BOARD_POWER,
        .unless = "jetson_power_total_watts", .use = RUN_PROBE_SUM),
    ROW("gpu_process_memory_bytes", RECORD_NEW_GPU_MEMORY, GPU, GAUGE, "B",
        "GPU memory that the application has allocated", .label = "pid", .use = RUN_PROBE_OWN),
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

void run_probe_key(const struct run_probe_row *row, const char *value, struct buf *out) {
    buf_add_str(out, row->key);
    bool first_gpu = strcmp(value, "0") == 0 && strcmp(row->label, "gpu") == 0;
    if (row->use == RUN_PROBE_EACH && value[0] != '\0' && !first_gpu) {
        buf_printf(out, "{%s=\"", row->as_label != NULL ? row->as_label : row->label);
        utf8_add_escaped(out, value, true);
        buf_add_str(out, "\"}");
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
    bool fresh;       /* has run since the last sample */
    double gpu_bytes; /* in use before the start of the application; NAN: unknown */
    struct exposition_part *part;
};

struct run_probe {
    struct config *config;
    struct energy *energy;
    struct probe_worker workers[MAX_WORKERS];
    size_t n_workers;
    bool seen[64];             /* by row of run_probe_rows: the metric has occurred */
    struct exposition_doc doc; /* the samples of the metric being read, in `text` */
    struct buf text;
    struct run_app *app; /* whose values are being written; NULL: none */
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

static int start_worker(struct run_probe *probe, struct loop *loop,
                        const struct collector *collector, size_t source, int64_t interval_ns,
                        struct error *err) {
    const struct settings *settings = probe->config->settings;
    struct probe_worker *worker = &probe->workers[probe->n_workers];
    int64_t min_ns = sources[source].min_interval_ns;
    int64_t spread_ns = MIN(interval_ns * sources[source].every, OFTEN_NS);
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
        .slow = min_ns > 0,
        .interval_ns = MAX(MAX(interval_ns, spread_ns), min_ns),
        .gpu_bytes = NAN,
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
    struct run_probe *probe = *ret_probe = mem_zalloc(1, sizeof(*probe));
    probe->energy = energy_create();
    probe->config = config_ref(config);
    return start_workers(probe, loop, collectors, interval_ms * CLOCK_NS_PER_MS, err);
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
    exposition_doc_finish(&probe->doc);
    buf_finish(&probe->text);
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

/* Reads the samples of a metric into `doc`. */
static void read_block(struct run_probe *probe, const struct exposition_block *block) {
    static const struct exposition_limits limits = {
        .max_families = 1,
        .max_samples = 1 << 16,
        .max_labels = 64,
        .max_name_len = 1 << 10,
        .max_value_len = 1 << 16,
    };
    buf_reset(&probe->text);
    exposition_doc_reset(&probe->doc);
    for (size_t i = 0; i < block->n_pieces; i++) {
        buf_add(&probe->text, block->pieces[i].iov_base, block->pieces[i].iov_len);
    }
    exposition_parse(probe->text.data, probe->text.len, &limits, &probe->doc, NULL);
}

static void put(const struct run_probe_row *row, const char *label, double value,
                struct run_record *record) {
    struct buf key CLEANUP_BUF = {0};
    run_probe_key(row, label, &key);
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

static double plus(double sum, double value) {
    return isnan(sum) ? value : sum + value;
}

void run_probe_mark(struct run_probe *probe) {
    for (size_t i = 0; i < probe->n_workers; i++) {
        struct probe_worker *worker = &probe->workers[i];
        const struct exposition_block *block =
            worker->part != NULL ? find_block(worker->part, GPU_MEMORY_USED) : NULL;
        probe->doc.n_samples = 0;
        if (block != NULL) {
            read_block(probe, block);
        }
        worker->gpu_bytes = NAN;
        for (size_t k = 0; k < probe->doc.n_samples; k++) {
            worker->gpu_bytes = plus(worker->gpu_bytes, probe->doc.samples[k].value);
        }
    }
}

/* Whether a sample counts for a row. */
static bool counts(const struct run_probe *probe, const struct run_probe_row *row,
                   const char *label) {
    return row->only != NULL           ? strstr(label, row->only) != NULL
           : row->use == RUN_PROBE_OWN ? probe->app->kind->owns(probe->app, atoi(label))
                                       : true;
}

/* Writes the values of one metric; the largest is shown in the progress line. */
static void write_block(const struct probe_worker *worker, const struct run_probe_row *row,
                        const struct exposition_block *block, struct run_record *record,
                        struct run_live *live) {
    struct run_probe *probe = worker->probe;
    double sum = NAN, max = NAN;
    read_block(probe, block);
    for (size_t i = 0; i < probe->doc.n_samples; i++) {
        const struct exposition_sample *sample = &probe->doc.samples[i];
        double value = sample->value;
        const char *label =
            row->label != NULL ? exposition_doc_label(&probe->doc, sample, row->label) : "";
        if (isnan(value) || !counts(probe, row, label)) {
            continue;
        }
        sum = plus(sum, value);
        max = fmax(max, value);
        if (row->use == RUN_PROBE_EACH) {
            put(row, label, value, record);
        }
    }
    if (row->use == RUN_PROBE_NEW) {
        sum = isnan(sum - worker->gpu_bytes) ? NAN : fmax(0, sum - worker->gpu_bytes);
    }
    if (row->use != RUN_PROBE_EACH) {
        put(row, "", row->use == RUN_PROBE_MAX ? max : sum, record);
    }
    show_live(row->key, row->use == RUN_PROBE_SUM ? sum : max, live);
}

/* Whether a row has no value: nothing runs, or a better metric for the same key has occurred. */
static bool is_left_out(const struct run_probe *probe, const struct run_probe_row *row) {
    if (probe->app == NULL && (row->use == RUN_PROBE_OWN || row->use == RUN_PROBE_NEW)) {
        return true;
    }
    for (size_t i = 0; row->unless != NULL && i < run_probe_n_rows; i++) {
        if (probe->seen[i] && strcmp(run_probe_rows[i].metric, row->unless) == 0) {
            return true;
        }
    }
    return false;
}

void run_probe_write(struct run_probe *probe, int64_t metrics, struct run_app *app,
                     struct run_record *record, struct run_live *live) {
    probe->app = app;
    for (size_t i = 0; i < probe->n_workers; i++) {
        struct probe_worker *worker = &probe->workers[i];
        for (size_t r = 0; worker->fresh && r < run_probe_n_rows; r++) {
            const struct run_probe_row *row = &run_probe_rows[r];
            const struct exposition_block *block =
                probe->seen[r] && (row->group & metrics) != 0 && !is_left_out(probe, row)
                    ? find_block(worker->part, row->metric)
                    : NULL;
            if (block != NULL) {
                write_block(worker, row, block, record, live);
            }
        }
        worker->fresh = false;
    }
}

/* ---- the machine ---- */

/* The labels of the first sample of a metric. */
static void describe(struct run_probe *probe, const char *metric, const char *key,
                     struct run_record *record) {
    for (size_t i = 0; i < probe->n_workers; i++) {
        const struct exposition_part *part = probe->workers[i].part;
        const struct exposition_block *block = part != NULL ? find_block(part, metric) : NULL;
        if (block == NULL) {
            continue;
        }
        read_block(probe, block);
        size_t n = probe->doc.n_samples > 0 ? probe->doc.samples[0].n_labels : 0;
        json_open(&record->line, key, '{');
        for (size_t j = 0; j < n; j++) {
            run_record_text(record, probe->doc.labels[j].name, probe->doc.labels[j].value);
        }
        json_close(&record->line, '}');
        return;
    }
}

void run_probe_describe(struct run_probe *probe, struct run_record *record) {
    describe(probe, "jetson_info", "board", record);
    describe(probe, "jetson_power_mode", "power_mode", record);
    describe(probe, "gpu_info", "gpu", record);
}
