#include "collectors/nvml/process_list.h"

#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

#define UNKNOWN (~0ULL)

static struct nvml_library library;
static struct nvml_process_list list;
static unsigned n_calls;

void setUp(void) {
    library = (struct nvml_library){0};
    list = (struct nvml_process_list){0};
    n_calls = 0;
}

void tearDown(void) {
    nvml_process_list_finish(&list);
}

static unsigned give(const struct nvml_process *from, unsigned n_from, unsigned *n,
                     struct nvml_process *out) {
    unsigned room = *n;
    *n = n_from;
    if (n_from > room) {
        return NVML_CODE_INSUFFICIENT_SIZE;
    }
    memcpy(out, from, n_from * sizeof(*from));
    return NVML_CODE_SUCCESS;
}

static unsigned some_compute(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device;
    static const struct nvml_process all[] = {
        {30, 300, 0, 0}, {10, 100, 0, 0}, {20, UNKNOWN, 0, 0}, {40, UNKNOWN, 0, 0}, {0, 5, 0, 0}};
    return give(all, ARRAY_LEN(all), n, out);
}

static unsigned some_graphics(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device;
    static const struct nvml_process all[] = {
        {20, 200, 0, 0}, {10, 150, 0, 0}, {0x80000000U, 1, 0, 0}};
    return give(all, ARRAY_LEN(all), n, out);
}

static unsigned not_supported(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device, (void)n, (void)out;
    n_calls++;
    return NVML_CODE_NOT_SUPPORTED;
}

static unsigned lost(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device, (void)n, (void)out;
    return NVML_CODE_GPU_IS_LOST;
}

static unsigned endless(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device, (void)out;
    n_calls++;
    *n = *n * 2 + 1;
    return NVML_CODE_INSUFFICIENT_SIZE;
}

/* Says that there are more than it has written, as a broken driver may. */
static unsigned boastful(struct nvml_handle *device, unsigned *n, struct nvml_process *out) {
    (void)device;
    for (unsigned i = 0; i < *n; i++) {
        out[i] = (struct nvml_process){i + 1, 1, 0, 0};
    }
    *n = 1000000;
    return NVML_CODE_SUCCESS;
}

static unsigned old_compute(struct nvml_handle *device, unsigned *n, struct nvml_process_v1 *out) {
    (void)device;
    unsigned room = *n;
    *n = 2;
    if (room < 2) {
        return NVML_CODE_INSUFFICIENT_SIZE;
    }
    out[0] = (struct nvml_process_v1){7, 70};
    out[1] = (struct nvml_process_v1){8, 80};
    return NVML_CODE_SUCCESS;
}

static void test_a_process_in_both_lists_counts_once(void) {
    library.compute_processes = some_compute;
    library.graphics_processes = some_graphics;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, nvml_process_list_read(&list, &library, NULL));
    static const struct nvml_use expected[] = {{10, 150}, {20, 200}, {30, 300}, {40, UNKNOWN}};
    TEST_ASSERT_EQUAL_size_t(ARRAY_LEN(expected), list.n_uses);
    for (size_t i = 0; i < list.n_uses; i++) {
        TEST_ASSERT_EQUAL_UINT(expected[i].pid, list.uses[i].pid);
        TEST_ASSERT_EQUAL_UINT64(expected[i].bytes, list.uses[i].bytes);
    }
    TEST_ASSERT_EQUAL_UINT(2, list.n_impossible);
}

static void test_an_old_driver_has_shorter_entries(void) {
    library.compute_processes_v1 = old_compute;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, nvml_process_list_read(&list, &library, NULL));
    TEST_ASSERT_EQUAL_size_t(2, list.n_uses);
    TEST_ASSERT_EQUAL_UINT(8, list.uses[1].pid);
    TEST_ASSERT_EQUAL_UINT64(80, list.uses[1].bytes);
}

static void test_what_is_not_supported_is_asked_once(void) {
    library.compute_processes = not_supported;
    library.graphics_processes = some_graphics;
    for (int i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, nvml_process_list_read(&list, &library, NULL));
        TEST_ASSERT_EQUAL_size_t(2, list.n_uses);
    }
    TEST_ASSERT_EQUAL_UINT(1, n_calls);
}

static void test_codes(void) {
    TEST_ASSERT_EQUAL_INT(NVML_NEVER, nvml_verdict(nvml_process_list_read(&list, &library, NULL)));
    list = (struct nvml_process_list){0};
    library.compute_processes = some_compute;
    library.graphics_processes = lost;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_GPU_IS_LOST, nvml_process_list_read(&list, &library, NULL));
    library.compute_processes = lost;
    library.graphics_processes = some_graphics;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_GPU_IS_LOST, nvml_process_list_read(&list, &library, NULL));
}

static void test_a_list_that_grows_for_ever_is_given_up(void) {
    library.compute_processes = endless;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_INSUFFICIENT_SIZE,
                           nvml_process_list_read(&list, &library, NULL));
    TEST_ASSERT_LESS_THAN_UINT(20, n_calls);
}

static void test_no_more_is_read_than_there_was_room_for(void) {
    library.compute_processes = boastful;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, nvml_process_list_read(&list, &library, NULL));
    TEST_ASSERT_LESS_THAN_size_t(1000, list.n_uses);
}
