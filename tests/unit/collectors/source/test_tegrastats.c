#include "collectors/source/tegrastats.h"

#include <math.h>
#include <unity.h>

#include "tests/unit/collectors/source/tegrastats_play.h"

static void test_records_arrive(void) {
    char arguments[64];
    open_playing(RECORD OTHER);
    TEST_ASSERT_NULL(latest());
    TEST_ASSERT_TRUE(isnan(tegrastats_age_seconds(tegrastats, now())));
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
    TEST_ASSERT_EQUAL_DOUBLE(0.07, latest()->cpus[0].load_ratio);
    TEST_ASSERT_EQUAL_DOUBLE(48.5, latest()->zones[0].celsius);
    TEST_ASSERT_TRUE(tegrastats_age_seconds(tegrastats, now()) < 10);
    TEST_ASSERT_TRUE(started(arguments) > 0);
    TEST_ASSERT_EQUAL_STRING(" --interval 5", arguments);
    struct tegrastats_stats stats = tegrastats_stats(tegrastats);
    TEST_ASSERT_EQUAL_UINT64(0, stats.n_restarts);
    TEST_ASSERT_EQUAL_UINT64(0, stats.n_parse_errors);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(1, stats.n_unknown_tokens);
}

static void test_first_record_has_no_cpu_load(void) {
    open_playing(RECORD "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    TEST_ASSERT_TRUE(isnan(latest()->cpus[0].load_ratio));
    TEST_ASSERT_EQUAL_DOUBLE(1190e6, latest()->cpus[0].frequency_hertz);
    TEST_ASSERT_EQUAL_DOUBLE(0, latest()->cpus[1].online);
}

static void test_lines_in_pieces(void) {
    static const char *const plays[] = {
        "!split 1\n" RECORD OTHER,
        "!split 7\n" RECORD OTHER,
        "!split 83\n" RECORD OTHER,
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        open_playing(plays[i]);
        for (int n = 0; n < 3; n++) {
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 1024));
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(RAM_OF(latest()) == 2048));
        }
        TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
        tearDown();
    }
}

static void test_noise_is_counted(void) {
    open_playing("WARNING: not invoking as root\n\n\r\n!garbage 300\n" RECORD
                 "!long 4096\n!long 4097\n!long 20000\n" OTHER "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
    /* Garbage may have newlines of its own. */
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(5, n_parse_errors());
    TEST_ASSERT_LESS_THAN_UINT64(15, n_parse_errors());
}

/* A record may fill the buffer to the last byte, but not more. */
static void test_longest_line(void) {
    static const struct {
        int padding;
        bool fits;
    } cases[] = {{4096, true}, {4097, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf play CLEANUP_BUF = {0};
        buf_printf(&play, "%-*s\n%s!stall\n", cases[i].padding, "RAM 1/2MB", OTHER);
        open_playing(buf_str(&play));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
        TEST_ASSERT_EQUAL_UINT64(cases[i].fits ? 0 : 1, n_parse_errors());
        tearDown();
    }
}

static void test_old_data_is_no_data(void) {
    open_playing(RECORD "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    int64_t at = now();
    TEST_ASSERT_NOT_NULL(tegrastats_latest(tegrastats, at + 2 * CLOCK_NS_PER_SEC));
    TEST_ASSERT_NULL(tegrastats_latest(tegrastats, at + 4 * CLOCK_NS_PER_SEC));
    TEST_ASSERT_TRUE(tegrastats_age_seconds(tegrastats, at + 4 * CLOCK_NS_PER_SEC) >= 4);
}

void suiteSetUp(void) {
    enum { MESON_SKIP = 77 };
    prepare();
    if (!can_start()) {
        clean_up();
        puts("SKIP: cannot start programs of this architecture");
        exit(MESON_SKIP);
    }
}

int suiteTearDown(int failures) {
    clean_up();
    return failures;
}
