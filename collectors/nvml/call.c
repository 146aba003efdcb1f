#include <math.h>
#include <string.h>

#include "collectors/nvml/device.h"

/* The calls that answer one number or a few. */

enum { MAX_VALUES = 9 };

struct call;

/* Asks the driver once: puts the answer's numbers into `values`, NAN for what it does not know, and
 * returns its code. */
typedef unsigned read_fn(const struct nvml_device *device, const struct call *call, double *values);

/* What one number of the answer is. */
struct output {
    const struct metric_desc *desc;
    struct label extra[2]; /* labels besides the GPU's */
};

/* One call and what comes of it. */
struct call {
    read_fn *read;
    size_t function; /* where in struct nvml_library, for the readers that serve several */
    unsigned kind;
    unsigned counter;
    double times; /* the metric is the answer * times / per */
    double per;
    double max; /* in the metric's unit; what lies above cannot be true */
    struct output outputs[MAX_VALUES];
};

/* ---- readers ---- */

double nvml_read_number(unsigned type, const union nvml_value *value) {
    switch (type) {
    case NVML_IS_DOUBLE:
        return value->as_double;
    case NVML_IS_UNSIGNED:
        return value->as_unsigned;
    case NVML_IS_UNSIGNED_LONG:
        return (double)value->as_unsigned_long;
    case NVML_IS_UNSIGNED_LONG_LONG:
        return (double)value->as_unsigned_long_long;
    case NVML_IS_SIGNED_LONG_LONG:
        return (double)value->as_signed_long_long;
    case NVML_IS_SIGNED:
        return value->as_signed;
    default:
        return NAN;
    }
}

typedef unsigned plain_fn(struct nvml_handle *device, unsigned *value);
typedef unsigned kind_fn(struct nvml_handle *device, unsigned kind, unsigned *value);
typedef unsigned pair_fn(struct nvml_handle *device, unsigned *first, unsigned *second);

/* The pointer that lies at `where`; NULL if the driver lacks the call. */
#define FUNCTION(type, library, where)                                                             \
    ({                                                                                             \
        type *function_;                                                                           \
        memcpy(&function_, (const char *)(library) + (where), sizeof(function_));                  \
        function_;                                                                                 \
    })

static unsigned read_plain(const struct nvml_device *device, const struct call *call,
                           double *values) {
    plain_fn *function = FUNCTION(plain_fn, device->library, call->function);
    unsigned value = 0;
    unsigned code = NVML_CALL(function, device->handle, &value);
    values[0] = value;
    return code;
}

static unsigned read_kind(const struct nvml_device *device, const struct call *call,
                          double *values) {
    kind_fn *function = FUNCTION(kind_fn, device->library, call->function);
    unsigned value = 0;
    unsigned code = NVML_CALL(function, device->handle, call->kind, &value);
    values[0] = value;
    return code;
}

static unsigned read_pair(const struct nvml_device *device, const struct call *call,
                          double *values) {
    pair_fn *function = FUNCTION(pair_fn, device->library, call->function);
    unsigned first = 0, second = 0;
    unsigned code = NVML_CALL(function, device->handle, &first, &second);
    values[0] = first;
    values[1] = second;
    return code;
}

static unsigned read_utilization(const struct nvml_device *device, const struct call *call,
                                 double *values) {
    (void)call;
    struct nvml_utilization utilization = {0};
    unsigned code = NVML_CALL(device->library->utilization, device->handle, &utilization);
    values[0] = utilization.gpu;
    values[1] = utilization.memory;
    return code;
}

/* An integrated GPU has no memory of its own: a total of 0. A used part beyond the total is passed
 * on as infinite, which no limit lets through. */
unsigned nvml_read_memory(const struct nvml_library *library, struct nvml_handle *handle,
                          double values[static NVML_MEMORY_VALUES]) {
    struct nvml_memory_v2 memory = {.version = NVML_VERSIONED(struct nvml_memory_v2, 2)};
    unsigned code = NVML_CALL(library->memory_v2, handle, &memory);
    bool has_reserved = code == NVML_CODE_SUCCESS;
    if (nvml_verdict(code) == NVML_NEVER && library->memory != NULL) {
        struct nvml_memory old = {0};
        code = library->memory(handle, &old);
        memory.total = old.total;
        memory.free = old.free;
        memory.used = old.used;
    }
    if (code == NVML_CODE_SUCCESS && memory.total == 0) {
        return NVML_CODE_NOT_SUPPORTED;
    }
    values[0] = memory.used <= memory.total ? (double)memory.used : INFINITY;
    values[1] = memory.free <= memory.total ? (double)memory.free : INFINITY;
    values[2] = (double)memory.total;
    values[3] = has_reserved ? (double)memory.reserved : NAN;
    return code;
}

static unsigned read_memory(const struct nvml_device *device, const struct call *call,
                            double *values) {
    (void)call;
    return nvml_read_memory(device->library, device->handle, values);
}

static unsigned read_bar1(const struct nvml_device *device, const struct call *call,
                          double *values) {
    (void)call;
    struct nvml_bar1_memory memory = {0};
    unsigned code = NVML_CALL(device->library->bar1, device->handle, &memory);
    values[0] = (double)memory.used;
    values[1] = (double)memory.total;
    return code;
}

static unsigned read_energy(const struct nvml_device *device, const struct call *call,
                            double *values) {
    (void)call;
    unsigned long long millijoules = 0;
    unsigned code = NVML_CALL(device->library->energy, device->handle, &millijoules);
    values[0] = (double)millijoules;
    return code;
}

/* Drivers from the 13th series on want the call with a versioned struct. */
static unsigned read_temperature(const struct nvml_device *device, const struct call *call,
                                 double *values) {
    (void)call;
    struct nvml_temperature temperature = {.version = NVML_VERSIONED(struct nvml_temperature, 1)};
    unsigned code = NVML_CALL(device->library->temperature_v, device->handle, &temperature);
    if (code == NVML_CODE_SUCCESS) {
        values[0] = temperature.celsius;
        return code;
    }
    unsigned celsius = 0;
    code = NVML_CALL(device->library->temperature, device->handle, 0, &celsius);
    values[0] = (int)celsius;
    return code;
}

static unsigned read_memory_temperature(const struct nvml_device *device, const struct call *call,
                                        double *values) {
    (void)call;
    struct nvml_field field = {.field = NVML_FIELD_MEMORY_TEMPERATURE};
    unsigned code = NVML_CALL(device->library->fields, device->handle, 1, &field);
    values[0] = nvml_read_number(field.type, &field.value);
    return code != NVML_CODE_SUCCESS ? code : field.code;
}

static unsigned read_fan(const struct nvml_device *device, const struct call *call,
                         double *values) {
    unsigned percent = 0;
    unsigned code = NVML_CODE_FUNCTION_NOT_FOUND;
    if (device->library->fan_v2 != NULL) {
        code = device->library->fan_v2(device->handle, call->kind, &percent);
    } else if (call->kind == 0) {
        code = NVML_CALL(device->library->fan, device->handle, &percent);
    }
    values[0] = percent;
    return code;
}

static unsigned read_pstate(const struct nvml_device *device, const struct call *call,
                            double *values) {
    unsigned code = read_plain(device, call, values);
    values[0] = values[0] == NVML_UNKNOWN_PSTATE ? NAN : values[0];
    return code;
}

/* One bit per reason; the outputs are in the order of the bits. */
static unsigned read_throttle(const struct nvml_device *device, const struct call *call,
                              double *values) {
    (void)call;
    unsigned long long reasons = 0;
    unsigned code = NVML_CALL(device->library->throttle_reasons, device->handle, &reasons);
    for (size_t i = 0; i < MAX_VALUES; i++) {
        values[i] = reasons >> i & 1;
    }
    return code;
}

static unsigned read_violation(const struct nvml_device *device, const struct call *call,
                               double *values) {
    struct nvml_violation time = {0};
    unsigned code = NVML_CALL(device->library->violation, device->handle, call->kind, &time);
    values[0] = (double)time.violation_ns;
    return code;
}

static unsigned read_ecc(const struct nvml_device *device, const struct call *call,
                         double *values) {
    unsigned long long n = 0;
    unsigned code =
        NVML_CALL(device->library->ecc_errors, device->handle, call->kind, call->counter, &n);
    values[0] = (double)n;
    return code;
}

/* Without room for addresses the driver returns how many there are. */
static unsigned read_retired(const struct nvml_device *device, const struct call *call,
                             double *values) {
    unsigned n = 0;
    unsigned code = NVML_CALL(device->library->retired_pages, device->handle, call->kind, &n, NULL);
    values[0] = n;
    return code == NVML_CODE_INSUFFICIENT_SIZE ? NVML_CODE_SUCCESS : code;
}

static unsigned read_remapped(const struct nvml_device *device, const struct call *call,
                              double *values) {
    (void)call;
    unsigned rows[4] = {0};
    unsigned code = NVML_CALL(device->library->remapped_rows, device->handle, &rows[0], &rows[1],
                              &rows[2], &rows[3]);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        values[i] = rows[i];
    }
    return code;
}

/* ---- the calls ---- */

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
#define LOAD(member, metric) CALL(read_pair, AT(member), 0, 1, 100, 1, {metric})
#define CLOCK(member, kind, metric) CALL(read_kind, AT(member), kind, 1e6, 1, 1e11, {metric})
#define POWER(member, metric) CALL(read_plain, AT(member), 0, 1, 1e3, NVML_MAX_WATTS, {metric})
#define PLAIN(member, max, metric) CALL(read_plain, AT(member), 0, 1, 1, max, {metric})
#define FAN(fan, text) CALL(read_fan, 0, fan, 1, 100, 3, {GPU(FAN_SPEED), {{"fan", text}}})
#define THRESHOLD(kind, text)                                                                      \
    CALL(read_kind, AT(threshold), kind, 1, 1, 300,                                                \
         {GPU(TEMPERATURE_THRESHOLD), {{"threshold", text}}})
#define VIOLATION(policy, text)                                                                    \
    CALL(read_violation, 0, policy, 1, 1e9, INFINITY,                                              \
         {NVIDIA(THROTTLE_SECONDS), {{"reason", text}}})
#define ECC(type, text, which, counter_text)                                                       \
    {                                                                                              \
        .read = read_ecc, .kind = type, .counter = which, .times = 1, .per = 1, .max = INFINITY,   \
        .outputs = {                                                                               \
            {NVIDIA(ECC_ERRORS), {{"kind", text}, {"counter", counter_text}}}                      \
        }                                                                                          \
    }
#define RETIRED(cause, text)                                                                       \
    CALL(read_retired, 0, cause, 1, 1, INFINITY, {NVIDIA(RETIRED_PAGES), {{"cause", text}}})
#define THROTTLE(reason)                                                                           \
    {                                                                                              \
        NVIDIA(THROTTLE_ACTIVE), {                                                                 \
            { "reason", reason }                                                                   \
        }                                                                                          \
    }

static const struct call calls[] = {
    CALL(read_utilization, 0, 0, 1, 100, 1, {GPU(UTILIZATION)}, {GPU(MEMORY_UTILIZATION)}),
    LOAD(encoder, GPU(ENCODER_UTILIZATION)),
    LOAD(decoder, GPU(DECODER_UTILIZATION)),
    LOAD(jpeg, GPU(JPEG_UTILIZATION)),
    LOAD(ofa, GPU(OFA_UTILIZATION)),
    CALL(read_memory, 0, 0, 1, 1, NVML_MAX_BYTES, {GPU(MEMORY_USED)}, {GPU(MEMORY_FREE)},
         {GPU(MEMORY_TOTAL)}, {GPU(MEMORY_RESERVED)}),
    CALL(read_bar1, 0, 0, 1, 1, NVML_MAX_BYTES, {GPU(BAR1_MEMORY_USED)}, {GPU(BAR1_MEMORY_TOTAL)}),
    POWER(power, GPU(POWER)),
    POWER(power_limit, GPU(POWER_LIMIT)),
    POWER(power_default, GPU(POWER_LIMIT_DEFAULT)),
    POWER(power_enforced, GPU(POWER_LIMIT_ENFORCED)),
    CALL(read_pair, AT(power_range), 0, 1, 1e3, NVML_MAX_WATTS, {GPU(POWER_LIMIT_MIN)},
         {GPU(POWER_LIMIT_MAX)}),
    CALL(read_energy, 0, 0, 1, 1e3, INFINITY, {GPU(ENERGY_JOULES)}),
    CALL(read_temperature, 0, 0, 1, 1, 300, {GPU(TEMPERATURE)}),
    CALL(read_memory_temperature, 0, 0, 1, 1, 300, {GPU(MEMORY_TEMPERATURE)}),
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
    CALL(read_pstate, AT(pstate), 0, 1, 1, 15, {GPU(PERFORMANCE_STATE)}),
    PLAIN(pcie_generation, 16, GPU(PCIE_LINK_GENERATION)),
    PLAIN(pcie_generation_max, 16, GPU(PCIE_LINK_GENERATION_MAX)),
    PLAIN(pcie_width, 32, GPU(PCIE_LINK_LANES)),
    PLAIN(pcie_width_max, 32, GPU(PCIE_LINK_LANES_MAX)),
    PLAIN(pcie_replays, INFINITY, GPU(PCIE_REPLAYS)),
    CALL(read_kind, AT(pcie_throughput), 0, 1e3, 1, 1e12, {GPU(PCIE_TRANSMIT)}),
    CALL(read_kind, AT(pcie_throughput), 1, 1e3, 1, 1e12, {GPU(PCIE_RECEIVE)}),
    CALL(read_throttle, 0, 0, 1, 1, 1, THROTTLE("gpu_idle"),
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
    CALL(read_pair, AT(ecc_mode), 0, 1, 1, 1, {NVIDIA(ECC_ENABLED)}),
    ECC(0, "corrected", 0, "volatile"),
    ECC(1, "uncorrected", 0, "volatile"),
    ECC(0, "corrected", 1, "aggregate"),
    ECC(1, "uncorrected", 1, "aggregate"),
    RETIRED(0, "single_bit"),
    RETIRED(1, "double_bit"),
    PLAIN(retired_pending, 1, NVIDIA(RETIRED_PAGES_PENDING)),
    CALL(read_remapped, 0, 0, 1, 1, INFINITY, {NVIDIA(REMAPPED_ROWS), {{"kind", "corrected"}}},
         {NVIDIA(REMAPPED_ROWS), {{"kind", "uncorrected"}}}, {NVIDIA(REMAPPED_ROWS_PENDING)},
         {NVIDIA(REMAPPED_ROWS_FAILED)}),
    PLAIN(compute_mode, 3, NVIDIA(COMPUTE_MODE)),
    PLAIN(persistence, 1, NVIDIA(PERSISTENCE_MODE)),
    CALL(read_pair, AT(mig_mode), 0, 1, 1, 1, {NVIDIA(MIG_ENABLED)}),
};

struct call_state {
    bool never[ARRAY_LEN(calls)]; /* this GPU has no answer to that */
    struct labels *labels[ARRAY_LEN(calls)][MAX_VALUES];
};

static void call_open(void *part, const struct nvml_device *device) {
    struct call_state *state = part;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        bool is_slow = calls[i].function == AT(pcie_throughput);
        bool is_load = calls[i].read == read_utilization;
        state->never[i] = (is_slow && !device->config->pcie_throughput) ||
                          (device->config->integrated && !is_load);
    }
}

/* The labels of an output, rendered when it first has a value; NULL: those of the GPU. */
static const struct labels *output_labels(const struct nvml_device *device,
                                          const struct output *output, struct labels **rendered) {
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
    const struct call *call = &calls[index];
    double values[MAX_VALUES];
    unsigned code = call->read(device, call, values);
    if (!nvml_device_check(device, code, &state->never[index])) {
        return;
    }
    /* The load of a memory that is not the GPU's own is none. */
    size_t n = device->config->integrated ? 1 : MAX_VALUES;
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
        for (size_t j = 0; j < MAX_VALUES; j++) {
            labels_destroy(calls_state->labels[i][j]);
        }
    }
}

const struct nvml_part nvml_call_part = {
    .integrated = true,
    .state_size = sizeof(struct call_state),
    .open = call_open,
    .collect = call_collect,
    .close = call_close,
};
