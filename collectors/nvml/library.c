#include "collectors/nvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "exporter/core/cleanup.h"

/* Where drivers, NVIDIA's container runtime, the GPU operator, WSL and JetPack put it. The name
 * without the number is the development package's: a stub that only complains. */
static const char *const places[] = {
    "libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/nvidia/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/tegra/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
};

enum { MAX_NAMES = 3 };

struct symbol {
    const char *names[MAX_NAMES]; /* the best first; the plain one is always the oldest */
    size_t where;
    bool optional;
};

#define WHERE(member) offsetof(struct nvml_library, member)
#define NEEDED(member, ...)                                                                        \
    { {__VA_ARGS__}, WHERE(member), false }
#define WANTED(member, ...)                                                                        \
    { {__VA_ARGS__}, WHERE(member), true }

/* Process lists: _v3 had entries of another size in some drivers of the 535 series, _v2 never. */
static const struct symbol symbols[] = {
    NEEDED(init, "nvmlInit_v2", "nvmlInit"),
    NEEDED(shutdown, "nvmlShutdown"),
    NEEDED(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    NEEDED(handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    NEEDED(name, "nvmlDeviceGetName"),
    NEEDED(uuid, "nvmlDeviceGetUUID"),
    WANTED(bar1, "nvmlDeviceGetBAR1MemoryInfo"),
    WANTED(clock, "nvmlDeviceGetClockInfo"),
    WANTED(clock_max, "nvmlDeviceGetMaxClockInfo"),
    WANTED(compute_instance, "nvmlDeviceGetComputeInstanceId"),
    WANTED(compute_mode, "nvmlDeviceGetComputeMode"),
    WANTED(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v2",
           "nvmlDeviceGetComputeRunningProcesses_v3"),
    WANTED(compute_processes_v1, "nvmlDeviceGetComputeRunningProcesses"),
    WANTED(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"),
    WANTED(decoder, "nvmlDeviceGetDecoderUtilization"),
    WANTED(driver_version, "nvmlSystemGetDriverVersion"),
    WANTED(ecc_errors, "nvmlDeviceGetTotalEccErrors"),
    WANTED(ecc_mode, "nvmlDeviceGetEccMode"),
    WANTED(encoder, "nvmlDeviceGetEncoderUtilization"),
    WANTED(energy, "nvmlDeviceGetTotalEnergyConsumption"),
    WANTED(error_string, "nvmlErrorString"),
    WANTED(event_set_create, "nvmlEventSetCreate"),
    WANTED(event_set_free, "nvmlEventSetFree"),
    WANTED(event_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait"),
    WANTED(fan, "nvmlDeviceGetFanSpeed"),
    WANTED(fan_v2, "nvmlDeviceGetFanSpeed_v2"),
    WANTED(fields, "nvmlDeviceGetFieldValues"),
    WANTED(gpu_instance, "nvmlDeviceGetGpuInstanceId"),
    WANTED(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v2",
           "nvmlDeviceGetGraphicsRunningProcesses_v3"),
    WANTED(graphics_processes_v1, "nvmlDeviceGetGraphicsRunningProcesses"),
    WANTED(jpeg, "nvmlDeviceGetJpgUtilization"),
    WANTED(link_errors, "nvmlDeviceGetNvLinkErrorCounter"),
    WANTED(link_state, "nvmlDeviceGetNvLinkState"),
    WANTED(memory, "nvmlDeviceGetMemoryInfo"),
    WANTED(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
    WANTED(mig_attributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"),
    WANTED(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex"),
    WANTED(mig_max, "nvmlDeviceGetMaxMigDeviceCount"),
    WANTED(mig_mode, "nvmlDeviceGetMigMode"),
    WANTED(ofa, "nvmlDeviceGetOfaUtilization"),
    WANTED(pci_info, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"),
    WANTED(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration"),
    WANTED(pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration"),
    WANTED(pcie_replays, "nvmlDeviceGetPcieReplayCounter"),
    WANTED(pcie_throughput, "nvmlDeviceGetPcieThroughput"),
    WANTED(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth"),
    WANTED(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth"),
    WANTED(persistence, "nvmlDeviceGetPersistenceMode"),
    WANTED(power, "nvmlDeviceGetPowerUsage"),
    WANTED(power_default, "nvmlDeviceGetPowerManagementDefaultLimit"),
    WANTED(power_enforced, "nvmlDeviceGetEnforcedPowerLimit"),
    WANTED(power_limit, "nvmlDeviceGetPowerManagementLimit"),
    WANTED(power_range, "nvmlDeviceGetPowerManagementLimitConstraints"),
    WANTED(process_loads, "nvmlDeviceGetProcessUtilization"),
    WANTED(pstate, "nvmlDeviceGetPerformanceState"),
    WANTED(register_events, "nvmlDeviceRegisterEvents"),
    WANTED(remapped_rows, "nvmlDeviceGetRemappedRows"),
    WANTED(retired_pages, "nvmlDeviceGetRetiredPages"),
    WANTED(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus"),
    WANTED(samples, "nvmlDeviceGetSamples"),
    WANTED(temperature, "nvmlDeviceGetTemperature"),
    WANTED(temperature_v, "nvmlDeviceGetTemperatureV"),
    WANTED(threshold, "nvmlDeviceGetTemperatureThreshold"),
    WANTED(throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons",
           "nvmlDeviceGetCurrentClocksThrottleReasons"),
    WANTED(utilization, "nvmlDeviceGetUtilizationRates"),
    WANTED(vbios_version, "nvmlDeviceGetVbiosVersion"),
    WANTED(violation, "nvmlDeviceGetViolationStatus"),
};

static void *find_symbol(void *dl, const struct symbol *symbol) {
    for (size_t i = 0; i < MAX_NAMES && symbol->names[i] != NULL; i++) {
        void *found = dlsym(dl, symbol->names[i]);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

static int find_symbols(struct nvml_library *library, const char *path, struct error *err) {
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *found = find_symbol(library->dl, &symbols[i]);
        if (found == NULL && !symbols[i].optional) {
            return error_set(err, -ENODEV, "%s: lacks %s", path, symbols[i].names[0]);
        }
        memcpy((char *)library + symbols[i].where, &found, sizeof(found));
    }
    return 0;
}

/* CUDA's toolkit has a library for linking only: it has all functions, and all of them fail. */
static bool is_stub(void *dl) {
    struct link_map *map = NULL;
    return dlinfo(dl, RTLD_DI_LINKMAP, &map) == 0 && strstr(map->l_name, "/stubs/") != NULL;
}

static int load(struct nvml_library *library, const char *path, struct error *err) {
    library->dl = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library->dl == NULL) {
        return error_set(err, -ENODEV, "%s", dlerror());
    }
    if (is_stub(library->dl)) {
        return error_set(err, -ENODEV, "%s: a stub, not the driver's library", path);
    }
    int r = find_symbols(library, path, err);
    return r < 0 ? r : nvml_library_start(library, err);
}

int nvml_library_start(struct nvml_library *library, struct error *err) {
    unsigned code = library->init();
    if (code != NVML_CODE_SUCCESS) {
        return error_set(err, -ENODEV, "NVML does not start: %s (%u)",
                         nvml_library_words(library, code), code);
    }
    library->started = true;
    return 0;
}

void nvml_library_stop(struct nvml_library *library) {
    if (library->started) {
        library->shutdown();
    }
    library->started = false;
}

void nvml_library_close(struct nvml_library *library) {
    nvml_library_stop(library);
    if (library->dl != NULL) {
        dlclose(library->dl);
    }
    *library = (struct nvml_library){0};
}

/* The error of a library that exists but does not start is reported rather than that of one that
 * does not exist. */
int nvml_library_open(struct nvml_library *library, const char *path, struct error *err) {
    size_t n = path[0] != '\0' ? 1 : ARRAY_LEN(places);
    bool loaded = false;
    int r = -ENODEV;
    for (size_t i = 0; i < n && r < 0 && !loaded; i++) {
        struct error why = {{0}};
        *library = (struct nvml_library){0};
        r = load(library, path[0] != '\0' ? path : places[i], &why);
        loaded = library->dl != NULL;
        if (r < 0) {
            nvml_library_close(library);
        }
        if (r < 0 && (i == 0 || loaded)) {
            error_set(err, r, "%s", why.text);
        }
    }
    return r;
}

int nvml_library_use(struct nvml_library *library, const struct nvml_library *given,
                     struct error *err) {
    *library = *given;
    return nvml_library_start(library, err);
}

const char *nvml_library_words(const struct nvml_library *library, unsigned code) {
    return library->error_string != NULL ? library->error_string(code) : "error";
}

enum nvml_verdict nvml_verdict(unsigned code) {
    static const struct {
        unsigned code;
        enum nvml_verdict verdict;
    } rows[] = {
        {NVML_CODE_SUCCESS, NVML_GOOD},
        {NVML_CODE_UNINITIALIZED, NVML_NO_DRIVER},
        {NVML_CODE_INVALID_ARGUMENT, NVML_NEVER},
        {NVML_CODE_NOT_SUPPORTED, NVML_NEVER},
        {NVML_CODE_NO_PERMISSION, NVML_NEVER},
        {NVML_CODE_DRIVER_NOT_LOADED, NVML_NO_DRIVER},
        {NVML_CODE_FUNCTION_NOT_FOUND, NVML_NEVER},
        {NVML_CODE_GPU_IS_LOST, NVML_LOST},
        {NVML_CODE_RESET_REQUIRED, NVML_LOST},
        {NVML_CODE_LIB_RM_VERSION_MISMATCH, NVML_NO_DRIVER},
        {NVML_CODE_VGPU_ECC_NOT_SUPPORTED, NVML_NEVER},
        {NVML_CODE_ARGUMENT_VERSION_MISMATCH, NVML_NEVER},
        {NVML_CODE_DEPRECATED, NVML_NEVER},
        {NVML_CODE_GPU_NOT_FOUND, NVML_LOST},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].code == code) {
            return rows[i].verdict;
        }
    }
    return NVML_NOT_NOW;
}
