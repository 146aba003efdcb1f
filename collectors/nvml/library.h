#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/nvml/types.h"
#include "exporter/core/error.h"

/* NVIDIA's management library, looked for at run time: nothing of it is needed to build. One struct
 * is for one thread, and not across a fork; two of them share a library that counts its starts. A
 * call that this driver lacks is NULL. They answer an enum nvml_code. */
struct nvml_library {
    void *dl;
    bool started;

    unsigned (*init)(void);
    unsigned (*shutdown)(void);
    const char *(*error_string)(unsigned code);
    unsigned (*driver_version)(char *version, unsigned length);
    unsigned (*cuda_version)(int *version);
    unsigned (*count)(unsigned *n);
    unsigned (*handle)(unsigned index, struct nvml_handle **device);

    unsigned (*name)(struct nvml_handle *device, char *name, unsigned length);
    unsigned (*uuid)(struct nvml_handle *device, char *uuid, unsigned length);
    unsigned (*vbios_version)(struct nvml_handle *device, char *version, unsigned length);
    unsigned (*pci_info)(struct nvml_handle *device, struct nvml_pci_info *pci);

    unsigned (*utilization)(struct nvml_handle *device, struct nvml_utilization *utilization);
    unsigned (*encoder)(struct nvml_handle *device, unsigned *percent, unsigned *period_usec);
    unsigned (*decoder)(struct nvml_handle *device, unsigned *percent, unsigned *period_usec);
    unsigned (*jpeg)(struct nvml_handle *device, unsigned *percent, unsigned *period_usec);
    unsigned (*ofa)(struct nvml_handle *device, unsigned *percent, unsigned *period_usec);
    unsigned (*memory)(struct nvml_handle *device, struct nvml_memory *memory);
    unsigned (*memory_v2)(struct nvml_handle *device, struct nvml_memory_v2 *memory);
    unsigned (*bar1)(struct nvml_handle *device, struct nvml_bar1_memory *memory);
    unsigned (*power)(struct nvml_handle *device, unsigned *milliwatts);
    unsigned (*power_limit)(struct nvml_handle *device, unsigned *milliwatts);
    unsigned (*power_default)(struct nvml_handle *device, unsigned *milliwatts);
    unsigned (*power_enforced)(struct nvml_handle *device, unsigned *milliwatts);
    unsigned (*power_range)(struct nvml_handle *device, unsigned *min, unsigned *max);
    unsigned (*energy)(struct nvml_handle *device, unsigned long long *millijoules);
    unsigned (*temperature)(struct nvml_handle *device, unsigned sensor, unsigned *celsius);
    unsigned (*temperature_v)(struct nvml_handle *device, struct nvml_temperature *temperature);
    unsigned (*threshold)(struct nvml_handle *device, unsigned kind, unsigned *celsius);
    unsigned (*clock)(struct nvml_handle *device, unsigned kind, unsigned *mhz);
    unsigned (*clock_max)(struct nvml_handle *device, unsigned kind, unsigned *mhz);
    unsigned (*fan)(struct nvml_handle *device, unsigned *percent);
    unsigned (*fan_v2)(struct nvml_handle *device, unsigned fan, unsigned *percent);
    unsigned (*pstate)(struct nvml_handle *device, unsigned *state);
    unsigned (*pcie_generation)(struct nvml_handle *device, unsigned *generation);
    unsigned (*pcie_generation_max)(struct nvml_handle *device, unsigned *generation);
    unsigned (*pcie_width)(struct nvml_handle *device, unsigned *lanes);
    unsigned (*pcie_width_max)(struct nvml_handle *device, unsigned *lanes);
    unsigned (*pcie_replays)(struct nvml_handle *device, unsigned *n);
    unsigned (*pcie_throughput)(struct nvml_handle *device, unsigned kind, unsigned *kilobytes);

    unsigned (*throttle_reasons)(struct nvml_handle *device, unsigned long long *reasons);
    unsigned (*violation)(struct nvml_handle *device, unsigned policy, struct nvml_violation *time);
    unsigned (*ecc_mode)(struct nvml_handle *device, unsigned *current, unsigned *pending);
    unsigned (*ecc_errors)(struct nvml_handle *device, unsigned kind, unsigned counter,
                           unsigned long long *n);
    unsigned (*retired_pages)(struct nvml_handle *device, unsigned cause, unsigned *n,
                              unsigned long long *addresses);
    unsigned (*retired_pending)(struct nvml_handle *device, unsigned *pending);
    unsigned (*remapped_rows)(struct nvml_handle *device, unsigned *corrected,
                              unsigned *uncorrected, unsigned *pending, unsigned *failure);
    unsigned (*compute_mode)(struct nvml_handle *device, unsigned *mode);
    unsigned (*persistence)(struct nvml_handle *device, unsigned *mode);
    unsigned (*fields)(struct nvml_handle *device, int n, struct nvml_field *fields);
    unsigned (*link_state)(struct nvml_handle *device, unsigned link, unsigned *active);
    unsigned (*link_errors)(struct nvml_handle *device, unsigned link, unsigned kind,
                            unsigned long long *n);

    unsigned (*mig_mode)(struct nvml_handle *device, unsigned *current, unsigned *pending);
    unsigned (*mig_max)(struct nvml_handle *device, unsigned *n);
    unsigned (*mig_handle)(struct nvml_handle *device, unsigned index, struct nvml_handle **mig);
    unsigned (*mig_attributes)(struct nvml_handle *mig, struct nvml_attributes *attributes);
    unsigned (*gpu_instance)(struct nvml_handle *mig, unsigned *id);
    unsigned (*compute_instance)(struct nvml_handle *mig, unsigned *id);

    unsigned (*compute_processes)(struct nvml_handle *device, unsigned *n,
                                  struct nvml_process *processes);
    unsigned (*compute_processes_v1)(struct nvml_handle *device, unsigned *n,
                                     struct nvml_process_v1 *processes);
    unsigned (*graphics_processes)(struct nvml_handle *device, unsigned *n,
                                   struct nvml_process *processes);
    unsigned (*graphics_processes_v1)(struct nvml_handle *device, unsigned *n,
                                      struct nvml_process_v1 *processes);
    unsigned (*process_loads)(struct nvml_handle *device, struct nvml_process_load *loads,
                              unsigned *n, unsigned long long last_seen_usec);
    unsigned (*samples)(struct nvml_handle *device, unsigned kind,
                        unsigned long long last_seen_usec, unsigned *type, unsigned *n,
                        struct nvml_sample *samples);

    unsigned (*event_set_create)(struct nvml_event_set **set);
    unsigned (*event_set_free)(struct nvml_event_set *set);
    unsigned (*event_wait)(struct nvml_event_set *set, struct nvml_event *event,
                           unsigned timeout_ms);
    unsigned (*register_events)(struct nvml_handle *device, unsigned long long types,
                                struct nvml_event_set *set);
};

/* What a function of a library answers, or that the driver lacks it. */
#define NVML_CALL(function, ...)                                                                   \
    ((function) != NULL ? (function)(__VA_ARGS__) : (unsigned)NVML_CODE_FUNCTION_NOT_FOUND)

/* Loads the library from `path`, or from where it usually lies if that is empty, and starts it.
 * -ENODEV if there is no library, or no driver. */
int nvml_library_open(struct nvml_library *library, const char *path, struct error *err);
void nvml_library_close(struct nvml_library *library); /* accepts a zeroed struct */

/* Starts one that is in the program itself: a table of calls, with at least those that no library
 * may lack. */
int nvml_library_use(struct nvml_library *library, const struct nvml_library *given,
                     struct error *err);

/* Starts a library that is loaded, and stops it: nvml_library_open and _close do both. */
int nvml_library_start(struct nvml_library *library, struct error *err);
void nvml_library_stop(struct nvml_library *library);

/* NVIDIA's words for a code. */
const char *nvml_library_words(const struct nvml_library *library, unsigned code);

/* What a code means for what comes next. */
enum nvml_verdict {
    NVML_GOOD,
    NVML_NEVER,     /* this device does not have that: no need to ask again */
    NVML_NOT_NOW,   /* no answer this time */
    NVML_LOST,      /* the device is gone */
    NVML_NO_DRIVER, /* all devices are */
};
enum nvml_verdict nvml_verdict(unsigned code);
