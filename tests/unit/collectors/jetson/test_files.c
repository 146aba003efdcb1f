#include "collectors/jetson/files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

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

static void test_mode(void) {
    static const struct {
        const char *text;
        int result;
        unsigned id;
    } cases[] = {
        {"pmode:0002\n", 0, 2},        {"pmode:0008 fmode:quiet\n", 0, 8},
        {"pmode:12", 0, 12},           {"pmode:\n", -EINVAL, 7},
        {"pmode:two\n", -EINVAL, 7},   {"pmode:00000000000000000009\n", -EINVAL, 7},
        {"fmode:quiet\n", -EINVAL, 7}, {"", -EINVAL, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned id = 7;
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, jetson_mode_parse(cases[i].text, &id),
                                      cases[i].text);
        TEST_ASSERT_EQUAL_UINT(cases[i].id, id);
    }
}

static void test_mode_names(void) {
    static const char config[] = "# a comment\n"
                                 "< POWER_MODEL ID=0 NAME=MAXN >\n"
                                 "CPU_ONLINE CORE_0 1\n"
                                 "\n"
                                 "<POWER_MODEL ID=4 NAME=GLUED>\n"
                                 "< POWER_MODEL ID=3 >\n"
                                 "< PM_CONFIG DEFAULT=2 >\n"
                                 "  < POWER_MODEL ID=2 NAME=MODE_15W_6CORE >";
    static const struct {
        unsigned id;
        const char *name; /* "": none */
    } cases[] = {{0, "MAXN"}, {2, "MODE_15W_6CORE"}, {3, ""}, {4, ""}, {9, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf name CLEANUP_BUF = {0};
        int r = jetson_mode_name(config, cases[i].id, &name);
        TEST_ASSERT_EQUAL_INT(cases[i].name[0] != '\0' ? 0 : -ENOENT, r);
        TEST_ASSERT_EQUAL_STRING(cases[i].name, buf_str(&name));
    }
}

static void test_nvmap_rows(void) {
    static const struct {
        const char *line;
        int result;
        bool total;
        const char *process;
        uint64_t pid;
        double bytes;
    } cases[] = {
        {"user                         python3    12345     1234567K", 0, false, "python3", 12345,
         1234567.0 * 1024},
        {"user     my plugin 2      7     4096K\nnext", 0, false, "my plugin 2", 7, 4096 * 1024},
        {"user\tXorg\t6012\t8192", 0, false, "Xorg", 6012, 8192},
        {"total                                              2345678K", 0, true, "", 0,
         2345678.0 * 1024},
        {"total 0K", 0, true, "", 0, 0},
        {"CLIENT                        PROCESS      PID        SIZE", -ENODATA},
        {"kernel            3K", -ENODATA},
        {"user    12345     1234567K", -ENODATA},
        {"user    python3    12345     many", -EINVAL},
        {"user    python3    12345     K", -EINVAL},
        {"user    python3    12345     99999999999999999999999K", -EINVAL},
        {"total", -EINVAL},
        {"", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jetson_nvmap_line line = {0};
        int r = jetson_nvmap_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            char process[64];
            snprintf(process, sizeof(process), "%.*s", (int)line.process.len,
                     line.process.len > 0 ? line.process.text : "");
            TEST_ASSERT_EQUAL_MESSAGE(cases[i].total, line.total, cases[i].line);
            TEST_ASSERT_EQUAL_STRING(cases[i].process, process);
            TEST_ASSERT_EQUAL_UINT64(cases[i].pid, line.pid);
            TEST_ASSERT_EQUAL_DOUBLE(cases[i].bytes, line.bytes);
        }
    }
}

static void test_nvmap_totals(void) {
    double bytes = 7;
    TEST_ASSERT_EQUAL_INT(
        0, jetson_nvmap_total("CLIENT PROCESS PID SIZE\nuser a 1 3K\n\ntotal 4K\n", &bytes));
    TEST_ASSERT_EQUAL_DOUBLE(4096, bytes);
    TEST_ASSERT_EQUAL_INT(-ENODATA, jetson_nvmap_total("user a 1 3K\n", &bytes));
    TEST_ASSERT_EQUAL_INT(-ENODATA, jetson_nvmap_total("", &bytes));
    TEST_ASSERT_EQUAL_DOUBLE(4096, bytes);
}

static void test_zones_keep_their_names_from_release_to_release(void) {
    static const struct {
        const char *type;
        const char *zone;
    } cases[] = {
        {"CPU-therm", "cpu"},         {"cpu-thermal", "cpu"},   {"thermal-fan-est", "thermal"},
        {"Tboard_tegra", "tboard"},   {"iwlwifi_1", "iwlwifi"}, {"tj-therm", "tj"},
        {"soc012-thermal", "soc012"}, {"max170xx", "max170xx"}, {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf zone CLEANUP_BUF = {0};
        jetson_zone_name(&zone, cases[i].type);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].zone, buf_str(&zone), cases[i].type);
    }
}
