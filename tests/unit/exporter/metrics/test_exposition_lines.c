#include "exporter/metrics/exposition_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/number.h"

enum { MAX = 1100 };

static const struct metric_desc load = {"load", "Load.", METRIC_GAUGE};
static const struct metric_desc other = {"tide", "Tide.", METRIC_GAUGE};
static struct labels *sets[MAX];
static struct sample samples[MAX];
static struct family family;

void setUp(void) {
    family = (struct family){.desc = &load, .samples = samples, .n_samples = MAX};
    for (size_t i = 0; i < MAX; i++) {
        char text[100];
        snprintf(text, sizeof(text), "%zu%.*s", i, (int)(i % 70),
                 "0123456789012345678901234567890123456789012345678901234567890123456789");
        sets[i] = labels_render("x", text);
        samples[i] = (struct sample){.labels = sets[i], .suffix = "", .value = (double)i};
    }
    samples[7] = (struct sample){.labels = NULL, .suffix = "", .value = 7};
    samples[8].suffix = "_sum";
}

void tearDown(void) {
    for (size_t i = 0; i < MAX; i++) {
        labels_destroy(sets[i]);
    }
}

/* The lines must be what the samples are, each in one piece. */
static void check(const struct exposition_lines *lines) {
    struct buf expected CLEANUP_BUF = {0};
    for (size_t i = 0; i < family.n_samples; i++) {
        const struct sample *sample = &samples[i];
        char number[NUMBER_MAX_LEN];
        int n = (int)number_format(sample->value, number);
        if (sample->labels == NULL) {
            buf_printf(&expected, "load%s %.*s\n", sample->suffix, n, number);
        } else {
            buf_printf(&expected, "load%s{%.*s} %.*s\n", sample->suffix, (int)sample->labels->len,
                       sample->labels->text, n, number);
        }
    }
    struct buf text CLEANUP_BUF = {0};
    size_t n_pieces = 0;
    const struct iovec *pieces = exposition_lines_pieces(lines, &n_pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        buf_add(&text, pieces[i].iov_base, pieces[i].iov_len);
        TEST_ASSERT_EQUAL_CHAR('\n', text.data[text.len - 1]);
    }
    TEST_ASSERT_EQUAL_STRING(buf_str(&expected), buf_str(&text));
    TEST_ASSERT_EQUAL_UINT64(expected.len, exposition_lines_len(lines));
}

static void test_families_of_every_size(void) {
    static const size_t sizes[] = {1, 2, 511, 512, 513, 1023, 1024, 1025, MAX};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        family.n_samples = sizes[i];
        struct exposition_lines *lines = exposition_lines_create(&family);
        check(lines);
        samples[sizes[i] - 1].value += 0.25;
        TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
        check(lines);
        exposition_lines_unref(lines);
    }
}

/* Enough of it for large pages. */
static void test_much_text(void) {
    static char text[20000];
    memset(text, 'x', sizeof(text) - 1);
    struct labels *labels CLEANUP_LABELS = labels_render("x", text);
    for (size_t i = 0; i < MAX; i++) {
        samples[i].labels = labels;
    }
    struct exposition_lines *lines = exposition_lines_create(&family);
    TEST_ASSERT_GREATER_THAN(4 << 20, exposition_lines_len(lines));
    check(lines);
    samples[MAX - 1].value = 0.125;
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    check(lines);
    exposition_lines_unref(lines);
}

static void test_values_that_change(void) {
    static const double values[] = {
        1,   1,   2,        10,        9,   -9,   123456789, 0,       -0.0, 0,
        NAN, NAN, INFINITY, -INFINITY, 0.1, 1e22, 5.5e-100,  1.0 / 3, 12.5, 1,
    };
    struct exposition_lines *lines = exposition_lines_create(&family);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        static const size_t places[] = {0, 7, 8, 511, 512, 700, MAX - 1};
        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            samples[places[k]].value = values[i];
        }
        TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
        check(lines);
    }
    exposition_lines_unref(lines);
}

static void test_all_values_change_at_random(void) {
    struct exposition_lines *lines = exposition_lines_create(&family);
    srandom(1);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < MAX; i++) {
            long scale = 1L << random() % 40;
            bool changes = random() % 100 < round;
            samples[i].value = changes ? (double)(random() % scale) / 8 : samples[i].value;
        }
        TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
        check(lines);
    }
    exposition_lines_unref(lines);
}

static void test_other_series_do_not_fit(void) {
    struct exposition_lines *lines = exposition_lines_create(&family);
    struct sample kept = samples[200];
    const struct sample others[] = {
        {.labels = sets[3], .suffix = "", .value = 200},
        {.labels = NULL, .suffix = "", .value = 200},
        {.labels = sets[200], .suffix = "_sum", .value = 200},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        samples[200] = others[i];
        TEST_ASSERT_FALSE(exposition_lines_update(lines, &family));
    }
    samples[200] = kept;
    family.n_samples--;
    TEST_ASSERT_FALSE(exposition_lines_update(lines, &family));
    family.n_samples++;
    family.desc = &other;
    TEST_ASSERT_FALSE(exposition_lines_update(lines, &family));
    family.desc = &load;
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    check(lines);
    exposition_lines_unref(lines);
}

/* As when labels are freed and others get their memory. */
static void test_other_labels_in_the_same_place(void) {
    struct buf block CLEANUP_BUF = {0};
    buf_reserve(&block, 1000);
    size_t at = labels_append(&block, (struct label[]){{"x", "old"}}, 1);
    samples[200].labels = (const struct labels *)(block.data + at);
    struct exposition_lines *lines = exposition_lines_create(&family);
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    buf_truncate(&block, at);
    TEST_ASSERT_EQUAL_UINT64(at, labels_append(&block, (struct label[]){{"x", "new"}}, 1));
    TEST_ASSERT_FALSE(exposition_lines_update(lines, &family));
    exposition_lines_unref(lines);
}

static void test_labels_made_elsewhere_do_no_harm(void) {
    struct exposition_lines *lines = exposition_lines_create(&family);
    struct labels *unrelated CLEANUP_LABELS = labels_render("a", "b");
    TEST_ASSERT_NOT_NULL(unrelated);
    samples[0].value = 99;
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    check(lines);
    exposition_lines_unref(lines);
}

static void test_shared_lines_stay_as_they_are(void) {
    struct exposition_lines *lines = exposition_lines_create(&family);
    struct exposition_lines *reader = exposition_lines_ref(lines);
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    samples[MAX - 1].value = 1;
    TEST_ASSERT_FALSE(exposition_lines_update(lines, &family));
    samples[MAX - 1].value = MAX - 1;
    check(reader);
    exposition_lines_unref(reader);
    samples[MAX - 1].value = 1;
    TEST_ASSERT_TRUE(exposition_lines_update(lines, &family));
    check(lines);
    exposition_lines_unref(lines);
    exposition_lines_unref(NULL);
}
