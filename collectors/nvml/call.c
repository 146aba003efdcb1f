#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectors/nvml/device.h"
#include "collectors/nvml/read.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

/* The calls that answer one number or a few. */

#define GPU(metric) &gpu_descs[GPU_##metric]
#define NVIDIA(metric) &nvml_descs[NVML_NVIDIA_##metric]
#define AT(member) offsetof(struct nvml_library, member)
#define CALL(reader, where, which, factor, divisor, most, ...)                                     \
    {                                                                                              \
        .read = reader, .function = where, .kind = which, .times = factor, .per = divisor,         \
        .max = most, .outputs = {                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define LOAD(member, metric) CALL(nvml_read_first, AT(member), 0, 1, 100, 1, {metric})
#define CLOCK(member, kind, metric) CALL(nvml_read_kind, AT(member), kind, 1e6, 1, 1e11, {metric})
#define POWER(member, metric) CALL(nvml_read_plain, AT(member), 0, 1, 1e3, NVML_MAX_WATTS, {metric})
#define PLAIN(member, max, metric) CALL(nvml_read_plain, AT(member), 0, 1, 1, max, {metric})
#define FAN(fan, text) CALL(nvml_read_fan, 0, fan, 1, 100, 3, {GPU(FAN_SPEED), {{"fan", text}}})
#define THRESHOLD(kind, text)                                                                      \
    CALL(nvml_read_kind, AT(threshold), kind, 1, 1, 300,                                           \
         {GPU(TEMPERATURE_THRESHOLD), {{"threshold", text}}})
#define VIOLATION(policy, text)                                                                    \
    CALL(nvml_read_violation, 0, policy, 1, 1e9, INFINITY,                                         \
         {NVIDIA(THROTTLE_SECONDS), {{"reason", text}}})
#define ECC(type, text, which, counter_text)                                                       \
    {                                                                                              \
        .read = nvml_read_ecc, .kind = type, .counter = which, .times = 1, .per = 1,               \
        .max = INFINITY, .outputs = {                                                              \
            {NVIDIA(ECC_ERRORS), {{"kind", text}, {"counter", counter_text}}}                      \
        }                                                                                          \
    }
#define RETIRED(cause, text)                                                                       \
    CALL(nvml_read_retired, 0, cause, 1, 1, INFINITY, {NVIDIA(RETIRED_PAGES), {{"cause", text}}})
#define THROTTLE(reason)                                                                           \
    {                                                                                              \
        NVIDIA(THROTTLE_ACTIVE), {                                                                 \
            { "reason", reason }                                                                   \
        }                                                                                          \
    }

static const struct nvml_call calls[] = {
    CALL(nvml_read_utilization, 0, 0, 1, 100, 1, {GPU(UTILIZATION)}, {GPU(MEMORY_UTILIZATION)}),
    LOAD(encoder, GPU(ENCODER_UTILIZATION)),
    LOAD(decoder, GPU(DECODER_UTILIZATION)),
    LOAD(jpeg, GPU(JPEG_UTILIZATION)),
    LOAD(ofa, GPU(OFA_UTILIZATION)),
    CALL(nvml_read_memory, 0, 0, 1, 1, NVML_MAX_BYTES, {GPU(MEMORY_USED)}, {GPU(MEMORY_FREE)},
         {GPU(MEMORY_TOTAL)}, {GPU(MEMORY_RESERVED)}),
    CALL(nvml_read_bar1, 0, 0, 1, 1, NVML_MAX_BYTES, {GPU(BAR1_MEMORY_USED)},
         {GPU(BAR1_MEMORY_TOTAL)}),
    POWER(power, GPU(POWER)),
    POWER(power_limit, GPU(POWER_LIMIT)),
    POWER(power_default, GPU(POWER_LIMIT_DEFAULT)),
    POWER(power_enforced, GPU(POWER_LIMIT_ENFORCED)),
    CALL(nvml_read_pair, AT(power_range), 0, 1, 1e3, NVML_MAX_WATTS, {GPU(POWER_LIMIT_MIN)},
         {GPU(POWER_LIMIT_MAX)}),
    CALL(nvml_read_energy, 0, 0, 1, 1e3, INFINITY, {GPU(ENERGY_JOULES)}),
    CALL(nvml_read_temperature, 0, 0, 1, 1, 300, {GPU(TEMPERATURE)}),
    CALL(nvml_read_memory_temperature, 0, 0, 1, 1, 300, {GPU(MEMORY_TEMPERATURE)}),
    THRESHOLD(NVML_THRESHOLD_SHUTDOWN, "shutdown"),
    THRESHOLD(NVML_THRESHOLD_SLOWDOWN, "slowdown"),
    THRESHOLD(NVML_THRESHOLD_MEMORY_MAX, "memory_max"),
    THRESHOLD(NVML_THRESHOLD_GPU_MAX, "gpu_max"),
    CLOCK(clock, NVML_CLOCK_OF_GRAPHICS, GPU(FREQUENCY)),
    CLOCK(clock, NVML_CLOCK_OF_SM, GPU(SM_FREQUENCY)),
    CLOCK(clock, NVML_CLOCK_OF_MEMORY, GPU(MEMORY_FREQUENCY)),
    CLOCK(clock, NVML_CLOCK_OF_VIDEO, GPU(VIDEO_FREQUENCY)),
    CLOCK(clock_max, NVML_CLOCK_OF_GRAPHICS, GPU(FREQUENCY_MAX)),
    CLOCK(clock_max, NVML_CLOCK_OF_SM, GPU(SM_FREQUENCY_MAX)),
    CLOCK(clock_max, NVML_CLOCK_OF_MEMORY, GPU(MEMORY_FREQUENCY_MAX)),
    CLOCK(clock_max, NVML_CLOCK_OF_VIDEO, GPU(VIDEO_FREQUENCY_MAX)),
    FAN(0, "0"),
    FAN(1, "1"),
    FAN(2, "2"),
    FAN(3, "3"),
    CALL(nvml_read_pstate, AT(pstate), 0, 1, 1, 15, {GPU(PERFORMANCE_STATE)}),
    PLAIN(pcie_generation, 16, GPU(PCIE_LINK_GENERATION)),
    PLAIN(pcie_generation_max, 16, GPU(PCIE_LINK_GENERATION_MAX)),
    PLAIN(pcie_width, 32, GPU(PCIE_LINK_LANES)),
    PLAIN(pcie_width_max, 32, GPU(PCIE_LINK_LANES_MAX)),
    PLAIN(pcie_replays, INFINITY, GPU(PCIE_REPLAYS)),
    CALL(nvml_read_kind, AT(pcie_throughput), 0, 1e3, 1, 1e12, {GPU(PCIE_TRANSMIT)}),
    CALL(nvml_read_kind, AT(pcie_throughput), 1, 1e3, 1, 1e12, {GPU(PCIE_RECEIVE)}),
    CALL(nvml_read_throttle, 0, 0, 1, 1, 1, THROTTLE("gpu_idle"),
         THROTTLE("applications_clocks_setting"), THROTTLE("sw_power_cap"), THROTTLE("hw_slowdown"),
         THROTTLE("sync_boost"), THROTTLE("sw_thermal_slowdown"), THROTTLE("hw_thermal_slowdown"),
         THROTTLE("hw_power_brake_slowdown"), THROTTLE("display_clock_setting")),
    VIOLATION(NVML_POLICY_POWER, "power"),
    VIOLATION(NVML_POLICY_THERMAL, "thermal"),
    VIOLATION(NVML_POLICY_SYNC_BOOST, "sync_boost"),
    VIOLATION(NVML_POLICY_BOARD_LIMIT, "board_limit"),
    VIOLATION(NVML_POLICY_LOW_UTILIZATION, "low_utilization"),
    VIOLATION(NVML_POLICY_RELIABILITY, "reliability"),
    VIOLATION(NVML_POLICY_APP_CLOCKS, "app_clocks"),
    VIOLATION(NVML_POLICY_BASE_CLOCKS, "base_clocks"),
    CALL(nvml_read_first, AT(ecc_mode), 0, 1, 1, 1, {NVIDIA(ECC_ENABLED)}),
    ECC(0, "corrected", 0, "volatile"),
    ECC(1, "uncorrected", 0, "volatile"),
    ECC(0, "corrected", 1, "aggregate"),
    ECC(1, "uncorrected", 1, "aggregate"),
    RETIRED(0, "single_bit"),
    RETIRED(1, "double_bit"),
    PLAIN(retired_pending, 1, NVIDIA(RETIRED_PAGES_PENDING)),
    CALL(nvml_read_remapped, 0, 0, 1, 1, INFINITY, {NVIDIA(REMAPPED_ROWS), {{"kind", "corrected"}}},
         {NVIDIA(REMAPPED_ROWS), {{"kind", "uncorrected"}}}, {NVIDIA(REMAPPED_ROWS_PENDING)},
         {NVIDIA(REMAPPED_ROWS_FAILED)}),
    PLAIN(compute_mode, 3, NVIDIA(COMPUTE_MODE)),
    PLAIN(persistence, 1, NVIDIA(PERSISTENCE_MODE)),
    CALL(nvml_read_first, AT(mig_mode), 0, 1, 1, 1, {NVIDIA(MIG_ENABLED)}),
};

struct call_state {
    bool never[ARRAY_LEN(calls)]; /* this GPU has no answer to that */
    struct labels *labels[ARRAY_LEN(calls)][NVML_MAX_VALUES];
};

static void *call_open(struct nvml_device *device) {
    struct call_state *state = mem_zalloc(1, sizeof(*state));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        bool is_slow = calls[i].function == AT(pcie_throughput);
        bool is_load = calls[i].read == nvml_read_utilization;
        state->never[i] = (is_slow && !device->config->pcie_throughput) ||
                          (device->config->integrated && !is_load);
    }
    return state;
}

/* The labels of an output, rendered when it first has a value; NULL: those of the GPU. */
static const struct labels *output_labels(const struct nvml_device *device,
                                          const struct nvml_output *output,
                                          struct labels **rendered) {
    const struct label *extra = output->extra;
    if (extra[0].name == NULL || *rendered != NULL) {
        return *rendered;
    }
    struct labels *first CLEANUP_LABELS =
        labels_with(device->labels, extra[0].name, extra[0].value);
    *rendered =
        extra[1].name != NULL ? labels_with(first, extra[1].name, extra[1].value) : TAKE(first);
    return *rendered;
}

static void collect_call(struct nvml_device *device, struct call_state *state, size_t index,
                         struct snapshot *out) {
    const struct nvml_call *call = &calls[index];
    double values[NVML_MAX_VALUES];
    unsigned code = call->read(device->library, device->handle, call, values);
    if (!nvml_device_check(device, code, &state->never[index])) {
        return;
    }
    /* The load of a memory that is not the GPU's own is none. */
    size_t n = device->config->integrated ? 1 : NVML_MAX_VALUES;
    for (size_t i = 0; i < n && call->outputs[i].desc != NULL; i++) {
        const struct labels *labels =
            output_labels(device, &call->outputs[i], &state->labels[index][i]);
        nvml_device_add(device, out, call->outputs[i].desc, labels,
                        values[i] * call->times / call->per, call->max);
    }
}

static void call_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct call_state *calls_state = state;
    for (size_t i = 0; i < ARRAY_LEN(calls) && device->state == NVML_GOOD; i++) {
        if (!calls_state->never[i]) {
            collect_call(device, calls_state, i, out);
        }
    }
}

static void call_close(void *state) {
    struct call_state *calls_state = state;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        for (size_t j = 0; j < NVML_MAX_VALUES; j++) {
            labels_destroy(calls_state->labels[i][j]);
        }
    }
    free(calls_state);
}

const struct nvml_part nvml_call_part = {
    .integrated = true,
    .open = call_open,
    .collect = call_collect,
    .close = call_close,
};
