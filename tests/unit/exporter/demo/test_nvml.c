#include "exporter/demo/nvml.h"

#include <string.h>
#include <unity.h>

#include "collectors/nvml/process_list.h"

static struct nvml_library library;
static struct demo_card cards[DEMO_N_CARDS];

void setUp(void) {
    TEST_ASSERT_EQUAL_INT(0, nvml_library_use(&library, &demo_nvml_library, NULL));
    for (unsigned i = 0; i < DEMO_N_CARDS; i++) {
        demo_card_init(&cards[i], i);
    }
    demo_nvml_update(cards);
}

void tearDown(void) {
    nvml_library_close(&library);
}

static struct nvml_handle *handle(unsigned index) {
    struct nvml_handle *device = NULL;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, library.handle(index, &device));
    return device;
}

static void test_two_cards_of_their_own(void) {
    unsigned n = 0;
    char first[64], second[64];
    struct nvml_handle *none;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, library.count(&n));
    TEST_ASSERT_EQUAL_UINT(2, n);
    library.uuid(handle(0), first, sizeof(first));
    library.uuid(handle(1), second, sizeof(second));
    TEST_ASSERT_TRUE(strcmp(first, second) != 0);
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_INVALID_ARGUMENT, library.handle(2, &none));
}

static void test_answers_are_what_the_card_does(void) {
    cards[1].load = 0.42;
    cards[1].watts = 77.5;
    cards[1].joules = 1234.5;
    cards[1].celsius = 61;
    cards[1].hertz = 1200e6;
    cards[1].memory_bytes = 0x1p32;
    demo_nvml_update(cards);
    struct nvml_utilization utilization;
    struct nvml_memory_v2 memory;
    unsigned milliwatts, celsius, mhz;
    unsigned long long millijoules;
    library.utilization(handle(1), &utilization);
    library.memory_v2(handle(1), &memory);
    library.power(handle(1), &milliwatts);
    library.energy(handle(1), &millijoules);
    library.temperature(handle(1), 0, &celsius);
    library.clock(handle(1), NVML_CLOCK_OF_SM, &mhz);
    TEST_ASSERT_EQUAL_UINT(42, utilization.gpu);
    TEST_ASSERT_EQUAL_UINT(77500, milliwatts);
    TEST_ASSERT_EQUAL_UINT64(1234500, millijoules);
    TEST_ASSERT_EQUAL_UINT(61, celsius);
    TEST_ASSERT_EQUAL_UINT(1200, mhz);
    TEST_ASSERT_EQUAL_UINT64(0x1p32, memory.used);
    TEST_ASSERT_EQUAL_UINT64(memory.total, memory.used + memory.free + memory.reserved);
    library.utilization(handle(0), &utilization);
    TEST_ASSERT_EQUAL_UINT_MESSAGE(0, utilization.gpu, "the other card is idle");
}

static void test_processes(void) {
    struct nvml_process_list list = {0};
    unsigned code = nvml_process_list_read(&list, &library, handle(0));
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_SUCCESS, code);
    TEST_ASSERT_EQUAL_size_t(1, list.n_uses);
    TEST_ASSERT_EQUAL_UINT(2214, list.uses[0].pid);
    nvml_process_list_finish(&list);
    unsigned n = 0;
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_INSUFFICIENT_SIZE,
                           library.process_loads(handle(0), NULL, &n, 0));
    TEST_ASSERT_EQUAL_UINT(1, n);
}

static void test_what_it_lacks_is_not_supported(void) {
    unsigned celsius;
    TEST_ASSERT_NULL(library.samples);
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_NOT_SUPPORTED,
                           library.threshold(handle(0), NVML_THRESHOLD_MEMORY_MAX, &celsius));
    TEST_ASSERT_EQUAL_UINT(NVML_CODE_INVALID_ARGUMENT, library.fan_v2(handle(0), 1, &celsius));
}
