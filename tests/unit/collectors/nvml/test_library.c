#include "collectors/nvml/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static struct nvml_library library;
static struct error err;
static char path[512];

/* The path of one of the fake libraries. */
static const char *fake(const char *name) {
    const char *folder = getenv("WAAP_FAKES");
    snprintf(path, sizeof(path), "%s/%s", folder != NULL ? folder : "build/tests/fakes", name);
    return path;
}

static void play(const char *scenario) {
    char file[512];
    const char *root = getenv("WAAP_SOURCE_ROOT");
    snprintf(file, sizeof(file), "%s/tests/fixtures/nvml/%s.txt", root != NULL ? root : ".",
             scenario);
    setenv("FAKE_NVML", file, 1);
}

void setUp(void) {
    err = (struct error){{0}};
}

void tearDown(void) {
    nvml_library_close(&library);
}

static void test_finds_all_or_the_older_calls(void) {
    play("two-cards");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, nvml_library_open(&library, fake("libnvidia-ml.so.1"), &err),
                                  err.text);
    TEST_ASSERT_NOT_NULL(library.memory_v2);
    TEST_ASSERT_NOT_NULL(library.compute_processes);
    nvml_library_close(&library);
    TEST_ASSERT_EQUAL_INT_MESSAGE(
        0, nvml_library_open(&library, fake("libnvidia-ml-old.so.1"), &err), err.text);
    TEST_ASSERT_NULL(library.memory_v2);
    TEST_ASSERT_NULL(library.compute_processes);
    TEST_ASSERT_NOT_NULL(library.compute_processes_v1);
    TEST_ASSERT_NOT_NULL(library.pci_info);
    TEST_ASSERT_NOT_NULL(library.throttle_reasons);
}

/* What the collector jetson asks on a Thor. */
static void test_load_of_a_thor(void) {
    play("thor");
    TEST_ASSERT_EQUAL_INT(0, nvml_library_open(&library, fake("libnvidia-ml.so.1"), &err));
    struct nvml_handle *device = NULL;
    struct nvml_utilization utilization;
    TEST_ASSERT_EQUAL_UINT(0, library.handle(0, &device));
    TEST_ASSERT_EQUAL_UINT(0, library.utilization(device, &utilization));
    TEST_ASSERT_EQUAL_UINT(64, utilization.gpu);
}

static void test_failures(void) {
    TEST_ASSERT_EQUAL_INT(-ENODEV, nvml_library_open(&library, "/nonexistent.so.1", &err));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, "/nonexistent.so.1"), err.text);
    TEST_ASSERT_EQUAL_INT(-ENODEV, nvml_library_open(&library, "libm.so.6", &err));
    TEST_ASSERT_EQUAL_STRING("libm.so.6: lacks nvmlInit_v2", err.text);
    setenv("FAKE_NVML", "/nonexistent", 1);
    TEST_ASSERT_EQUAL_INT(-ENODEV, nvml_library_open(&library, fake("libnvidia-ml.so.1"), &err));
    TEST_ASSERT_EQUAL_STRING("NVML does not start: Driver Not Loaded (9)", err.text);
    TEST_ASSERT_NULL(library.dl);
}

static void test_verdicts(void) {
    static const struct {
        unsigned code;
        enum nvml_verdict verdict;
    } rows[] = {
        {0, NVML_GOOD},        {1, NVML_NO_DRIVER}, {2, NVML_NEVER},     {3, NVML_NEVER},
        {4, NVML_NEVER},       {6, NVML_NOT_NOW},   {9, NVML_NO_DRIVER}, {10, NVML_NOT_NOW},
        {13, NVML_NEVER},      {15, NVML_LOST},     {16, NVML_LOST},     {18, NVML_NO_DRIVER},
        {21, NVML_NOT_NOW},    {25, NVML_NEVER},    {28, NVML_LOST},     {999, NVML_NOT_NOW},
        {12345, NVML_NOT_NOW},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_INT(rows[i].verdict, nvml_verdict(rows[i].code));
    }
}
