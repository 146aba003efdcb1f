#include "exporter/metrics/snapshot.h"

#include <unity.h>

enum { N_DESCS = 1000 };
static const struct metric_desc descs[N_DESCS];

static void test_samples_go_to_their_family(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct labels *labels CLEANUP_LABELS = labels_render("cpu", "0");
    snapshot_add(&snapshot, &descs[0], NULL, 1);
    snapshot_add(&snapshot, &descs[1], labels, 2);
    snapshot_add(&snapshot, &descs[0], labels, 3);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(3, snapshot_n_samples(&snapshot));
    const struct family *first = &snapshot.families[0];
    TEST_ASSERT_EQUAL_PTR(&descs[0], first->desc);
    TEST_ASSERT_EQUAL_UINT64(2, first->n_samples);
    TEST_ASSERT_NULL(first->samples[0].labels);
    TEST_ASSERT_EQUAL_STRING("", first->samples[0].suffix);
    TEST_ASSERT_EQUAL_DOUBLE(1, first->samples[0].value);
    TEST_ASSERT_EQUAL_PTR(labels, first->samples[1].labels);
    TEST_ASSERT_EQUAL_DOUBLE(3, first->samples[1].value);
    TEST_ASSERT_EQUAL_PTR(&descs[1], snapshot.families[1].desc);
    TEST_ASSERT_EQUAL_DOUBLE(2, snapshot.families[1].samples[0].value);
}

static void test_suffixes(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    static const char *const suffixes[] = {"_bucket", "_sum", "_count", ""};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        snapshot_add_suffixed(&snapshot, &descs[0], suffixes[i], NULL, (double)i);
    }
    TEST_ASSERT_EQUAL_UINT64(1, snapshot.n_families);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        TEST_ASSERT_EQUAL_STRING(suffixes[i], snapshot.families[0].samples[i].suffix);
        TEST_ASSERT_EQUAL_DOUBLE((double)i, snapshot.families[0].samples[i].value);
    }
}

/* Each round visits every family, `step` apart: 1 in order, 999 backwards, 7 jumping. */
static void fill(struct snapshot *snapshot, size_t n_rounds, size_t step) {
    for (size_t round = 0; round < n_rounds; round++) {
        for (size_t i = 0; i < N_DESCS; i++) {
            size_t family = i * step % N_DESCS;
            snapshot_add(snapshot, &descs[family], NULL, (double)(round * N_DESCS + family));
        }
    }
}

static void check_filled(const struct snapshot *snapshot, size_t n_rounds, size_t step) {
    TEST_ASSERT_EQUAL_UINT64(N_DESCS, snapshot->n_families);
    TEST_ASSERT_EQUAL_UINT64(n_rounds * N_DESCS, snapshot_n_samples(snapshot));
    for (size_t i = 0; i < N_DESCS; i++) {
        const struct family *family = &snapshot->families[i];
        size_t number = i * step % N_DESCS;
        TEST_ASSERT_EQUAL_PTR(&descs[number], family->desc);
        TEST_ASSERT_EQUAL_UINT64(n_rounds, family->n_samples);
        for (size_t round = 0; round < n_rounds; round++) {
            TEST_ASSERT_EQUAL_DOUBLE((double)(round * N_DESCS + number),
                                     family->samples[round].value);
        }
    }
}

static void test_grows_in_any_order(void) {
    static const size_t steps[] = {1, 999, 7};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
        fill(&snapshot, 20, steps[i]);
        check_filled(&snapshot, 20, steps[i]);
    }
}

static void test_reset_empties_and_keeps_memory(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    fill(&snapshot, 20, 1);
    const struct family *families = snapshot.families;
    const struct sample *samples = snapshot.families[N_DESCS - 1].samples;
    snapshot_reset(&snapshot);
    TEST_ASSERT_EQUAL_UINT64(0, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_n_samples(&snapshot));
    fill(&snapshot, 20, 7);
    check_filled(&snapshot, 20, 7);
    TEST_ASSERT_EQUAL_PTR(families, snapshot.families);
    TEST_ASSERT_EQUAL_PTR(samples, snapshot.families[N_DESCS - 1].samples);
    snapshot_reset(&snapshot);
    snapshot_add(&snapshot, &descs[3], NULL, 1);
    TEST_ASSERT_EQUAL_UINT64(1, snapshot_n_samples(&snapshot));
}

static void test_families_without_samples(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    snapshot_append(&snapshot, &descs[0], NULL, 0);
    snapshot_append(&snapshot, &descs[1], NULL, 0);
    snapshot_append(&snapshot, &descs[1], NULL, 0);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(0, snapshot_n_samples(&snapshot));
    snapshot_add(&snapshot, &descs[0], NULL, 1);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(1, snapshot.families[0].n_samples);
}

static void test_whole_families_are_appended(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    static const struct sample samples[] = {{.suffix = "", .value = 1},
                                            {.suffix = "_sum", .value = 2}};
    snapshot_append(&snapshot, &descs[0], samples, 2);
    snapshot_append(&snapshot, &descs[0], samples, 1);
    snapshot_append(&snapshot, &descs[1], samples, 0);
    snapshot_append(&snapshot, &descs[0], samples + 1, 1);
    snapshot_add(&snapshot, &descs[1], NULL, 4);
    TEST_ASSERT_EQUAL_UINT64(3, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(3, snapshot.families[0].n_samples);
    TEST_ASSERT_EQUAL_STRING("_sum", snapshot.families[0].samples[1].suffix);
    TEST_ASSERT_EQUAL_DOUBLE(1, snapshot.families[0].samples[2].value);
    TEST_ASSERT_EQUAL_PTR(&descs[1], snapshot.families[1].desc);
    TEST_ASSERT_EQUAL_DOUBLE(4, snapshot.families[1].samples[0].value);
    TEST_ASSERT_EQUAL_DOUBLE(2, snapshot.families[2].samples[0].value);
}
