#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectors/nvml/device.h"
#include "collectors/nvml/read.h"
#include "collectors/source/integral.h"
#include "collectors/source/peak.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* What happens between scrapes: integrals and peaks. */

/* The driver keeps its own samples of load and power for some seconds: asking twice a second loses
 * none of them. */
#define STREAM_INTERVAL_NS (500 * CLOCK_NS_PER_MS)
#define STREAM_MAX_GAP_NS (3 * CLOCK_NS_PER_SEC)

/* A GPU that may power down is left alone for this long once it has been idle for that long. */
#define REST_NS (10 * CLOCK_NS_PER_SEC)
#define REST_AFTER_NS (5 * CLOCK_NS_PER_SEC)

enum { MAX_SAMPLES = 1 << 16 };

/* One quantity that is followed, from the driver's samples where it keeps some. */
struct follow {
    unsigned kind; /* of the driver's samples */
    nvml_read_fn *read;
    const struct nvml_call *call;
    double per;
    double max;

    bool no_stream;
    bool never;
    unsigned long long last_seen_usec;
    struct nvml_sample *samples;
    unsigned cap_samples;

    bool seen;
    double latest;
    struct integral integral;
    struct peak peak;
};

struct sampler {
    struct follow load;
    struct follow power;
    struct peak memory;
    bool no_memory;
    bool has_energy_counter;
    int64_t next_stream_ns;
    int64_t rest_until_ns;
    int64_t busy_at_ns; /* when it was last seen at work */
};

static const struct nvml_call power_call = {.function = offsetof(struct nvml_library, power)};

static void follow_add(struct nvml_device *device, struct follow *follow, double raw, int64_t at_ns,
                       int64_t now_ns, int64_t max_gap_ns) {
    double value = raw / follow->per;
    if (!(value >= 0 && value <= follow->max)) {
        device->n_impossible++;
        integral_break(&follow->integral);
        return;
    }
    follow->seen = true;
    follow->latest = value;
    integral_add(&follow->integral, at_ns, value, max_gap_ns);
    peak_add(&follow->peak, now_ns, value);
}

static bool make_room(struct follow *follow, unsigned n) {
    if (n > MAX_SAMPLES) {
        return false;
    }
    follow->samples = mem_resize(follow->samples, n, sizeof(*follow->samples));
    follow->cap_samples = n;
    return true;
}

/* Asks for what came after the latest sample seen; the driver says how much room that may take. */
static unsigned read_stream(struct nvml_device *device, struct follow *follow, unsigned *ret_type,
                            unsigned *ret_n) {
    if (device->library->samples == NULL) {
        return NVML_CODE_FUNCTION_NOT_FOUND;
    }
    unsigned code = NVML_CODE_INSUFFICIENT_SIZE;
    for (int turn = 0; turn < 3 && code == NVML_CODE_INSUFFICIENT_SIZE; turn++) {
        unsigned n = follow->cap_samples;
        code = device->library->samples(device->handle, follow->kind, follow->last_seen_usec,
                                        ret_type, &n, follow->samples);
        bool only_counted = code == NVML_CODE_SUCCESS && follow->samples == NULL;
        if (only_counted || code == NVML_CODE_INSUFFICIENT_SIZE) {
            code = n > 0 && make_room(follow, n) ? NVML_CODE_INSUFFICIENT_SIZE : NVML_CODE_NO_DATA;
        }
        *ret_n = n < follow->cap_samples ? n : follow->cap_samples;
    }
    return code;
}

static void follow_stream(struct nvml_device *device, struct follow *follow, int64_t now_ns) {
    unsigned type = NVML_IS_UNSIGNED, n = 0;
    unsigned code = read_stream(device, follow, &type, &n);
    if (!nvml_device_check(device, code, &follow->no_stream)) {
        return;
    }
    /* What was before the first look is not ours to count. */
    bool is_first = follow->last_seen_usec == 0;
    for (unsigned i = is_first && n > 0 ? n - 1 : 0; i < n; i++) {
        const struct nvml_sample *sample = &follow->samples[i];
        if (sample->timestamp_usec <= follow->last_seen_usec) {
            continue;
        }
        follow->last_seen_usec = sample->timestamp_usec;
        follow_add(device, follow, nvml_read_number(type, &sample->value),
                   (int64_t)sample->timestamp_usec * 1000, now_ns, STREAM_MAX_GAP_NS);
    }
}

static void follow_poll(struct nvml_device *device, struct follow *follow, int64_t now_ns) {
    double values[NVML_MAX_VALUES];
    unsigned code = follow->read(device->library, device->handle, follow->call, values);
    if (nvml_device_check(device, code, &follow->never)) {
        follow_add(device, follow, values[0], now_ns, now_ns, device->config->max_gap_ns);
    } else {
        integral_break(&follow->integral);
    }
}

static void follow_sample(struct nvml_device *device, struct follow *follow, bool stream_is_due,
                          int64_t now_ns) {
    if (device->state != NVML_GOOD) {
        return;
    }
    if (!follow->no_stream && stream_is_due) {
        follow_stream(device, follow, now_ns);
    }
    if (follow->no_stream && !follow->never) {
        follow_poll(device, follow, now_ns);
    }
}

static void sample_memory(struct nvml_device *device, struct sampler *sampler, int64_t now_ns) {
    double values[NVML_MAX_VALUES];
    if (sampler->no_memory || device->state != NVML_GOOD) {
        return;
    }
    unsigned code = nvml_read_memory(device->library, device->handle, NULL, values);
    bool good = nvml_device_check(device, code, &sampler->no_memory);
    if (good && values[0] <= NVML_MAX_BYTES) {
        peak_add(&sampler->memory, now_ns, values[0]);
    }
}

static void sampler_sample(struct nvml_device *device, void *state, int64_t now_ns) {
    struct sampler *sampler = state;
    if (now_ns < sampler->rest_until_ns) {
        return;
    }
    bool stream_is_due = now_ns >= sampler->next_stream_ns;
    if (stream_is_due) {
        sampler->next_stream_ns = now_ns + STREAM_INTERVAL_NS;
    }
    follow_sample(device, &sampler->load, stream_is_due, now_ns);
    follow_sample(device, &sampler->power, stream_is_due, now_ns);
    sample_memory(device, sampler, now_ns);
    if (sampler->busy_at_ns == 0 || sampler->load.latest > 0) {
        sampler->busy_at_ns = now_ns;
    }
    if (device->runtime_status != NULL && now_ns - sampler->busy_at_ns >= REST_AFTER_NS) {
        sampler->rest_until_ns = now_ns + REST_NS;
    }
}

static void add_peak(struct nvml_device *device, struct peak *peak, const struct metric_desc *desc,
                     struct snapshot *out) {
    double value;
    if (peak_get(peak, clock_monotonic_ns(), &value)) {
        snapshot_add(out, desc, device->labels, value);
    }
}

static void sampler_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct sampler *sampler = state;
    if (sampler->load.seen) {
        snapshot_add(out, &gpu_descs[GPU_BUSY_SECONDS], device->labels,
                     sampler->load.integral.total);
    }
    if (sampler->power.seen && !sampler->has_energy_counter) {
        snapshot_add(out, &gpu_descs[GPU_ENERGY_JOULES], device->labels,
                     sampler->power.integral.total);
    }
    add_peak(device, &sampler->load.peak, &gpu_descs[GPU_UTILIZATION_PEAK], out);
    add_peak(device, &sampler->power.peak, &gpu_descs[GPU_POWER_PEAK], out);
    add_peak(device, &sampler->memory, &gpu_descs[GPU_MEMORY_USED_PEAK], out);
}

static void *sampler_open(struct nvml_device *device) {
    struct sampler *sampler = mem_zalloc(1, sizeof(*sampler));
    sampler->load = (struct follow){
        .kind = NVML_SAMPLES_OF_UTILIZATION,
        .read = nvml_read_utilization,
        .per = 100,
        .max = 1,
    };
    sampler->power = (struct follow){
        .kind = NVML_SAMPLES_OF_POWER,
        .read = nvml_read_plain,
        .call = &power_call,
        .per = 1e3,
        .max = NVML_MAX_WATTS,
    };
    peak_init(&sampler->load.peak, device->config->peak_window_ns);
    peak_init(&sampler->power.peak, device->config->peak_window_ns);
    peak_init(&sampler->memory, device->config->peak_window_ns);
    double energy[NVML_MAX_VALUES];
    unsigned code = nvml_read_energy(device->library, device->handle, NULL, energy);
    sampler->has_energy_counter = nvml_verdict(code) != NVML_NEVER;
    if (device->config->integrated) { /* rails and files tell these */
        sampler->power.no_stream = sampler->power.never = sampler->no_memory = true;
    }
    return sampler;
}

static void sampler_close(void *state) {
    struct sampler *sampler = state;
    free(sampler->load.samples);
    free(sampler->power.samples);
    free(sampler);
}

const struct nvml_part nvml_sampler_part = {
    .integrated = true,
    .open = sampler_open,
    .sample = sampler_sample,
    .collect = sampler_collect,
    .close = sampler_close,
};
