/* Covers collectors/cgroup/parse.c. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/parse.h"
#include "exporter/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The first byte says which file, the rest is its text up to the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (len == 0) {
        return 0;
    }
    char *text CLEANUP_FREE = strndup((const char *)data + 1, len - 1);
    if (text == NULL) {
        return 0;
    }
    struct cgroup_stats stats = {0};
    cgroup_stats_reset(&stats);
    const struct cgroup_file *file = &cgroup_files[data[0] % cgroup_n_files];
    file->parse(file, text, &stats);
    for (size_t i = 0; i < CGROUP_N_VALUES; i++) {
        assert(isnan(stats.values[i]) || stats.values[i] >= 0);
    }
    cgroup_stats_finish(&stats);
    return 0;
}
