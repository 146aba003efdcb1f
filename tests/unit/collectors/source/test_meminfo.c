#include "collectors/source/meminfo.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_lines(void) {
    static const struct {
        const char *line;
        int result;
        const char *key;
        uint64_t value;
        bool kilobytes;
    } cases[] = {
        {"MemTotal:       24682416 kB\n", 0, "MemTotal", 24682416, true},
        {"Active(anon):       1164 kB", 0, "Active(anon)", 1164, true},
        {"HugePages_Total:       7", 0, "HugePages_Total", 7, false},
        {"MemTotal 24682416 kB", -EINVAL},
        {": 24682416 kB", -EINVAL},
        {"MemTotal:", -EINVAL},
        {"MemTotal: 1 MB", -EINVAL},
        {"MemTotal: 1 kB more", -EINVAL},
        {"MemTotal: -1 kB", -EINVAL},
        {"", -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct meminfo_line line;
        int r = meminfo_parse(cases[i].line, &line);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, r, cases[i].line);
        if (r == 0) {
            TEST_ASSERT_TRUE_MESSAGE(scan_word_equal(line.key, cases[i].key), cases[i].line);
            TEST_ASSERT_EQUAL_UINT64(cases[i].value, line.value);
            TEST_ASSERT_EQUAL(cases[i].kilobytes, line.kilobytes);
        }
    }
}
