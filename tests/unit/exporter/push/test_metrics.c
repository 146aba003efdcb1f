#include "exporter/push/metrics.h"

#include <unity.h>

#include "tests/unit/snapshot_find.h"

static void test_descriptions_are_sound(void) {
    struct error err;
    for (size_t i = 0; push_metrics_all[i] != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(push_metrics_all[i], &err), err.text);
    }
}

static void test_all_are_said(void) {
    struct push_metrics metrics = {0};
    struct push_stats stats = {.n_series = 7, .n_owners = 3, .in_file = true, .updates = 99};
    for (size_t i = 0; i < PUSH_REASONS; i++) {
        stats.refused[i] = (struct push_refused){i == 0 ? "limit" : "invalid", i};
    }
    for (int round = 0; round < 2; round++) {
        struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
        push_metrics_collect(&metrics, &stats, round, &snapshot);
        TEST_ASSERT_EQUAL_DOUBLE(7, snapshot_find(&snapshot, "waap_push_series", "")->value);
        TEST_ASSERT_EQUAL_DOUBLE(
            0, snapshot_find(&snapshot, "waap_push_refused_total", "reason=\"limit\"")->value);
        TEST_ASSERT_EQUAL_UINT64(6 + (size_t)round + PUSH_REASONS,
                                 snapshot_count(&snapshot, "waap_push_"));
    }
    push_metrics_finish(&metrics);
}
