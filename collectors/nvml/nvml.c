#include "collectors/nvml/nvml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/nvml/device.h"
#include "collectors/nvml/event.h"
#include "collectors/nvml/library.h"
#include "collectors/source/follow.h"
#include "collectors/source/tegra.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

enum { MAX_DEVICES = 64 };

#define EVENT_INTERVAL_NS CLOCK_NS_PER_SEC

struct nvml {
    struct nvml_library library;
    struct nvml_config config;
    bool prototype; /* also its names */
    struct nvml_device devices[MAX_DEVICES];
    size_t n_devices;
    struct nvml_events events;
    int64_t next_events_ns;
    int64_t restart_interval_ns;
    int64_t next_restart_ns; /* 0: no GPU is lost */
};

static const struct option nvml_options[] = {
    {
        .name = "collector.nvml.library",
        .type = OPTION_STRING,
        .help = "Path of libnvidia-ml.so.1; empty: where drivers usually put it",
    },
    {
        .name = "collector.nvml.max-processes",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 1,
        .max = 65536,
        .help = "Most processes of one GPU to look at",
    },
    {
        .name = "collector.nvml.pcie-throughput",
        .type = OPTION_BOOL,
        .help = "Measure PCI Express traffic, which takes 40 ms per GPU and scrape",
    },
    {
        .name = "collector.nvml.processes",
        .type = OPTION_BOOL,
        .help = "Show the GPU memory of each process",
    },
    {0},
};

static void nvml_close(void *state) {
    struct nvml *nvml = state;
    if (nvml == NULL) {
        return;
    }
    nvml_events_close(&nvml->events);
    for (size_t i = 0; i < nvml->n_devices; i++) {
        nvml_device_finish(&nvml->devices[i]);
    }
    nvml_library_close(&nvml->library);
    free(nvml);
}

static int open_devices(struct nvml *nvml, bool tegra, struct error *err) {
    unsigned n = 0;
    unsigned code = nvml->library.count(&n);
    if (code != NVML_CODE_SUCCESS) {
        return error_set(err, -ENODEV, "NVML counts no GPUs: %s (%u)",
                         nvml_library_words(&nvml->library, code), code);
    }
    int r = error_set(err, -ENODEV, "NVML knows no GPU");
    for (unsigned i = 0; i < n && nvml->n_devices < MAX_DEVICES; i++) {
        struct nvml_device *device = &nvml->devices[nvml->n_devices];
        r = nvml_device_init(device, &nvml->library, &nvml->config, i, err);
        if (r == 0 && tegra && tegra_gpu_is_integrated(device->name)) {
            nvml_device_finish(device);
            r = error_set(err, -ENODEV, "the integrated GPU is left to the collector jetson");
        }
        nvml->n_devices += r == 0;
    }
    return nvml->n_devices > 0 ? 0 : r;
}

static struct nvml_config read_config(const struct collector_env *env) {
    const struct settings *settings = env->settings;
    return (struct nvml_config){
        .procfs = env->procfs,
        .sysfs = env->sysfs,
        .energy = env->energy,
        .peak_window_ns = settings_duration_ms(settings, "sample.peak-window") * CLOCK_NS_PER_MS,
        .max_gap_ns = follow_max_gap_ns(settings),
        .max_processes = (size_t)settings_int(settings, "collector.nvml.max-processes"),
        .processes = settings_bool(settings, "collector.nvml.processes"),
        .pcie_throughput = settings_bool(settings, "collector.nvml.pcie-throughput"),
    };
}

static int nvml_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct nvml *nvml = mem_zalloc(1, sizeof(*nvml));
    nvml->config = read_config(env);
    nvml->prototype =
        (settings_choices(env->settings, "collector.jetson.compat") & COMPAT_PROTOTYPE) != 0;
    nvml->restart_interval_ns =
        settings_duration_ms(env->settings, "collector.reprobe-interval") * CLOCK_NS_PER_MS;
    const char *path = settings_string(env->settings, "collector.nvml.library");
    int r = env->nvml != NULL ? nvml_library_use(&nvml->library, env->nvml, err)
                              : nvml_library_open(&nvml->library, path, err);
    if (r == 0) {
        const struct tegra_soc *soc;
        r = open_devices(nvml, tegra_detect(env, &soc, NULL) == 0, err);
    }
    if (r < 0) {
        nvml_close(nvml);
        return r;
    }
    nvml_events_open(&nvml->events, &nvml->library, nvml->devices, nvml->n_devices);
    *ret_state = nvml;
    return 0;
}

/* Handles do not survive a restart of the library; the GPU with the same uuid has another one. */
static void find_handle(struct nvml *nvml, unsigned index) {
    struct nvml_handle *handle = NULL;
    char uuid[NVML_MAX_TEXT] = "";
    if (nvml->library.handle(index, &handle) != NVML_CODE_SUCCESS ||
        nvml->library.uuid(handle, uuid, sizeof(uuid)) != NVML_CODE_SUCCESS) {
        return;
    }
    for (size_t i = 0; i < nvml->n_devices; i++) {
        struct nvml_device *device = &nvml->devices[i];
        bool was_nameless = device->xids == NULL && device->index == index;
        if (was_nameless) {
            struct nvml_device fresh;
            if (nvml_device_init(&fresh, &nvml->library, &nvml->config, index, NULL) == 0) {
                nvml_device_finish(device);
                *device = fresh;
            }
        } else if (strcmp(device->uuid, uuid) == 0) {
            device->handle = handle;
            device->state = NVML_GOOD;
        }
    }
}

/* The library finds a GPU that was reset only after a restart. */
static void restart(struct nvml *nvml) {
    unsigned n = 0;
    nvml_events_close(&nvml->events);
    nvml_library_stop(&nvml->library);
    bool good = nvml_library_start(&nvml->library, NULL) == 0 &&
                nvml->library.count(&n) == NVML_CODE_SUCCESS;
    for (size_t i = 0; i < nvml->n_devices; i++) {
        struct nvml_device *device = &nvml->devices[i];
        if (!good || device->state == NVML_GOOD) {
            device->state = good ? NVML_LOST : NVML_NO_DRIVER;
            device->code = good ? NVML_CODE_GPU_NOT_FOUND : NVML_CODE_UNINITIALIZED;
        }
    }
    for (unsigned i = 0; i < n && good; i++) {
        find_handle(nvml, i);
    }
    nvml_events_open(&nvml->events, &nvml->library, nvml->devices, nvml->n_devices);
}

static bool any_lost(const struct nvml *nvml) {
    for (size_t i = 0; i < nvml->n_devices; i++) {
        if (nvml->devices[i].state == NVML_LOST) {
            return true;
        }
    }
    return false;
}

static int nvml_sample(void *state) {
    struct nvml *nvml = state;
    int64_t now_ns = clock_monotonic_ns();
    if (!any_lost(nvml)) {
        nvml->next_restart_ns = 0;
    } else if (nvml->next_restart_ns == 0) {
        nvml->next_restart_ns = now_ns + nvml->restart_interval_ns;
    } else if (now_ns >= nvml->next_restart_ns) {
        restart(nvml);
        nvml->next_restart_ns = 0;
    }
    if (now_ns >= nvml->next_events_ns) {
        nvml->next_events_ns = now_ns + EVENT_INTERVAL_NS;
        nvml_events_drain(&nvml->events, nvml->devices, nvml->n_devices);
    }
    for (size_t i = 0; i < nvml->n_devices; i++) {
        nvml_device_sample(&nvml->devices[i], now_ns);
    }
    return 0;
}

static int nvml_collect(void *state, struct snapshot *out, struct error *err) {
    struct nvml *nvml = state;
    nvml_events_drain(&nvml->events, nvml->devices, nvml->n_devices);
    int result = 0;
    for (size_t i = 0; i < nvml->n_devices; i++) {
        struct nvml_device *device = &nvml->devices[i];
        nvml_device_collect(device, out);
        bool driver_gone = device->state == NVML_NO_DRIVER;
        if (driver_gone || (device->state == NVML_LOST && result == 0)) {
            result = error_set(err, driver_gone ? -ENODEV : -EIO, "gpu %u: %s (%u)", device->index,
                               nvml_library_words(&nvml->library, device->code), device->code);
        }
    }
    if (nvml->prototype) {
        gpu_add_prototype(out);
    }
    return result;
}

const struct metric_desc nvml_descs[NVML_N_METRICS + 1] = {NVML_METRICS(METRIC_LIST_DESC)};

static const struct metric_desc *const tables[] = {gpu_descs, nvml_descs, NULL};

const struct collector nvml_collector = {
    .name = "nvml",
    .help = "NVIDIA GPUs: load, memory, power, clocks, temperatures, errors, processes",
    .tables = tables,
    .options = nvml_options,
    .on_by_default = true,
    .open = nvml_open,
    .sample = nvml_sample,
    .collect = nvml_collect,
    .close = nvml_close,
};
