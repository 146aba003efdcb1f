#pragma once

#include "collectors/nvml/types.h"

/* Visible as in the driver's library; nobody declares it before. */
#define EXPORT                                                                                     \
    _Pragma("GCC diagnostic ignored \"-Wmissing-prototypes\"")                                     \
        __attribute__((visibility("default")))

int fake_gpu(const struct nvml_handle *device);
struct nvml_handle *fake_handle(int gpu);

/* How often it was started, for tests that look it up. */
extern __attribute__((visibility("default"))) _Atomic unsigned fake_nvml_n_starts;
