#include <stdio.h>
#include <string.h>

#include "collectors/nvml/types.h"
#include "tests/fakes/nvml_fake.h"
#include "tests/fakes/nvml_scenario.h"

/* A library that looks like the driver's and answers what a scenario says: identity, single numbers
 * and small structs. Built twice; the second time as an old driver that knows fewer calls. */

enum { MAX_GPUS = 64, MAX_MIGS = 8 };

static struct nvml_handle {
    int gpu;
    int mig; /* -1: the whole GPU */
} handles[MAX_GPUS][MAX_MIGS + 1];

__attribute__((constructor)) static void number_handles(void) {
    for (int i = 0; i < MAX_GPUS; i++) {
        handles[i][0] = (struct nvml_handle){i, -1};
    }
}

static _Atomic int n_running;
_Atomic unsigned fake_nvml_n_starts;

int fake_gpu(const struct nvml_handle *device) {
    return device->gpu;
}

struct nvml_handle *fake_handle(int gpu) {
    return &handles[gpu][0];
}

static unsigned start(void) {
    unsigned code = NVML_CODE_UNKNOWN;
    if (!scenario_load()) {
        return NVML_CODE_DRIVER_NOT_LOADED;
    }
    const char *text = scenario_text(SCENARIO_DRIVER, "init", &code);
    if (text == NULL && code != NVML_CODE_NOT_SUPPORTED) {
        return code;
    }
    n_running++;
    fake_nvml_n_starts++;
    return NVML_CODE_SUCCESS;
}

static unsigned get(const struct nvml_handle *device, const char *key, unsigned index,
                    unsigned *ret) {
    if (n_running == 0) {
        return NVML_CODE_UNINITIALIZED;
    }
    unsigned long long number = 0;
    unsigned code = scenario_number(device->gpu, key, index, &number);
    *ret = (unsigned)number;
    return code;
}

static unsigned get_text(int gpu, const char *key, char *out, unsigned length) {
    unsigned code;
    const char *text = scenario_text(gpu, key, &code);
    if (text != NULL) {
        snprintf(out, length, "%s", text);
    }
    return code;
}

EXPORT unsigned nvmlInit(void) {
    return start();
}

EXPORT unsigned nvmlShutdown(void) {
    if (n_running == 0) {
        return NVML_CODE_UNINITIALIZED;
    }
    n_running--;
    return NVML_CODE_SUCCESS;
}

EXPORT const char *nvmlErrorString(unsigned code) {
    switch (code) {
    case NVML_CODE_UNINITIALIZED:
        return "Uninitialized";
    case NVML_CODE_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_CODE_GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

EXPORT unsigned nvmlSystemGetDriverVersion(char *version, unsigned length) {
    return get_text(SCENARIO_DRIVER, "driver", version, length);
}

EXPORT unsigned nvmlDeviceGetCount(unsigned *n) {
    unsigned long long number = 0;
    unsigned code = scenario_number(SCENARIO_DRIVER, "gpus", 0, &number);
    *n = (unsigned)number;
    return code;
}

EXPORT unsigned nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_handle **device) {
    unsigned code;
    if (scenario_text((int)index, "handle", &code) == NULL && code != NVML_CODE_NOT_SUPPORTED) {
        return code;
    }
    *device = &handles[index][0];
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetName(struct nvml_handle *device, char *name, unsigned length) {
    return get_text(device->gpu, device->mig >= 0 ? "mig.name" : "name", name, length);
}

EXPORT unsigned nvmlDeviceGetUUID(struct nvml_handle *device, char *uuid, unsigned length) {
    if (device->mig >= 0) {
        snprintf(uuid, length, "MIG-%08x-0000-4000-8000-%012x", device->gpu, device->mig);
    } else {
        snprintf(uuid, length, "GPU-%08x-0000-4000-8000-000000000000", device->gpu);
    }
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetVbiosVersion(struct nvml_handle *device, char *version,
                                          unsigned length) {
    return get_text(device->gpu, "vbios", version, length);
}

/* The layout before _v3 ends with reserved words. */
EXPORT unsigned nvmlDeviceGetPciInfo(struct nvml_handle *device, struct nvml_pci_info *pci) {
    unsigned code = get(device, "pci", 0, &pci->domain);
    if (code != NVML_CODE_SUCCESS) {
        return code;
    }
    get(device, "pci", 1, &pci->bus);
    get(device, "pci", 2, &pci->device);
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0",
             pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    memset(pci->bus_id, 0, 16);
    return NVML_CODE_SUCCESS;
}

/* Calls of the form (device, &value). */
#define NUMBER(function, key)                                                                      \
    EXPORT unsigned function(struct nvml_handle *device, unsigned *value) {                        \
        return get(device, key, 0, value);                                                         \
    }
NUMBER(nvmlDeviceGetPowerUsage, "power")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power.limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power.default")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power.enforced")
NUMBER(nvmlDeviceGetFanSpeed, "fan")
NUMBER(nvmlDeviceGetPerformanceState, "pstate")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.generation.max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie.replays")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired.pending")
NUMBER(nvmlDeviceGetComputeMode, "compute.mode")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")

/* Calls of the form (device, which, &value): the value is a list. */
#define LISTED(function, key)                                                                      \
    EXPORT unsigned function(struct nvml_handle *device, unsigned which, unsigned *value) {        \
        return get(device, key, which, value);                                                     \
    }
LISTED(nvmlDeviceGetTemperature, "temperature")
LISTED(nvmlDeviceGetTemperatureThreshold, "threshold")
LISTED(nvmlDeviceGetClockInfo, "clock")
LISTED(nvmlDeviceGetMaxClockInfo, "clock.max")
LISTED(nvmlDeviceGetPcieThroughput, "pcie.throughput")

/* Calls of the form (device, &first, &second). */
#define PAIR(function, key)                                                                        \
    EXPORT unsigned function(struct nvml_handle *device, unsigned *first, unsigned *second) {      \
        unsigned code = get(device, key, 0, first);                                                \
        get(device, key, 1, second);                                                               \
        return code;                                                                               \
    }
PAIR(nvmlDeviceGetEncoderUtilization, "encoder")
PAIR(nvmlDeviceGetDecoderUtilization, "decoder")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power.range")
PAIR(nvmlDeviceGetEccMode, "ecc.mode")

EXPORT unsigned nvmlDeviceGetUtilizationRates(struct nvml_handle *device,
                                              struct nvml_utilization *utilization) {
    unsigned code = get(device, "utilization", 0, &utilization->gpu);
    get(device, "utilization", 1, &utilization->memory);
    return code;
}

static unsigned get_memory(const struct nvml_handle *device, struct nvml_memory_v2 *memory) {
    char key[16];
    snprintf(key, sizeof(key), device->mig >= 0 ? "mig.memory.%d" : "memory", device->mig);
    unsigned long long *const fields[] = {&memory->total, &memory->reserved, &memory->free,
                                          &memory->used};
    unsigned code = NVML_CODE_SUCCESS;
    for (unsigned i = 0; i < 4 && code == NVML_CODE_SUCCESS; i++) {
        code = scenario_number(device->gpu, key, i, fields[i]);
    }
    return code;
}

EXPORT unsigned nvmlDeviceGetMemoryInfo(struct nvml_handle *device, struct nvml_memory *memory) {
    struct nvml_memory_v2 all = {0};
    unsigned code = get_memory(device, &all);
    *memory = (struct nvml_memory){all.total, all.free, all.used + all.reserved};
    return code;
}

EXPORT unsigned nvmlDeviceGetBAR1MemoryInfo(struct nvml_handle *device,
                                            struct nvml_bar1_memory *memory) {
    unsigned code = scenario_number(device->gpu, "bar1", 0, &memory->total);
    scenario_number(device->gpu, "bar1", 1, &memory->free);
    scenario_number(device->gpu, "bar1", 2, &memory->used);
    return code;
}

EXPORT unsigned nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_handle *device,
                                                          unsigned long long *reasons) {
    return scenario_number(device->gpu, "throttle", 0, reasons);
}

EXPORT unsigned nvmlDeviceGetTotalEccErrors(struct nvml_handle *device, unsigned kind,
                                            unsigned counter, unsigned long long *n) {
    return scenario_number(device->gpu, "ecc", kind + 2 * counter, n);
}

#ifndef OLD_DRIVER
EXPORT unsigned nvmlInit_v2(void) {
    return start();
}

EXPORT unsigned nvmlDeviceGetCount_v2(unsigned *n) {
    return nvmlDeviceGetCount(n);
}

EXPORT unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_handle **device) {
    return nvmlDeviceGetHandleByIndex(index, device);
}

EXPORT unsigned nvmlSystemGetCudaDriverVersion_v2(int *version) {
    unsigned long long number = 0;
    unsigned code = scenario_number(SCENARIO_DRIVER, "cuda", 0, &number);
    *version = (int)number;
    return code;
}

EXPORT unsigned nvmlDeviceGetPciInfo_v3(struct nvml_handle *device, struct nvml_pci_info *pci) {
    unsigned code = nvmlDeviceGetPciInfo(device, pci);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff,
             pci->device & 0xff);
    return code;
}

PAIR(nvmlDeviceGetJpgUtilization, "jpeg")
PAIR(nvmlDeviceGetOfaUtilization, "ofa")
PAIR(nvmlDeviceGetMigMode, "mig.mode")
LISTED(nvmlDeviceGetFanSpeed_v2, "fan")
LISTED(nvmlDeviceGetNvLinkState, "nvlink")

EXPORT unsigned nvmlDeviceGetMemoryInfo_v2(struct nvml_handle *device,
                                           struct nvml_memory_v2 *memory) {
    if (memory->version != 0x02000028) {
        return NVML_CODE_ARGUMENT_VERSION_MISMATCH;
    }
    return get_memory(device, memory);
}

EXPORT unsigned nvmlDeviceGetTotalEnergyConsumption(struct nvml_handle *device,
                                                    unsigned long long *millijoules) {
    return scenario_number(device->gpu, "energy", 0, millijoules);
}

EXPORT unsigned nvmlDeviceGetViolationStatus(struct nvml_handle *device, unsigned policy,
                                             struct nvml_violation *time) {
    return scenario_number(device->gpu, "violation", policy, &time->violation_ns);
}

EXPORT unsigned nvmlDeviceGetRetiredPages(struct nvml_handle *device, unsigned cause, unsigned *n,
                                          unsigned long long *addresses) {
    (void)addresses;
    unsigned code = get(device, "retired", cause, n);
    return code == NVML_CODE_SUCCESS && *n > 0 ? NVML_CODE_INSUFFICIENT_SIZE : code;
}

EXPORT unsigned nvmlDeviceGetRemappedRows(struct nvml_handle *device, unsigned *corrected,
                                          unsigned *uncorrected, unsigned *pending,
                                          unsigned *failure) {
    get(device, "remapped", 1, uncorrected);
    get(device, "remapped", 2, pending);
    get(device, "remapped", 3, failure);
    return get(device, "remapped", 0, corrected);
}

EXPORT unsigned nvmlDeviceGetNvLinkErrorCounter(struct nvml_handle *device, unsigned link,
                                                unsigned kind, unsigned long long *n) {
    return scenario_number(device->gpu, "nvlink.errors", link * 4 + kind, n);
}

EXPORT unsigned nvmlDeviceGetFieldValues(struct nvml_handle *device, int n,
                                         struct nvml_field *fields) {
    for (int i = 0; i < n; i++) {
        const char *key = fields[i].field == NVML_FIELD_MEMORY_TEMPERATURE   ? "temperature.memory"
                          : fields[i].field == NVML_FIELD_NVLINK_TRANSMITTED ? "nvlink.transmitted"
                                                                             : "nvlink.received";
        fields[i].type = NVML_IS_UNSIGNED_LONG_LONG;
        fields[i].code = scenario_number(device->gpu, key, fields[i].scope,
                                         &fields[i].value.as_unsigned_long_long);
    }
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetMaxMigDeviceCount(struct nvml_handle *device, unsigned *n) {
    (void)device;
    *n = MAX_MIGS - 1;
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_handle *device, unsigned index,
                                                    struct nvml_handle **mig) {
    unsigned instance;
    if (get(device, "mig.instances", index, &instance) != NVML_CODE_SUCCESS) {
        return NVML_CODE_NOT_FOUND;
    }
    handles[device->gpu][index + 1] = (struct nvml_handle){device->gpu, (int)index};
    *mig = &handles[device->gpu][index + 1];
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetGpuInstanceId(struct nvml_handle *mig, unsigned *id) {
    return get(mig, "mig.instances", (unsigned)mig->mig, id);
}

EXPORT unsigned nvmlDeviceGetComputeInstanceId(struct nvml_handle *mig, unsigned *id) {
    (void)mig;
    *id = 0;
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceGetAttributes_v2(struct nvml_handle *mig,
                                           struct nvml_attributes *attributes) {
    memset(attributes, 0, sizeof(*attributes));
    return get(mig, "mig.multiprocessors", (unsigned)mig->mig, &attributes->multiprocessors);
}
#endif
