#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "collectors/source/tegra.h"
#include "exporter/core/cleanup.h"

static void test_chips(void) {
#define LIST(text) text, sizeof(text) - 1
    static const struct {
        const char *text;
        size_t len;
        const char *name; /* NULL: none */
    } cases[] = {
        {LIST("nvidia,p3509-0000+p3668-0000\0nvidia,tegra194\0"), "tegra194"},
        {LIST("nvidia,tegra210\0more\0"), "tegra210"},
        {LIST("nvidia,tegra264"), "tegra264"},
        {LIST("nvidia,tegra2641\0"), NULL},
        {LIST("nvidia,tegra99\0"), NULL},
        {LIST("raspberrypi,4-model-b\0brcm,bcm2711\0"), NULL},
        {LIST("tegra194\0"), NULL},
        {LIST("\0\0\0"), NULL},
        {LIST(""), NULL},
    };
#undef LIST
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct tegra_soc *soc = tegra_soc_parse(cases[i].text, cases[i].len);
        if (cases[i].name == NULL) {
            TEST_ASSERT_NULL_MESSAGE(soc, cases[i].text);
        } else {
            TEST_ASSERT_NOT_NULL_MESSAGE(soc, cases[i].text);
            TEST_ASSERT_EQUAL_STRING(cases[i].name, soc->name);
        }
    }
}

static void test_uuids(void) {
    static const struct {
        const char *serial;
        const char *uuid;
    } cases[] = {
        {"1421120000707", "IGPU-d7774e1a-04df-8290-914e-a521e6893e7b"},
        {"1421120000707\n", "IGPU-d7774e1a-04df-8290-914e-a521e6893e7b"},
        {"1421120000708", "IGPU-cc4bb8f2-f5ab-87be-864f-a82dce7cb193"},
        {"", ""},
        {"\n", ""},
        {"0", ""},
        {"0000000000000", ""},
        {"   ", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf uuid CLEANUP_BUF = {0};
        tegra_gpu_uuid(cases[i].serial, &uuid);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].uuid, buf_str(&uuid), cases[i].serial);
    }
}

static void test_whose_gpu_it_is(void) {
    static const struct {
        const char *name;
        bool integrated;
    } cases[] = {
        {"Orin (nvgpu)", true},
        {"NVIDIA Thor", true},
        {"Xavier", true},
        {"NVIDIA Tegra X2", true},
        {"NVIDIA RTX A6000", false},
        {"NVIDIA GeForce RTX 4090", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].integrated, tegra_gpu_is_integrated(cases[i].name),
                                  cases[i].name);
    }
}

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
