#include <math.h>
#include <stdlib.h>

#include "collectors/nvml/device.h"
#include "collectors/source/follow.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* What happens between scrapes: integrals and peaks. */

/* The driver keeps its own samples of load and power for some seconds: asking twice a second loses
 * none of them. */
#define STREAM_INTERVAL_NS (500 * CLOCK_NS_PER_MS)
#define STREAM_MAX_GAP_NS (3 * CLOCK_NS_PER_SEC)

enum { MAX_SAMPLES = 1 << 16 };

/* What is followed, from the driver's samples where it keeps some. */
struct quantity {
    unsigned kind; /* of the driver's samples */
    unsigned (*read)(const struct nvml_device *device, double *ret_value);
    double per; /* the value is the driver's / per */
    double max;

    bool no_stream;
    bool never;
    unsigned long long last_seen_usec;
    struct nvml_sample *samples;
    unsigned cap_samples;

    struct follow follow;
};

struct sampler {
    struct quantity load;
    struct quantity power;
    struct follow memory;
    bool no_memory;
    bool has_energy_counter;
    int64_t next_stream_ns;
};

static unsigned read_load(const struct nvml_device *device, double *ret_value) {
    struct nvml_utilization utilization = {0};
    unsigned code = NVML_CALL(device->library->utilization, device->handle, &utilization);
    *ret_value = utilization.gpu;
    return code;
}

static unsigned read_power(const struct nvml_device *device, double *ret_value) {
    unsigned milliwatts = 0;
    unsigned code = NVML_CALL(device->library->power, device->handle, &milliwatts);
    *ret_value = milliwatts;
    return code;
}

static void add(struct nvml_device *device, struct quantity *quantity, double raw, int64_t at_ns,
                int64_t now_ns, int64_t max_gap_ns) {
    double value = raw / quantity->per;
    bool possible = value >= 0 && value <= quantity->max;
    device->n_impossible += !possible;
    follow_add(&quantity->follow, at_ns, now_ns, possible ? value : NAN, max_gap_ns);
}

static bool make_room(struct quantity *quantity, unsigned n) {
    if (n > MAX_SAMPLES) {
        return false;
    }
    quantity->samples = mem_resize(quantity->samples, n, sizeof(*quantity->samples));
    quantity->cap_samples = n;
    return true;
}

/* Asks for what came after the latest sample seen; the driver returns how much room that may take.
 */
static unsigned read_stream(struct nvml_device *device, struct quantity *quantity,
                            unsigned *ret_type, unsigned *ret_n) {
    unsigned code = NVML_CODE_INSUFFICIENT_SIZE;
    for (int turn = 0; turn < 3 && code == NVML_CODE_INSUFFICIENT_SIZE; turn++) {
        unsigned n = quantity->cap_samples;
        code = NVML_CALL(device->library->samples, device->handle, quantity->kind,
                         quantity->last_seen_usec, ret_type, &n, quantity->samples);
        bool only_counted = code == NVML_CODE_SUCCESS && quantity->samples == NULL;
        if (only_counted || code == NVML_CODE_INSUFFICIENT_SIZE) {
            bool again = n > 0 && make_room(quantity, n);
            code = again ? NVML_CODE_INSUFFICIENT_SIZE : NVML_CODE_NO_DATA;
        }
        *ret_n = n < quantity->cap_samples ? n : quantity->cap_samples;
    }
    return code;
}

static void sample_stream(struct nvml_device *device, struct quantity *quantity, int64_t now_ns) {
    unsigned type = NVML_IS_UNSIGNED, n = 0;
    unsigned code = read_stream(device, quantity, &type, &n);
    if (!nvml_device_check(device, code, &quantity->no_stream)) {
        return;
    }
    /* Samples older than the collector are not counted. */
    bool is_first = quantity->last_seen_usec == 0;
    for (unsigned i = is_first && n > 0 ? n - 1 : 0; i < n; i++) {
        const struct nvml_sample *sample = &quantity->samples[i];
        if (sample->timestamp_usec > quantity->last_seen_usec) {
            quantity->last_seen_usec = sample->timestamp_usec;
            add(device, quantity, nvml_read_number(type, &sample->value),
                (int64_t)sample->timestamp_usec * 1000, now_ns, STREAM_MAX_GAP_NS);
        }
    }
}

static void sample_quantity(struct nvml_device *device, struct quantity *quantity,
                            bool stream_is_due, int64_t now_ns) {
    if (device->state == NVML_GOOD && !quantity->no_stream && stream_is_due) {
        sample_stream(device, quantity, now_ns);
    }
    if (device->state != NVML_GOOD || !quantity->no_stream || quantity->never) {
        return;
    }
    double value;
    unsigned code = quantity->read(device, &value);
    if (nvml_device_check(device, code, &quantity->never)) {
        add(device, quantity, value, now_ns, now_ns, device->config->max_gap_ns);
    } else {
        follow_add(&quantity->follow, now_ns, now_ns, NAN, 0);
    }
}

static void sample_memory(struct nvml_device *device, struct sampler *sampler, int64_t now_ns) {
    double values[NVML_MEMORY_VALUES];
    if (sampler->no_memory || device->state != NVML_GOOD) {
        return;
    }
    unsigned code = nvml_read_memory(device->library, device->handle, values);
    bool good = nvml_device_check(device, code, &sampler->no_memory);
    if (good && values[0] <= NVML_MAX_BYTES) {
        follow_add(&sampler->memory, now_ns, now_ns, values[0], 0);
    }
}

static void sampler_sample(struct nvml_device *device, void *state, int64_t now_ns) {
    struct sampler *sampler = state;
    bool stream_is_due = now_ns >= sampler->next_stream_ns;
    if (stream_is_due) {
        sampler->next_stream_ns = now_ns + STREAM_INTERVAL_NS;
    }
    sample_quantity(device, &sampler->load, stream_is_due, now_ns);
    sample_quantity(device, &sampler->power, stream_is_due, now_ns);
    sample_memory(device, sampler, now_ns);
    if (sampler->load.follow.latest > 0) {
        device->busy_ns = now_ns;
    }
}

static void sampler_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct sampler *sampler = state;
    int64_t now_ns = clock_monotonic_ns();
    const struct metric_desc *energy = &gpu_descs[GPU_ENERGY_JOULES];
    const struct {
        struct follow *follow;
        struct follow_metrics metrics;
    } rows[] = {
        {&sampler->load.follow,
         {NULL, &gpu_descs[GPU_BUSY_SECONDS], &gpu_descs[GPU_UTILIZATION_PEAK]}},
        {&sampler->power.follow,
         {NULL, sampler->has_energy_counter ? NULL : energy, &gpu_descs[GPU_POWER_PEAK]}},
        {&sampler->memory, {NULL, NULL, &gpu_descs[GPU_MEMORY_USED_PEAK]}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        follow_emit(rows[i].follow, &rows[i].metrics, now_ns, device->labels, out);
    }
}

static void sampler_open(void *state, const struct nvml_device *device) {
    struct sampler *sampler = state;
    sampler->load = (struct quantity){
        .kind = NVML_SAMPLES_OF_UTILIZATION, .read = read_load, .per = 100, .max = 1};
    sampler->power = (struct quantity){
        .kind = NVML_SAMPLES_OF_POWER, .read = read_power, .per = 1e3, .max = NVML_MAX_WATTS};
    follow_init(&sampler->load.follow, device->config->peak_window_ns);
    follow_init(&sampler->power.follow, device->config->peak_window_ns);
    follow_init(&sampler->memory, device->config->peak_window_ns);
    unsigned long long millijoules;
    unsigned code = NVML_CALL(device->library->energy, device->handle, &millijoules);
    sampler->has_energy_counter = nvml_verdict(code) != NVML_NEVER;
    if (device->config->integrated) { /* read from rails and files */
        sampler->power.no_stream = sampler->power.never = sampler->no_memory = true;
    }
}

static void sampler_close(void *state) {
    struct sampler *sampler = state;
    free(sampler->load.samples);
    free(sampler->power.samples);
}

const struct nvml_part nvml_sampler_part = {
    .integrated = true,
    .state_size = sizeof(struct sampler),
    .open = sampler_open,
    .sample = sampler_sample,
    .collect = sampler_collect,
    .close = sampler_close,
};
