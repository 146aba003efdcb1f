#include "collectors/host/parse.h"

#include <errno.h>
#include <unity.h>

#include "collectors/source/procfs.h"
#include "exporter/core/cleanup.h"

static void test_lines_and_names(void) {
    static const struct {
        const char *line;
        uint64_t value;
        const char *name; /* NULL: not understood */
    } cases[] = {
        {"MemTotal:       24682416 kB\n", 24682416, "node_memory_MemTotal_bytes"},
        {"Active(anon):       1164 kB", 1164, "node_memory_Active_anon_bytes"},
        {"HugePages_Total:       0", 0, "node_memory_HugePages_Total"},
        {"Hugepagesize:       2048 kB", 2048, "node_memory_Hugepagesize_bytes"},
        {"Committed_AS:      73420 kB", 73420, "node_memory_Committed_AS_bytes"},
        {"Odd-name.x(y)z: 1", 1, "node_memory_Odd_name_x_yz"},
        {"V\xc3\xa4: 1", 1, "node_memory_V__"},
        {"MemTotal 24682416 kB", 0, NULL},
        {": 24682416 kB", 0, NULL},
        {"MemTotal:", 0, NULL},
        {"MemTotal: kB", 0, NULL},
        {"MemTotal: 1 MB", 0, NULL},
        {"MemTotal: 1 kB more", 0, NULL},
        {"MemTotal: -1 kB", 0, NULL},
        {"MemTot", 0, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct meminfo_line line;
        int r = meminfo_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].name != NULL ? 0 : -EINVAL, r, cases[i].line);
        if (r == 0) {
            struct buf name CLEANUP_BUF = {0};
            host_memory_name(&name, line.key, line.kilobytes);
            TEST_ASSERT_EQUAL_STRING(cases[i].name, buf_str(&name));
            TEST_ASSERT_EQUAL_UINT64(cases[i].value, line.value);
        }
    }
}
