#include "exporter/metrics/exposition.h"

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
static struct exposition_renderer renderer;

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
    exposition_renderer_finish(&renderer);
    for (size_t i = 0; i < MAX; i++) {
        labels_destroy(sets[i]);
    }
}

static struct exposition_part *render(void) {
    struct snapshot snapshot = {.families = &family, .n_families = 1};
    return exposition_render(&renderer, &snapshot, NULL);
}

/* The lines are those of the samples, each in one piece. */
static void check(const struct exposition_part *part) {
    struct buf expected CLEANUP_BUF = {0};
    for (size_t i = 0; i < family.n_samples; i++) {
        const struct sample *sample = &samples[i];
        char number[NUMBER_MAX_LEN];
        int n = (int)number_format(sample->value, number);
        buf_printf(&expected, "%s%s", family.desc->name, sample->suffix);
        if (sample->labels != NULL) {
            buf_printf(&expected, "{%.*s}", (int)sample->labels->len, sample->labels->text);
        }
        buf_printf(&expected, " %.*s\n", n, number);
    }
    size_t n_blocks = 0;
    const struct exposition_block *block = exposition_part_blocks(part, &n_blocks);
    struct buf text CLEANUP_BUF = {0};
    for (size_t i = 0; i < block->n_pieces; i++) {
        buf_add(&text, block->pieces[i].iov_base, block->pieces[i].iov_len);
        TEST_ASSERT_EQUAL_CHAR('\n', text.data[text.len - 1]);
    }
    TEST_ASSERT_EQUAL_STRING(buf_str(&expected), buf_str(&text));
    TEST_ASSERT_EQUAL_UINT64(expected.len, block->len);
}

static void render_and_check(void) {
    struct exposition_part *part = render();
    check(part);
    exposition_part_unref(part);
}

static void test_families_of_every_size(void) {
    static const size_t sizes[] = {32, 33, 511, 512, 513, 1023, 1024, 1025, MAX};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        family.n_samples = sizes[i];
        render_and_check();
        samples[sizes[i] - 1].value += 0.25;
        render_and_check();
    }
}

/* Enough of it for large pages. */
static void test_much_text(void) {
    static char text[20000];
    memset(text, 'x', sizeof(text) - 1);
    for (size_t i = 0; i < MAX; i++) {
        int n = snprintf(text, 8, "%zu", i);
        text[n] = 'x';
        labels_destroy(sets[i]);
        sets[i] = labels_render("x", text);
        samples[i].labels = sets[i];
    }
    render_and_check();
    samples[MAX - 1].value = 0.125;
    render_and_check();
}

static void test_values_that_change(void) {
    static const double values[] = {
        1,   1,   2,        10,        9,   -9,   123456789, 0,       -0.0, 0,
        NAN, NAN, INFINITY, -INFINITY, 0.1, 1e22, 5.5e-100,  1.0 / 3, 12.5, 1,
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        static const size_t places[] = {0, 7, 8, 511, 512, 700, MAX - 1};
        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            samples[places[k]].value = values[i];
        }
        render_and_check();
    }
}

static void test_all_values_change_at_random(void) {
    srandom(1);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < MAX; i++) {
            long scale = 1L << random() % 40;
            bool changes = random() % 100 < round;
            samples[i].value = changes ? (double)(random() % scale) / 8 : samples[i].value;
        }
        render_and_check();
    }
}

static void test_other_series(void) {
    render_and_check();
    struct labels *fresh CLEANUP_LABELS = labels_render("x", "fresh");
    struct sample kept = samples[200];
    const struct sample others[] = {
        {.labels = fresh, .suffix = "", .value = 200},
        {.labels = NULL, .suffix = "_count", .value = 200},
        {.labels = sets[200], .suffix = "_sum", .value = 200},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        samples[200] = others[i];
        render_and_check();
    }
    samples[200] = kept;
    family.n_samples--;
    render_and_check();
    family.n_samples++;
    family.desc = &other;
    render_and_check();
    family.desc = &load;
    render_and_check();
}

/* As when labels are freed and others get their memory. */
static void test_other_labels_in_the_same_place(void) {
    struct buf block CLEANUP_BUF = {0};
    buf_reserve(&block, 1000);
    size_t at = labels_append(&block, (struct label[]){{"x", "old"}}, 1);
    samples[200].labels = (const struct labels *)(block.data + at);
    render_and_check();
    buf_truncate(&block, at);
    TEST_ASSERT_EQUAL_UINT64(at, labels_append(&block, (struct label[]){{"x", "new"}}, 1));
    render_and_check();
}

static void test_lines_that_are_read_stay_as_they_are(void) {
    struct exposition_part *reader = render();
    double kept = samples[MAX - 1].value;
    samples[MAX - 1].value = 1;
    render_and_check();
    samples[MAX - 1].value = kept;
    check(reader);
    exposition_part_unref(reader);
    samples[MAX - 1].value = 1;
    render_and_check();
}
