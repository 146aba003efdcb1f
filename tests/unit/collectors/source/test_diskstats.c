#include "collectors/source/diskstats.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *line;
        const char *device; /* NULL: not understood */
        size_t n_fields;
    } cases[] = {
        {" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", "vda", 17},
        {" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", "vda", 17},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "sda", 15},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1", "sda", 11},
        {"104 0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11", "cciss/c0d0", 11},
        {"253 0 dm-0\"\\\xff 1 2 3 4 5 6 7 8 9 10 11", "dm-0\"\\\xff", 11},
        {"8 0 17 1 2 3 4 5 6 7 8 9 10 11", "17", 11},
        {"8 1 sda1 1 2 3 4", NULL, 0},
        {"8 0 sda 1 2 3 4 5 6 7 8 9 10", NULL, 0},
        {"8 0 sda 1 2 3 4 five 6 7 8 9 10 11", NULL, 0},
        {"8 sda 1 2 3 4 5 6 7 8 9 10 11", NULL, 0},
        {"8 0", NULL, 0},
        {"garbage", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct diskstats_line line;
        int r = diskstats_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].device != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.device, cases[i].device), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(cases[i].n_fields, line.n_fields);
            TEST_ASSERT_EQUAL_UINT64(line.n_fields, line.fields[line.n_fields - 1]);
        }
    }
}
