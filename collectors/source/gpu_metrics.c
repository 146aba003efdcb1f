#include "collectors/source/gpu_metrics.h"

#include <stddef.h>

const struct metric_desc gpu_descs[GPU_N_METRICS + 1] = {GPU_METRICS(METRIC_LIST_DESC)};

bool gpu_add_prototype(struct snapshot *out) {
    bool any = false;
    for (size_t i = 0, n = out->n_families; i < n; i++) {
        const struct family *family = &out->families[i];
        bool used = family->desc == &gpu_descs[GPU_MEMORY_USED];
        if (used || family->desc == &gpu_descs[GPU_MEMORY_TOTAL]) {
            snapshot_append(out, &gpu_descs[used ? GPU_PROTOTYPE_USED : GPU_PROTOTYPE_TOTAL],
                            family->samples, family->n_samples);
        }
        any = any || used;
    }
    return any;
}
