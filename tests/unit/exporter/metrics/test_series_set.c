#include "exporter/metrics/series_set.h"

#include <stdio.h>
#include <unity.h>

static struct series_set set;

void setUp(void) {
    TEST_ASSERT_TRUE(series_set_prepare(&set, 4));
}

void tearDown(void) {
    series_set_finish(&set);
}

static void test_equal_series(void) {
    struct labels *a CLEANUP_LABELS = labels_render("x", "1");
    struct labels *same CLEANUP_LABELS = labels_render("x", "1");
    struct labels *clash CLEANUP_LABELS = labels_render("x", "2");
    struct labels *empty CLEANUP_LABELS = labels_render("x", "");
    clash->hash = a->hash;
    const struct {
        struct sample sample;
        bool added;
    } rows[] = {
        {{a, "", 1}, true},      {{same, "", 2}, false},  {{clash, "", 3}, true},
        {{clash, "", 4}, false}, {{a, "_sum", 5}, true},  {{same, "_sum", 6}, false},
        {{NULL, "", 7}, true},   {{empty, "", 8}, false}, {{NULL, "_sum", 9}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_INT(rows[i].added, series_set_add(&set, &rows[i].sample));
    }
}

static void test_prepared_again_it_is_empty(void) {
    const struct sample sample = {.suffix = ""};
    TEST_ASSERT_TRUE(series_set_add(&set, &sample));
    TEST_ASSERT_TRUE(series_set_prepare(&set, 1));
    TEST_ASSERT_TRUE(series_set_add(&set, &sample));
    TEST_ASSERT_FALSE(series_set_add(&set, &sample));
}

static void test_it_grows(void) {
    enum { N = 1000 };
    static struct labels *labels[N];
    static struct sample samples[N];
    TEST_ASSERT_TRUE(series_set_prepare(&set, N));
    for (size_t i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%zu", i);
        labels[i] = labels_render("x", text);
        samples[i] = (struct sample){.labels = labels[i], .suffix = ""};
        TEST_ASSERT_TRUE(series_set_add(&set, &samples[i]));
    }
    for (size_t i = 0; i < N; i++) {
        TEST_ASSERT_FALSE(series_set_add(&set, &samples[i]));
    }
    for (size_t i = 0; i < N; i++) {
        labels_destroy(labels[i]);
    }
}
