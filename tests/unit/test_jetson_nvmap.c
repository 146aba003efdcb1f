#include "collectors/jetson_nvmap.h"

#include <errno.h>
#include <stdio.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

static void test_rows(void) {
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

static void test_totals(void) {
    double bytes = 7;
    TEST_ASSERT_EQUAL_INT(
        0, jetson_nvmap_total("CLIENT PROCESS PID SIZE\nuser a 1 3K\n\ntotal 4K\n", &bytes));
    TEST_ASSERT_EQUAL_DOUBLE(4096, bytes);
    TEST_ASSERT_EQUAL_INT(-ENODATA, jetson_nvmap_total("user a 1 3K\n", &bytes));
    TEST_ASSERT_EQUAL_INT(-ENODATA, jetson_nvmap_total("", &bytes));
    TEST_ASSERT_EQUAL_DOUBLE(4096, bytes);
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_rows);
    RUN_TEST(test_totals);
    return UNITY_END();
}
