#include "collectors/source/follow.h"

#include <math.h>
#include <unity.h>

#include "exporter/core/clock.h"

static const struct metric_desc latest = {"watts", "Power.", METRIC_GAUGE};
static const struct metric_desc total = {"joules_total", "Energy.", METRIC_COUNTER};
static const struct metric_desc peak = {"peak_watts", "Peak.", METRIC_GAUGE};
static const struct follow_metrics metrics = {&latest, &total, &peak};

static struct follow follow;
static struct snapshot snapshot;

void setUp(void) {
    follow_init(&follow, 60 * CLOCK_NS_PER_SEC);
}

void tearDown(void) {
    snapshot_finish(&snapshot);
}

static void add(int64_t second, double value) {
    follow_add(&follow, second * CLOCK_NS_PER_SEC, second * CLOCK_NS_PER_SEC, value,
               2 * CLOCK_NS_PER_SEC);
}

static double shown(const struct follow_metrics *which, const struct metric_desc *desc) {
    snapshot_reset(&snapshot);
    follow_emit(&follow, which, 10 * CLOCK_NS_PER_SEC, NULL, &snapshot);
    for (size_t i = 0; i < snapshot.n_families; i++) {
        if (snapshot.families[i].desc == desc && snapshot.families[i].n_samples > 0) {
            return snapshot.families[i].samples[0].value;
        }
    }
    return NAN;
}

static void test_nothing_is_shown_before_the_first_value(void) {
    add(1, NAN);
    follow_emit(&follow, &metrics, CLOCK_NS_PER_SEC, NULL, &snapshot);
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_n_samples(&snapshot));
}

static void test_latest_total_and_peak(void) {
    add(1, 4);
    add(2, 8);
    TEST_ASSERT_EQUAL_DOUBLE(8, shown(&metrics, &latest));
    TEST_ASSERT_EQUAL_DOUBLE(6, shown(&metrics, &total));
    TEST_ASSERT_EQUAL_DOUBLE(8, shown(&metrics, &peak));
    add(3, NAN); /* what could not be read is missing; the counter stays */
    add(4, 2);
    add(5, NAN);
    TEST_ASSERT_TRUE(isnan(shown(&metrics, &latest)));
    TEST_ASSERT_EQUAL_DOUBLE(6, shown(&metrics, &total));
    TEST_ASSERT_EQUAL_DOUBLE(8, shown(&metrics, &peak));
}

static void test_a_name_that_is_missing_is_not_shown(void) {
    static const struct follow_metrics only_total = {.total = &total};
    add(1, 4);
    add(2, 4);
    TEST_ASSERT_EQUAL_DOUBLE(4, shown(&only_total, &total));
    TEST_ASSERT_EQUAL_UINT64(1, snapshot_n_samples(&snapshot));
}
