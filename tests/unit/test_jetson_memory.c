#include "collectors/jetson_memory.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

static void test_free_blocks(void) {
    static const struct {
        const char *text;
        int result;
        unsigned order;
        uint64_t n_blocks;
    } cases[] = {
        {"Node 0, zone   Normal   1 2 3 4 5 6 7 8 9 10 11 \n", 0, 10, 11},
        {"Node 0, zone DMA 1 0 0 5 0 0\nNode 0, zone Normal 1 2 3 4 0 0\n", 0, 3, 9},
        {"Node 0, zone DMA 0 0\nNode 1, zone Normal 0 0 0 7", 0, 3, 7},
        {"Node 0, zone Normal 1 0 0\n", 0, 0, 1},
        {"Node 0, zone Normal 0 0 0\n", -ENODATA},
        {"", -ENODATA},
        {"Node 0, zone Normal\n", -EINVAL},
        {"Node 0, zone Normal 1 x 3\n", -EINVAL},
        {"garbage\n", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jetson_free_blocks blocks = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            cases[i].result, jetson_buddyinfo_parse(cases[i].text, &blocks), cases[i].text);
        TEST_ASSERT_EQUAL_UINT_MESSAGE(cases[i].order, blocks.order, cases[i].text);
        TEST_ASSERT_EQUAL_UINT64(cases[i].n_blocks, blocks.n_blocks);
    }
}

static void test_iram(void) {
    static const struct {
        const char *text;
        int result;
        double bytes;
    } cases[] = {
        {"0x0003f000\n", 0, 258048},
        {"0x3F000", 0, 258048},
        {"0x0", 0, 0},
        {"0x", -EINVAL, 7},
        {"3f000", -EINVAL, 7},
        {"0xzz\n", -EINVAL, 7},
        {"", -EINVAL, 7},
        {"0x00000000000000000001", -EINVAL, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double bytes = 7;
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, jetson_iram_parse(cases[i].text, &bytes),
                                      cases[i].text);
        TEST_ASSERT_EQUAL_DOUBLE(cases[i].bytes, bytes);
    }
}

static void test_meminfo(void) {
    double info[MEMINFO_N_FIELDS];
    jetson_meminfo_parse("MemTotal:  10 kB\nMemFree: lots\nCached:  3 kB\nOdd\n"
                         "NvMapMemUsed:  2 kB\nSwapTotal:  0 kB",
                         info);
    TEST_ASSERT_EQUAL_DOUBLE(10240, info[MEMINFO_TOTAL]);
    TEST_ASSERT_EQUAL_DOUBLE(3072, info[MEMINFO_CACHED]);
    TEST_ASSERT_EQUAL_DOUBLE(2048, info[MEMINFO_NVMAP_USED]);
    TEST_ASSERT_EQUAL_DOUBLE(0, info[MEMINFO_SWAP_TOTAL]);
    TEST_ASSERT_TRUE(isnan(info[MEMINFO_FREE]) && isnan(info[MEMINFO_BUFFERS]) &&
                     isnan(info[MEMINFO_SWAP_FREE]));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_free_blocks);
    RUN_TEST(test_iram);
    RUN_TEST(test_meminfo);
    return UNITY_END();
}
