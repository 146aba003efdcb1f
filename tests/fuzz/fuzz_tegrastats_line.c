/* Covers collectors/source/tegrastats_line.c. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "collectors/source/tegrastats_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_name(const char *name) {
    assert(name[0] != '\0' && memchr(name, '\0', TEGRASTATS_NAME_SIZE) != NULL);
}

/* What holds for every record: full lists end where they should, no value is infinite. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct tegrastats_line line;
    int r = tegrastats_line_parse((const char *)data, len, &line);
    assert(r == 0 || r == -EINVAL);
    if (r < 0) {
        return 0;
    }
    assert(line.ram.total_bytes >= 0 && isfinite(line.ram.total_bytes));
    assert(line.n_cpus <= TEGRASTATS_MAX_CPUS && line.n_gpcs <= TEGRASTATS_MAX_GPCS);
    for (size_t i = 0; i < line.n_engines; i++) {
        check_name(line.engines[i].name);
        assert(!isinf(line.engines[i].frequency_hertz));
    }
    for (size_t i = 0; i < line.n_zones; i++) {
        check_name(line.zones[i].name);
        assert(line.zones[i].celsius > -256);
    }
    for (size_t i = 0; i < line.n_rails; i++) {
        check_name(line.rails[i].name);
        assert(isfinite(line.rails[i].watts));
    }
    return 0;
}
