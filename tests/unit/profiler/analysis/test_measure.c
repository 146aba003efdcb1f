#include "profiler/analysis/measure.h"

#include <math.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void test_names_in_gates(void) {
    static const struct {
        const char *measure, *text, *stat; /* NULL: does not mean it */
    } rows[] = {
        {"fps", "fps", "mean"},
        {"fps", "fps.p50", "p50"},
        {"fps", "app.fps.max", "max"},
        {"fps", "fps_total", NULL},
        {"fps_total", "fps", NULL},
        {"fps", "fp", NULL},
        {"fps", "", NULL},
        {"fps", "fps.p51", NULL},
        {"fps{cam=\"a\"}", "fps.min", "min"},
        {"fps{cam=\"a\"}", "fps{cam=\"a\"}", "mean"},
        {"fps{cam=\"a\"}", "fps{cam=\"b\"}", NULL},
        {"memory.peak_bytes", "memory.peak", "mean"},
        {"memory.peak_bytes", "memory.peak_bytes.max", "max"},
        {"memory.peak_bytes", "memory", NULL},
        {"memory.bytes", "memory", "mean"},
        {"gpu.memory.new_bytes{of=\"machine\"}", "gpu.memory.new.max", "max"},
        {"gpu.memory.new_bytes", "gpu.memory", NULL},
        {"energy_per_frame.joules", "energy_per_frame", "mean"},
        {"temperature.celsius{zone=\"cpu\"}", "temperature.max", "max"},
        {"inference_seconds", "inference.p99", "p99"},
        {"wall.seconds", "wall", "mean"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct measure measure = {.name = (char *)rows[i].measure};
        enum measure_stat stat;
        bool matches = measure_matches(&measure, rows[i].text, &stat);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].stat != NULL, matches, rows[i].text);
        if (matches) {
            TEST_ASSERT_EQUAL_STRING_MESSAGE(rows[i].stat, measure_stats[stat], rows[i].text);
        }
    }
}

static void test_runs_sum_up(void) {
    struct measures measures = {0};
    struct measure *measure = measures_add(&measures, "wall.seconds", "s", BETTER_NEITHER);
    TEST_ASSERT_NOT_NULL(measure);
    measure_sum_up_runs(measure);
    TEST_ASSERT_TRUE(isnan(measure->mean));
    measure_add_run(measure, 2, 3);
    measure_add_run(measure, 3, 5);
    measure_sum_up_runs(measure);
    TEST_ASSERT_EQUAL_DOUBLE(4, measure->mean);
    TEST_ASSERT_EQUAL_DOUBLE(sqrt(2), measure->sd);
    TEST_ASSERT_EQUAL_DOUBLE(3, measure->min);
    TEST_ASSERT_EQUAL_DOUBLE(5, measure->max);
    TEST_ASSERT_TRUE(isnan(measure->p50));
    TEST_ASSERT_EQUAL(3, measure->run_numbers[1]);
    TEST_ASSERT_EQUAL_PTR(measure, measures_find(&measures, "wall.seconds"));
    TEST_ASSERT_NULL(measures_find(&measures, "wall"));
    measures_finish(&measures);
}
