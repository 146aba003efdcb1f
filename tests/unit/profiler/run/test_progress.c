#include "profiler/run/progress.h"

#include <unity.h>

#include "exporter/core/clock.h"

static void test_line(void) {
    static const struct run_progress progress = {
        .target = "cpu", .run = 2, .n_runs = 5, .phase = "run", .phase_ns = 0};
    static const struct {
        struct run_live live;
        const char *text;
    } cases[] = {
        {{NAN, NAN, NAN, NAN, NAN, NAN, NAN}, "cpu 2/5  run  12.3 s"},
        {{29.71, 99, 1.452, 312.4 * (1 << 20), 0.672, 8.24, 61.4},
         "cpu 2/5  run  12.3 s  29.7 fps  CPU 145 %  312 MiB  GPU 67 %  8.2 W  61 °C"},
        {{NAN, 0, 0, 0, NAN, NAN, NAN}, "cpu 2/5  run  12.3 s  CPU 0 %  0 MiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text CLEANUP_BUF = {0};
        run_progress_format(&progress, &cases[i].live, 12345 * CLOCK_NS_PER_MS, &text);
        TEST_ASSERT_EQUAL_STRING(cases[i].text, buf_str(&text));
    }
}
