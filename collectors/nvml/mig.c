#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/nvml/device.h"
#include "collectors/nvml/read.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

/* The instances that a GPU is split into. They come and go while we look. */

enum { MAX_INSTANCES = 64 };

struct instance {
    char uuid[NVML_MAX_TEXT];
    unsigned round;
    struct labels *labels;
    struct labels *info;
};

struct mig {
    bool never;
    unsigned round;
    struct instance instances[MAX_INSTANCES];
    size_t n_instances;
};

static void *mig_open(struct nvml_device *device) {
    struct mig *mig = mem_zalloc(1, sizeof(*mig));
    const struct nvml_library *library = device->library;
    mig->never = library->mig_mode == NULL || library->mig_max == NULL ||
                 library->mig_handle == NULL || library->gpu_instance == NULL ||
                 library->compute_instance == NULL;
    return mig;
}

static void instance_finish(struct instance *instance) {
    labels_destroy(instance->labels);
    labels_destroy(instance->info);
}

static bool instance_init(struct instance *instance, const struct nvml_device *device,
                          struct nvml_handle *handle, const char *uuid) {
    char name[NVML_MAX_TEXT] = "", gpu[16], ids[2][16];
    unsigned gpu_instance = 0, compute_instance = 0;
    device->library->name(handle, name, sizeof(name));
    if (device->library->gpu_instance(handle, &gpu_instance) != NVML_CODE_SUCCESS ||
        device->library->compute_instance(handle, &compute_instance) != NVML_CODE_SUCCESS) {
        return false;
    }
    snprintf(gpu, sizeof(gpu), "%u", device->index);
    snprintf(ids[0], sizeof(ids[0]), "%u", gpu_instance);
    snprintf(ids[1], sizeof(ids[1]), "%u", compute_instance);
    *instance = (struct instance){
        .labels = labels_with(device->labels, "mig_uuid", uuid),
        .info = labels_render("gpu", gpu, "uuid", device->uuid, "mig_uuid", uuid, "name", name,
                              "gpu_instance", ids[0], "compute_instance", ids[1]),
    };
    snprintf(instance->uuid, sizeof(instance->uuid), "%s", uuid);
    return true;
}

static struct instance *see_instance(struct mig *mig, const struct nvml_device *device,
                                     struct nvml_handle *handle) {
    char uuid[NVML_MAX_TEXT] = "";
    if (device->library->uuid(handle, uuid, sizeof(uuid)) != NVML_CODE_SUCCESS) {
        return NULL;
    }
    for (size_t i = 0; i < mig->n_instances; i++) {
        if (strcmp(mig->instances[i].uuid, uuid) == 0) {
            return &mig->instances[i];
        }
    }
    if (mig->n_instances == MAX_INSTANCES ||
        !instance_init(&mig->instances[mig->n_instances], device, handle, uuid)) {
        return NULL;
    }
    return &mig->instances[mig->n_instances++];
}

static void collect_instance(struct nvml_device *device, const struct instance *instance,
                             struct nvml_handle *handle, struct snapshot *out) {
    nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_INFO], instance->info, 1, 1);
    double memory[NVML_MAX_VALUES];
    if (nvml_read_memory(device->library, handle, NULL, memory) == NVML_CODE_SUCCESS) {
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MEMORY_USED], instance->labels,
                        memory[0], NVML_MAX_BYTES);
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MEMORY_TOTAL], instance->labels,
                        memory[2], NVML_MAX_BYTES);
    }
    struct nvml_attributes attributes = {0};
    if (device->library->mig_attributes != NULL &&
        device->library->mig_attributes(handle, &attributes) == NVML_CODE_SUCCESS) {
        nvml_device_add(device, out, &nvml_descs[NVML_NVIDIA_MIG_MULTIPROCESSORS], instance->labels,
                        attributes.multiprocessors, 1 << 16);
    }
}

static void sweep(struct mig *mig) {
    size_t kept = 0;
    for (size_t i = 0; i < mig->n_instances; i++) {
        if (mig->instances[i].round == mig->round) {
            mig->instances[kept++] = mig->instances[i];
        } else {
            instance_finish(&mig->instances[i]);
        }
    }
    mig->n_instances = kept;
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
    if (!nvml_device_check(device, code, &mig->never)) {
        return 0;
    }
    return n < MAX_INSTANCES ? n : MAX_INSTANCES;
}

static void mig_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct mig *mig = state;
    mig->round++;
    unsigned n = count_instances(device, mig);
    for (unsigned i = 0; i < n && device->state == NVML_GOOD; i++) {
        struct nvml_handle *handle = NULL;
        unsigned code = device->library->mig_handle(device->handle, i, &handle);
        if (!nvml_device_check(device, code, NULL)) {
            continue;
        }
        struct instance *instance = see_instance(mig, device, handle);
        if (instance != NULL && instance->round != mig->round) {
            instance->round = mig->round;
            collect_instance(device, instance, handle, out);
        }
    }
    sweep(mig);
}

static void mig_close(void *state) {
    struct mig *mig = state;
    for (size_t i = 0; i < mig->n_instances; i++) {
        instance_finish(&mig->instances[i]);
    }
    free(mig);
}

const struct nvml_part nvml_mig_part = {
    .open = mig_open,
    .collect = mig_collect,
    .close = mig_close,
};
