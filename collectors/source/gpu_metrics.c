#include "collectors/source/gpu_metrics.h"

#include <stddef.h>

const struct metric_desc gpu_descs[GPU_N_METRICS + 1] = {GPU_METRICS(METRIC_LIST_DESC)};
