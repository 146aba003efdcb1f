#include "collectors/nvml/device.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/nvml/event.h"
#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* A GPU that may power down is left alone for this long once it has been idle for that long. */
#define REST_NS (10 * CLOCK_NS_PER_SEC)
#define REST_AFTER_NS (5 * CLOCK_NS_PER_SEC)

#define PART(name) &nvml_##name##_part,

static const struct nvml_part *const parts[] = {NVML_PARTS(PART)};
_Static_assert(ARRAY_LEN(parts) == NVML_N_PARTS, "a state for each");

static bool file_says(const char *path, const char *word) {
    struct buf text CLEANUP_BUF = {0};
    return file_read(path, &text, NULL) == 0 && strncmp(buf_str(&text), word, strlen(word)) == 0;
}

/* A laptop's GPU powers down if it is left alone; reading the kernel's file does not wake it. */
static void find_runtime_status(struct nvml_device *device, const struct nvml_pci_info *pci) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/bus/pci/devices/%04x:%02x:%02x.0/power/", device->config->sysfs,
               pci->domain, pci->bus, pci->device);
    size_t len = path.len;
    buf_add_str(&path, "control");
    if (!file_says(buf_str(&path), "auto")) {
        return;
    }
    buf_truncate(&path, len);
    buf_add_str(&path, "runtime_status");
    device->runtime_status = buf_take(&path);
}

static bool is_suspended(const struct nvml_device *device) {
    return device->runtime_status != NULL && file_says(device->runtime_status, "suspended");
}

/* 12040 is 12.4. */
static void cuda_version(const struct nvml_library *library, char *out, size_t len) {
    int version;
    if (NVML_CALL(library->cuda_version, &version) == NVML_CODE_SUCCESS) {
        snprintf(out, len, "%d.%d", version / 1000, version % 1000 / 10);
    }
}

static void identify(struct nvml_device *device) {
    const struct nvml_library *library = device->library;
    char gpu[16], cuda[32] = "", driver[NVML_MAX_TEXT] = "", vbios[NVML_MAX_TEXT] = "";
    struct nvml_pci_info pci = {0};
    snprintf(gpu, sizeof(gpu), "%u", device->config->integrated ? 0 : device->index);
    library->name(device->handle, device->name, sizeof(device->name));
    if (library->uuid(device->handle, device->uuid, sizeof(device->uuid)) != NVML_CODE_SUCCESS &&
        device->config->uuid != NULL) {
        snprintf(device->uuid, sizeof(device->uuid), "%s", device->config->uuid);
    }
    (void)NVML_CALL(library->driver_version, driver, sizeof(driver));
    (void)NVML_CALL(library->vbios_version, device->handle, vbios, sizeof(vbios));
    cuda_version(library, cuda, sizeof(cuda));
    bool has_pci = NVML_CALL(library->pci_info, device->handle, &pci) == NVML_CODE_SUCCESS;
    const char *bus_id = pci.bus_id[0] != '\0' ? pci.bus_id : pci.bus_id_legacy;
    device->labels = labels_render("gpu", gpu, "uuid", device->uuid);
    device->info = labels_render("gpu", gpu, "uuid", device->uuid, "name", device->name,
                                 "pci_bus_id", has_pci ? bus_id : "", "driver_version", driver,
                                 "cuda_version", cuda, "vbios_version", vbios);
    if (has_pci) {
        find_runtime_status(device, &pci);
    }
}

static void open_parts(struct nvml_device *device) {
    device->xids = nvml_xids_create(device->labels);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i]->integrated || !device->config->integrated) {
            device->parts[i] = mem_zalloc(1, parts[i]->state_size);
            parts[i]->open(device->parts[i], device);
        }
    }
}

/* All that is known of a GPU that does not answer. */
static void name_lost(struct nvml_device *device) {
    char gpu[16];
    snprintf(gpu, sizeof(gpu), "%u", device->index);
    device->labels = labels_render("gpu", gpu);
}

int nvml_device_init(struct nvml_device *device, const struct nvml_library *library,
                     const struct nvml_config *config, unsigned index, struct error *err) {
    *device = (struct nvml_device){.index = index, .library = library, .config = config};
    unsigned code = library->handle(index, &device->handle);
    bool good = nvml_device_check(device, code, NULL);
    if (!good && device->state != NVML_LOST) {
        return error_set(err, -ENODEV, "gpu %u: %s (%u)", index, nvml_library_words(library, code),
                         code);
    }
    if (good) {
        identify(device);
        open_parts(device);
    } else {
        name_lost(device);
    }
    return 0;
}

void nvml_device_finish(struct nvml_device *device) {
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (device->parts[i] != NULL) {
            parts[i]->close(device->parts[i]);
        }
        free(device->parts[i]);
    }
    nvml_xids_destroy(device->xids);
    labels_destroy(device->labels);
    labels_destroy(device->info);
    free(device->runtime_status);
    *device = (struct nvml_device){0};
}

void nvml_device_sample(struct nvml_device *device, int64_t now_ns) {
    if (now_ns < device->rest_until_ns || is_suspended(device)) {
        return;
    }
    device->busy_ns = device->busy_ns == 0 ? now_ns : device->busy_ns;
    for (size_t i = 0; i < ARRAY_LEN(parts) && device->state == NVML_GOOD; i++) {
        if (device->parts[i] != NULL && parts[i]->sample != NULL) {
            parts[i]->sample(device, device->parts[i], now_ns);
        }
    }
    if (device->runtime_status != NULL && now_ns - device->busy_ns >= REST_AFTER_NS) {
        device->rest_until_ns = now_ns + REST_NS;
    }
}

static void collect_identity(struct nvml_device *device, bool suspended, struct snapshot *out) {
    if (device->info != NULL) {
        snapshot_add(out, &gpu_descs[GPU_INFO], device->info, 1);
        nvml_xids_collect(device->xids, out);
    }
    if (device->runtime_status != NULL) {
        snapshot_add(out, &nvml_descs[NVML_NVIDIA_SUSPENDED], device->labels, suspended);
    }
}

void nvml_device_collect(struct nvml_device *device, struct snapshot *out) {
    bool suspended = is_suspended(device);
    if (!device->config->integrated) {
        collect_identity(device, suspended, out);
    }
    device->code = device->state == NVML_GOOD ? NVML_CODE_SUCCESS : device->code;
    for (size_t i = 0; i < ARRAY_LEN(parts) && device->state == NVML_GOOD && !suspended; i++) {
        if (device->parts[i] != NULL && parts[i]->collect != NULL) {
            parts[i]->collect(device, device->parts[i], out);
        }
    }
    snapshot_add(out, &nvml_descs[NVML_NVIDIA_IMPOSSIBLE_READINGS], device->labels,
                 device->n_impossible);
    snapshot_add(out, &nvml_descs[NVML_NVIDIA_NVML_RETURN_CODE], device->labels, device->code);
}

bool nvml_device_check(struct nvml_device *device, unsigned code, bool *never) {
    enum nvml_verdict verdict = nvml_verdict(code);
    if (verdict == NVML_LOST || verdict == NVML_NO_DRIVER) {
        device->state = verdict;
        device->code = code;
    }
    if (verdict == NVML_NEVER && never != NULL) {
        *never = true;
    }
    bool empty = code == NVML_CODE_NOT_FOUND || code == NVML_CODE_NO_DATA;
    if (verdict == NVML_NOT_NOW && !empty) {
        device->code = code;
    }
    return verdict == NVML_GOOD;
}

void nvml_device_add(struct nvml_device *device, struct snapshot *out,
                     const struct metric_desc *desc, const struct labels *labels, double value,
                     double max) {
    if (isnan(value)) {
        return;
    }
    if (value < 0 || value > max) {
        device->n_impossible++;
        return;
    }
    snapshot_add(out, desc, labels != NULL ? labels : device->labels, value);
}
