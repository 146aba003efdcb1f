#include "collectors/source/net_dev.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_parse(void) {
    static const struct {
        const char *line;
        const char *device; /* NULL: not understood */
    } cases[] = {
        {"    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "lo"},
        {"  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "eth0"},
        {"br-1.2@x%y\xfe: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "br-1.2@x%y\xfe"},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", NULL},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n16", NULL},
        {"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x", NULL},
        {"eth0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", NULL},
        {": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", NULL},
        {"eth0:", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net_dev_line line;
        int r = net_dev_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].device != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.device, cases[i].device), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(1, line.fields[0]);
            TEST_ASSERT_EQUAL_UINT64(16, line.fields[15]);
        }
    }
}
