#include <stdio.h>
#include <string.h>

#include "collectors/nvml/device.h"
#include "collectors/source/rows.h"

/* The instances that a GPU is split into. They come and go while we look. */

enum { MAX_INSTANCES = 64 };

struct instance {
    struct row row;        /* its uuid */
    struct labels *labels; /* NULL: it could not be identified */
    struct labels *info;
};

struct mig {
    bool never;
    struct rows instances;
};

static void instance_finish(void *row) {
    struct instance *instance = row;
    labels_destroy(instance->labels);
    labels_destroy(instance->info);
}

static void mig_open(void *state, const struct nvml_device *device) {
    struct mig *mig = state;
    const struct nvml_library *library = device->library;
    mig->never = library->mig_mode == NULL || library->mig_max == NULL ||
                 library->mig_handle == NULL || library->gpu_instance == NULL ||
                 library->compute_instance == NULL;
    mig->instances = (struct rows){sizeof(struct instance), instance_finish, MAX_INSTANCES};
}

static bool instance_init(struct instance *instance, const struct nvml_device *device,
                          struct nvml_handle *handle) {
    char name[NVML_MAX_TEXT] = "", gpu[16], ids[2][16];
    const char *uuid = instance->row.key;
    unsigned gpu_instance = 0, compute_instance = 0;
    device->library->name(handle, name, sizeof(name));
    if (device->library->gpu_instance(handle, &gpu_instance) != NVML_CODE_SUCCESS ||
        device->library->compute_instance(handle, &compute_instance) != NVML_CODE_SUCCESS) {
        return false;
    }
    snprintf(gpu, sizeof(gpu), "%u", device->index);
    snprintf(ids[0], sizeof(ids[0]), "%u", gpu_instance);
    snprintf(ids[1], sizeof(ids[1]), "%u", compute_instance);
    instance->labels = labels_with(device->labels, "mig_uuid", uuid);
    instance->info = labels_render("gpu", gpu, "uuid", device->uuid, "mig_uuid", uuid, "name", name,
                                   "gpu_instance", ids[0], "compute_instance", ids[1]);
    return true;
}

static void collect_instance(struct nvml_device *device, const struct instance *instance,
                             struct nvml_handle *handle, struct snapshot *out) {
    nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_INFO], instance->info, 1, 1);
    double memory[NVML_MEMORY_VALUES];
    if (nvml_read_memory(device->library, handle, memory) == NVML_CODE_SUCCESS) {
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MEMORY_USED], instance->labels,
                        memory[0], NVML_MAX_BYTES);
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MEMORY_TOTAL], instance->labels,
                        memory[2], NVML_MAX_BYTES);
    }
    struct nvml_attributes attributes = {0};
    if (NVML_CALL(device->library->mig_attributes, handle, &attributes) == NVML_CODE_SUCCESS) {
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MULTIPROCESSORS], instance->labels,
                        attributes.multiprocessors, 1 << 16);
    }
}

static unsigned count_instances(struct nvml_device *device, struct mig *mig) {
    unsigned current = 0, pending = 0, n = 0;
    if (mig->never) {
        return 0;
    }
    unsigned code = device->library->mig_mode(device->handle, &current, &pending);
    if (!nvml_device_check(device, code, &mig->never) || current != 1) {
        return 0;
    }
    code = device->library->mig_max(device->handle, &n);
    return nvml_device_check(device, code, &mig->never) ? n : 0;
}

static void see_instance(struct nvml_device *device, struct mig *mig, struct nvml_handle *handle,
                         struct snapshot *out) {
    char uuid[NVML_MAX_TEXT] = "";
    if (device->library->uuid(handle, uuid, sizeof(uuid)) != NVML_CODE_SUCCESS) {
        return;
    }
    struct instance *instance = rows_see(&mig->instances, (struct scan_word){uuid, strlen(uuid)});
    if (instance != NULL && !instance->row.again &&
        (instance->labels != NULL || instance_init(instance, device, handle))) {
        collect_instance(device, instance, handle, out);
    }
}

static void mig_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct mig *mig = state;
    unsigned n = count_instances(device, mig);
    for (unsigned i = 0; i < n && i < MAX_INSTANCES && device->state == NVML_GOOD; i++) {
        struct nvml_handle *handle = NULL;
        unsigned code = device->library->mig_handle(device->handle, i, &handle);
        if (nvml_device_check(device, code, NULL)) {
            see_instance(device, mig, handle, out);
        }
    }
    rows_sweep(&mig->instances);
}

static void mig_close(void *state) {
    struct mig *mig = state;
    rows_finish(&mig->instances);
}

const struct nvml_part nvml_mig_part = {
    .state_size = sizeof(struct mig),
    .open = mig_open,
    .collect = mig_collect,
    .close = mig_close,
};
