#include "collectors/source/tegra_gpu.h"

#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_which_device_is_the_gpu(void) {
    static const struct {
        const char *name;
        bool gpu;
    } cases[] = {
        {"57000000.gpu", true},
        {"17000000.gp10b", true},
        {"17000000.gv11b", true},
        {"17000000.ga10b", true},
        {"17000000.gpu", true},
        {"gpu-gpc-0", true},
        {"gv11b", true},
        {"gpu", true},
        {"gpu.0", true},
        {"gk20a.0", true},
        {"gpu-nvd-0", false},
        {"15340000.vic", false},
        {"bwmgr", false},
        {"", false},
        {"13e40000.host1x", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].gpu, jetson_gpu_name_matches(cases[i].name),
                                  cases[i].name);
    }
}
