#include "collectors/nvml/read.h"

#include <math.h>
#include <string.h>

#include "exporter/core/cleanup.h"

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

unsigned nvml_read_plain(const struct nvml_library *library, struct nvml_handle *device,
                         const struct nvml_call *call, double *values) {
    plain_fn *function = FUNCTION(plain_fn, library, call->function);
    unsigned value = 0;
    unsigned code = function != NULL ? function(device, &value) : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = value;
    return code;
}

unsigned nvml_read_kind(const struct nvml_library *library, struct nvml_handle *device,
                        const struct nvml_call *call, double *values) {
    kind_fn *function = FUNCTION(kind_fn, library, call->function);
    unsigned value = 0;
    unsigned code =
        function != NULL ? function(device, call->kind, &value) : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = value;
    return code;
}

unsigned nvml_read_pair(const struct nvml_library *library, struct nvml_handle *device,
                        const struct nvml_call *call, double *values) {
    pair_fn *function = FUNCTION(pair_fn, library, call->function);
    unsigned first = 0, second = 0;
    unsigned code =
        function != NULL ? function(device, &first, &second) : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = first;
    values[1] = second;
    return code;
}

/* The second number is the length of the driver's sampling, or what holds after a reset. */
unsigned nvml_read_first(const struct nvml_library *library, struct nvml_handle *device,
                         const struct nvml_call *call, double *values) {
    double both[2];
    unsigned code = nvml_read_pair(library, device, call, both);
    values[0] = both[0];
    return code;
}

unsigned nvml_read_utilization(const struct nvml_library *library, struct nvml_handle *device,
                               const struct nvml_call *call, double *values) {
    (void)call;
    if (library->utilization == NULL) {
        return NVML_CODE_FUNCTION_NOT_FOUND;
    }
    struct nvml_utilization utilization = {0};
    unsigned code = library->utilization(device, &utilization);
    values[0] = utilization.gpu;
    values[1] = utilization.memory;
    return code;
}

/* An integrated GPU has no memory of its own: a total of 0. A used part beyond the total is passed
 * on as infinite, which no limit lets through. */
unsigned nvml_read_memory(const struct nvml_library *library, struct nvml_handle *device,
                          const struct nvml_call *call, double *values) {
    (void)call;
    struct nvml_memory_v2 memory = {.version = NVML_VERSIONED(struct nvml_memory_v2, 2)};
    unsigned code = library->memory_v2 != NULL ? library->memory_v2(device, &memory)
                                               : NVML_CODE_FUNCTION_NOT_FOUND;
    bool has_reserved = code == NVML_CODE_SUCCESS;
    if (nvml_verdict(code) == NVML_NEVER && library->memory != NULL) {
        struct nvml_memory old = {0};
        code = library->memory(device, &old);
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

unsigned nvml_read_bar1(const struct nvml_library *library, struct nvml_handle *device,
                        const struct nvml_call *call, double *values) {
    (void)call;
    if (library->bar1 == NULL) {
        return NVML_CODE_FUNCTION_NOT_FOUND;
    }
    struct nvml_bar1_memory memory = {0};
    unsigned code = library->bar1(device, &memory);
    values[0] = (double)memory.used;
    values[1] = (double)memory.total;
    return code;
}

unsigned nvml_read_energy(const struct nvml_library *library, struct nvml_handle *device,
                          const struct nvml_call *call, double *values) {
    (void)call;
    unsigned long long millijoules = 0;
    unsigned code = library->energy != NULL ? library->energy(device, &millijoules)
                                            : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = (double)millijoules;
    return code;
}

/* Drivers from the 13th series on want the call with a versioned struct. */
unsigned nvml_read_temperature(const struct nvml_library *library, struct nvml_handle *device,
                               const struct nvml_call *call, double *values) {
    (void)call;
    struct nvml_temperature temperature = {.version = NVML_VERSIONED(struct nvml_temperature, 1)};
    if (library->temperature_v != NULL &&
        library->temperature_v(device, &temperature) == NVML_CODE_SUCCESS) {
        values[0] = temperature.celsius;
        return NVML_CODE_SUCCESS;
    }
    unsigned celsius = 0;
    unsigned code = library->temperature != NULL ? library->temperature(device, 0, &celsius)
                                                 : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = (int)celsius;
    return code;
}

unsigned nvml_read_memory_temperature(const struct nvml_library *library,
                                      struct nvml_handle *device, const struct nvml_call *call,
                                      double *values) {
    (void)call;
    if (library->fields == NULL) {
        return NVML_CODE_FUNCTION_NOT_FOUND;
    }
    struct nvml_field field = {.field = NVML_FIELD_MEMORY_TEMPERATURE};
    unsigned code = library->fields(device, 1, &field);
    values[0] = nvml_read_number(field.type, &field.value);
    return code != NVML_CODE_SUCCESS ? code : field.code;
}

unsigned nvml_read_fan(const struct nvml_library *library, struct nvml_handle *device,
                       const struct nvml_call *call, double *values) {
    unsigned percent = 0;
    unsigned code = NVML_CODE_FUNCTION_NOT_FOUND;
    if (library->fan_v2 != NULL) {
        code = library->fan_v2(device, call->kind, &percent);
    } else if (library->fan != NULL && call->kind == 0) {
        code = library->fan(device, &percent);
    }
    values[0] = percent;
    return code;
}

unsigned nvml_read_pstate(const struct nvml_library *library, struct nvml_handle *device,
                          const struct nvml_call *call, double *values) {
    unsigned code = nvml_read_plain(library, device, call, values);
    values[0] = values[0] == NVML_UNKNOWN_PSTATE ? NAN : values[0];
    return code;
}

/* One bit per reason; the outputs are in the order of the bits. */
unsigned nvml_read_throttle(const struct nvml_library *library, struct nvml_handle *device,
                            const struct nvml_call *call, double *values) {
    (void)call;
    unsigned long long reasons = 0;
    unsigned code = library->throttle_reasons != NULL ? library->throttle_reasons(device, &reasons)
                                                      : NVML_CODE_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < NVML_MAX_VALUES; i++) {
        values[i] = reasons >> i & 1;
    }
    return code;
}

unsigned nvml_read_violation(const struct nvml_library *library, struct nvml_handle *device,
                             const struct nvml_call *call, double *values) {
    struct nvml_violation time = {0};
    unsigned code = library->violation != NULL ? library->violation(device, call->kind, &time)
                                               : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = (double)time.violation_ns;
    return code;
}

unsigned nvml_read_ecc(const struct nvml_library *library, struct nvml_handle *device,
                       const struct nvml_call *call, double *values) {
    unsigned long long n = 0;
    unsigned code = library->ecc_errors != NULL
                        ? library->ecc_errors(device, call->kind, call->counter, &n)
                        : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = (double)n;
    return code;
}

/* Without room for addresses it tells how many there are. */
unsigned nvml_read_retired(const struct nvml_library *library, struct nvml_handle *device,
                           const struct nvml_call *call, double *values) {
    unsigned n = 0;
    unsigned code = library->retired_pages != NULL
                        ? library->retired_pages(device, call->kind, &n, NULL)
                        : NVML_CODE_FUNCTION_NOT_FOUND;
    values[0] = n;
    return code == NVML_CODE_INSUFFICIENT_SIZE ? NVML_CODE_SUCCESS : code;
}

unsigned nvml_read_remapped(const struct nvml_library *library, struct nvml_handle *device,
                            const struct nvml_call *call, double *values) {
    (void)call;
    unsigned rows[4] = {0};
    unsigned code = library->remapped_rows != NULL
                        ? library->remapped_rows(device, &rows[0], &rows[1], &rows[2], &rows[3])
                        : NVML_CODE_FUNCTION_NOT_FOUND;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        values[i] = rows[i];
    }
    return code;
}
