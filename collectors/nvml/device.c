#include "collectors/nvml/device.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectors/nvml/event.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

static const struct nvml_part *const parts[] = {
    &nvml_call_part, &nvml_energy_part,  &nvml_link_part,
    &nvml_mig_part,  &nvml_process_part, &nvml_sampler_part,
};
_Static_assert(ARRAY_LEN(parts) == NVML_N_PARTS, "a state for each");

static bool file_says(const char *path, const char *word) {
    struct buf text CLEANUP_BUF = {0};
    return file_read(path, &text, NULL) == 0 && strncmp(buf_str(&text), word, strlen(word)) == 0;
}

/* A laptop's GPU may power down while nobody asks it anything; the kernel tells without waking it.
 */
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
    if (library->cuda_version != NULL && library->cuda_version(&version) == NVML_CODE_SUCCESS) {
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
    if (library->driver_version != NULL) {
        library->driver_version(driver, sizeof(driver));
    }
    if (library->vbios_version != NULL) {
        library->vbios_version(device->handle, vbios, sizeof(vbios));
    }
    cuda_version(library, cuda, sizeof(cuda));
    bool has_pci =
        library->pci_info != NULL && library->pci_info(device->handle, &pci) == NVML_CODE_SUCCESS;
    const char *bus_id = pci.bus_id[0] != '\0' ? pci.bus_id : pci.bus_id_legacy;
    device->labels = labels_render("gpu", gpu, "uuid", device->uuid);
    device->info = labels_render("gpu", gpu, "uuid", device->uuid, "name", device->name,
                                 "pci_bus_id", has_pci ? bus_id : "", "driver_version", driver,
                                 "cuda_version", cuda, "vbios_version", vbios);
    if (has_pci) {
        find_runtime_status(device, &pci);
    }
}

static bool has_part(const struct nvml_device *device, size_t i) {
    return parts[i]->integrated || !device->config->integrated;
}

static void open_parts(struct nvml_device *device) {
    device->xids = nvml_xids_create(device->labels);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        device->parts[i] = has_part(device, i) ? parts[i]->open(device) : NULL;
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
    }
    nvml_xids_destroy(device->xids);
    labels_destroy(device->labels);
    labels_destroy(device->info);
    free(device->runtime_status);
    *device = (struct nvml_device){0};
}

void nvml_device_sample(struct nvml_device *device, int64_t now_ns) {
    if (is_suspended(device)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts) && device->state == NVML_GOOD; i++) {
        if (parts[i]->sample != NULL && has_part(device, i)) {
            parts[i]->sample(device, device->parts[i], now_ns);
        }
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
        if (has_part(device, i) && parts[i]->collect != NULL) {
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
