#include "exporter/metrics/exposition.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

static const struct metric_desc load = {"load", "Load.", METRIC_GAUGE};
static const struct metric_desc beats = {"beats_total", "Beats.", METRIC_COUNTER};
static const struct metric_desc wait = {"wait_seconds", "Wait.", METRIC_HISTOGRAM, "seconds"};

static struct snapshot snapshot;

void setUp(void) {
    snapshot = (struct snapshot){0};
}

void tearDown(void) {
    snapshot_finish(&snapshot);
}

static struct exposition_part *render(uint64_t expected_duplicates) {
    uint64_t duplicates = 77;
    struct exposition_part *part = exposition_part_create(&snapshot, &duplicates);
    TEST_ASSERT_NOT_NULL(part);
    TEST_ASSERT_EQUAL_UINT64(expected_duplicates, duplicates);
    return part;
}

static const struct exposition_block *block(const struct exposition_part *part, size_t number) {
    size_t n = 0;
    const struct exposition_block *blocks = exposition_part_blocks(part, &n);
    TEST_ASSERT_LESS_THAN_UINT64(n, number);
    return &blocks[number];
}

static size_t n_blocks(const struct exposition_part *part) {
    size_t n = 0;
    exposition_part_blocks(part, &n);
    return n;
}

static void assert_lines(const char *expected, const struct exposition_block *got) {
    struct buf lines CLEANUP_BUF = {0};
    for (size_t i = 0; i < got->n_pieces; i++) {
        buf_add(&lines, got->pieces[i].iov_base, got->pieces[i].iov_len);
    }
    TEST_ASSERT_EQUAL_UINT64(strlen(expected), got->len);
    TEST_ASSERT_EQUAL_STRING(expected, buf_str(&lines));
}

static size_t n_samples(const struct exposition_part *part) {
    size_t n = 0;
    for (size_t i = 0; i < n_blocks(part); i++) {
        n += block(part, i)->n_samples;
    }
    return n;
}

static void test_nothing(void) {
    struct exposition_part *part = render(0);
    TEST_ASSERT_EQUAL_UINT64(0, n_blocks(part));
    exposition_part_unref(part);
    exposition_part_unref(NULL);
}

static void test_values(void) {
    static const struct {
        double value;
        const char *lines;
    } cases[] = {
        {0, "load 0\n"},
        {-0.0, "load -0\n"},
        {0.1, "load 0.1\n"},
        {9007199254740992.0, "load 9007199254740992\n"},
        {DBL_MAX, "load 1.7976931348623157e+308\n"},
        {5e-324, "load 5e-324\n"},
        {INFINITY, "load +Inf\n"},
        {-INFINITY, "load -Inf\n"},
        {NAN, "load NaN\n"},
        {-NAN, "load NaN\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snapshot_reset(&snapshot);
        snapshot_add(&snapshot, &load, NULL, cases[i].value);
        struct exposition_part *part = render(0);
        assert_lines(cases[i].lines, block(part, 0));
        exposition_part_unref(part);
    }
}

static void test_blocks_are_sorted_and_whole(void) {
    struct labels *a CLEANUP_LABELS = labels_render("cpu", "0", "mode", "a \"b\"");
    struct labels *le CLEANUP_LABELS = labels_with(a, "le", "+Inf");
    snapshot_add(&snapshot, &wait, NULL, 1);
    snapshot_add(&snapshot, &load, a, 2);
    snapshot_add_suffixed(&snapshot, &wait, "_bucket", le, 3);
    snapshot_append(&snapshot, &beats, NULL, 0);
    struct exposition_part *part = render(0);
    snapshot_finish(&snapshot);

    TEST_ASSERT_EQUAL_UINT64(3, n_blocks(part));
    TEST_ASSERT_EQUAL_UINT64(3, n_samples(part));
    TEST_ASSERT_EQUAL_STRING("beats_total", block(part, 0)->name);
    TEST_ASSERT_EQUAL_INT(METRIC_COUNTER, block(part, 0)->type);
    TEST_ASSERT_NULL(block(part, 0)->unit);
    TEST_ASSERT_EQUAL_UINT64(0, block(part, 0)->n_samples);
    assert_lines("", block(part, 0));
    TEST_ASSERT_EQUAL_STRING("load", block(part, 1)->name);
    TEST_ASSERT_EQUAL_STRING("Load.", block(part, 1)->help);
    assert_lines("load{cpu=\"0\",mode=\"a \\\"b\\\"\"} 2\n", block(part, 1));
    TEST_ASSERT_EQUAL_STRING("seconds", block(part, 2)->unit);
    TEST_ASSERT_EQUAL_UINT64(2, block(part, 2)->n_samples);
    assert_lines("wait_seconds 1\n"
                 "wait_seconds_bucket{cpu=\"0\",mode=\"a \\\"b\\\"\",le=\"+Inf\"} 3\n",
                 block(part, 2));
    exposition_part_unref(part);
}

static void test_first_of_equal_series_stays(void) {
    struct labels *a CLEANUP_LABELS = labels_render("x", "1");
    struct labels *same CLEANUP_LABELS = labels_render("x", "1");
    struct labels *other CLEANUP_LABELS = labels_render("x", "2");
    struct labels *empty CLEANUP_LABELS = labels_render("x", "");
    snapshot_add(&snapshot, &load, a, 1);
    snapshot_add(&snapshot, &load, other, 2);
    snapshot_add(&snapshot, &load, same, 3);
    snapshot_add(&snapshot, &load, NULL, 4);
    snapshot_add(&snapshot, &load, empty, 5);
    snapshot_add(&snapshot, &load, NULL, 6);
    snapshot_add_suffixed(&snapshot, &load, "_sum", a, 7);
    struct exposition_part *part = render(3);
    assert_lines("load{x=\"1\"} 1\nload{x=\"2\"} 2\nload 4\nload_sum{x=\"1\"} 7\n", block(part, 0));
    TEST_ASSERT_EQUAL_UINT64(4, n_samples(part));
    exposition_part_unref(part);
}

static void test_families_of_one_name_become_one_block(void) {
    const struct metric_desc again = {"load", "Other words.", METRIC_GAUGE};
    const struct metric_desc clash = {"load", "Other type.", METRIC_COUNTER};
    struct labels *a CLEANUP_LABELS = labels_render("x", "1");
    snapshot_add(&snapshot, &load, NULL, 1);
    snapshot_add(&snapshot, &beats, NULL, 2);
    snapshot_add(&snapshot, &again, a, 3);
    snapshot_add(&snapshot, &again, NULL, 4);
    snapshot_add(&snapshot, &clash, a, 5);
    struct exposition_part *part = render(2);
    TEST_ASSERT_EQUAL_UINT64(2, n_blocks(part));
    TEST_ASSERT_EQUAL_STRING("Load.", block(part, 1)->help);
    TEST_ASSERT_EQUAL_INT(METRIC_GAUGE, block(part, 1)->type);
    assert_lines("load 1\nload{x=\"1\"} 3\n", block(part, 1));
    exposition_part_unref(part);
}

static void test_label_sets_with_equal_hash_stay_apart(void) {
    struct labels *a CLEANUP_LABELS = labels_render("x", "1");
    struct labels *b CLEANUP_LABELS = labels_render("x", "2");
    b->hash = a->hash;
    snapshot_add(&snapshot, &load, a, 1);
    snapshot_add(&snapshot, &load, b, 2);
    snapshot_add(&snapshot, &load, b, 3);
    struct exposition_part *part = render(1);
    assert_lines("load{x=\"1\"} 1\nload{x=\"2\"} 2\n", block(part, 0));
    exposition_part_unref(part);
}

static void test_outlives_what_it_was_made_of(void) {
    char name[] = "gone";
    char help[] = "Soon gone.";
    struct metric_desc desc = {name, help, METRIC_GAUGE};
    struct labels *a = labels_render("x", "1");
    snapshot_add(&snapshot, &desc, a, 1);
    struct exposition_part *part = render(0);
    snapshot_finish(&snapshot);
    labels_destroy(a);
    memset(name, '#', sizeof(name) - 1);
    memset(help, '#', sizeof(help) - 1);
    struct exposition_part *second = exposition_part_ref(part);
    exposition_part_unref(part);
    TEST_ASSERT_EQUAL_STRING("gone", block(second, 0)->name);
    TEST_ASSERT_EQUAL_STRING("Soon gone.", block(second, 0)->help);
    assert_lines("gone{x=\"1\"} 1\n", block(second, 0));
    exposition_part_unref(second);
}

static void test_parts_in_use_are_not_overwritten(void) {
    struct exposition_renderer renderer = {0};
    snapshot_add(&snapshot, &load, NULL, 1);
    struct exposition_part *first = exposition_render(&renderer, &snapshot, NULL);
    snapshot_reset(&snapshot);
    snapshot_add(&snapshot, &load, NULL, 2);
    struct exposition_part *second = exposition_render(&renderer, &snapshot, NULL);
    assert_lines("load 1\n", block(first, 0));
    assert_lines("load 2\n", block(second, 0));
    exposition_part_unref(first);
    exposition_part_unref(second);
    snapshot_reset(&snapshot);
    snapshot_add(&snapshot, &load, NULL, 3);
    struct exposition_part *third = exposition_render(&renderer, &snapshot, NULL);
    exposition_renderer_finish(&renderer);
    assert_lines("load 3\n", block(third, 0));
    exposition_part_unref(third);
}

/* A page may still be on its way to a client while the next ones are rendered. */
static void test_long_families_in_use_are_not_overwritten(void) {
    enum { N = 200, ROUNDS = 6 };
    struct labels *labels[N];
    for (int i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        labels[i] = labels_render("x", text);
    }
    static const int values[ROUNDS] = {1, 1, 2, 2, 10, 1};
    struct exposition_renderer renderer = {0};
    struct exposition_part *held[ROUNDS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        snapshot_reset(&snapshot);
        for (int i = 0; i < N; i++) {
            snapshot_add(&snapshot, &load, labels[i], values[round]);
        }
        held[round] = exposition_render(&renderer, &snapshot, NULL);
    }
    exposition_renderer_finish(&renderer);
    for (int round = 0; round < ROUNDS; round++) {
        struct buf expected CLEANUP_BUF = {0};
        for (int i = 0; i < N; i++) {
            buf_printf(&expected, "load{x=\"%d\"} %d\n", i, values[round]);
        }
        assert_lines(buf_str(&expected), block(held[round], 0));
        exposition_part_unref(held[round]);
    }
    for (int i = 0; i < N; i++) {
        labels_destroy(labels[i]);
    }
}

/* What is remembered of one rendering must never hide a duplicate of the next. */
static void test_duplicates_are_found_at_every_rendering(void) {
    struct labels *sets[] = {labels_render("x", "1"), labels_render("x", "2"),
                             labels_render("x", "3"), NULL};
    static const struct {
        const char *beats; /* the label sets by number, in the order they are added */
        const char *load;
        uint64_t duplicates;
    } rounds[] = {
        {"012", "", 0},  {"012", "", 0},    {"011", "", 1},    {"011", "", 1},  {"012", "0", 0},
        {"021", "0", 0}, {"021", "00", 1},  {"", "021", 0},    {"", "02", 0},   {"", "", 0},
        {"02", "1", 0},  {"022", "11", 2},  {"0123", "3", 0},  {"33", "33", 2}, {"0123", "0123", 0},
        {"01", "23", 0}, {"0123", "01", 0}, {"0122", "01", 1},
    };
    struct exposition_renderer renderer = {0};
    for (size_t i = 0; i < ARRAY_LEN(rounds); i++) {
        snapshot_reset(&snapshot);
        for (const char *set = rounds[i].beats; *set != '\0'; set++) {
            snapshot_add(&snapshot, &beats, sets[*set - '0'], 1);
        }
        for (const char *set = rounds[i].load; *set != '\0'; set++) {
            snapshot_add(&snapshot, &load, sets[*set - '0'], 1);
        }
        uint64_t duplicates = 77;
        struct exposition_part *part = exposition_render(&renderer, &snapshot, &duplicates);
        TEST_ASSERT_EQUAL_UINT64(rounds[i].duplicates, duplicates);
        TEST_ASSERT_EQUAL_UINT64(snapshot_n_samples(&snapshot) - duplicates, n_samples(part));
        exposition_part_unref(part);
    }
    exposition_renderer_finish(&renderer);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        labels_destroy(sets[i]);
    }
}

/* Labels of every length, families of every size around a batch, rendered again and again. */
static void test_known_series_are_written_in_full(void) {
    enum { MAX = 130 };
    struct labels *labels[MAX];
    for (int i = 0; i < MAX; i++) {
        char text[MAX + 1];
        snprintf(text, sizeof(text), "%d%.*s", i, i % 70,
                 "0123456789012345678901234567890123456789"
                 "0123456789012345678901234567890123456789");
        labels[i] = labels_render("x", text);
    }
    struct exposition_renderer renderer = {0};
    for (int n = 0; n <= MAX; n++) {
        for (int round = 0; round < 3; round++) {
            struct buf expected CLEANUP_BUF = {0};
            snapshot_reset(&snapshot);
            for (int i = 0; i < n; i++) {
                const char *suffix = i % 3 == 2 ? "_sum" : "";
                snapshot_add_suffixed(&snapshot, &load, suffix, labels[i], i + round);
                buf_printf(&expected, "load%s{%.*s} %d\n", suffix, (int)labels[i]->len,
                           labels[i]->text, i + round);
            }
            snapshot_append(&snapshot, &load, NULL, 0);
            struct exposition_part *part = exposition_render(&renderer, &snapshot, NULL);
            assert_lines(buf_str(&expected), block(part, 0));
            exposition_part_unref(part);
        }
    }
    exposition_renderer_finish(&renderer);
    for (int i = 0; i < MAX; i++) {
        labels_destroy(labels[i]);
    }
}

/* Equal suffix and equal labels, not equal hashes; no labels are the same as empty ones. */
static void test_equal_series(void) {
    struct labels *a CLEANUP_LABELS = labels_render("x", "1");
    struct labels *same CLEANUP_LABELS = labels_render("x", "1");
    struct labels *clash CLEANUP_LABELS = labels_render("x", "2");
    struct labels *empty CLEANUP_LABELS = labels_render("x", "");
    clash->hash = a->hash;
    const struct sample samples[] = {{a, "", 1},     {same, "", 2},  {clash, "", 3},
                                     {clash, "", 4}, {a, "_sum", 5}, {same, "_sum", 6},
                                     {NULL, "", 7},  {empty, "", 8}, {NULL, "_sum", 9}};
    snapshot_append(&snapshot, &load, samples, ARRAY_LEN(samples));
    struct exposition_part *part = render(4);
    assert_lines("load{x=\"1\"} 1\nload{x=\"2\"} 3\nload_sum{x=\"1\"} 5\nload 7\nload_sum 9\n",
                 block(part, 0));
    exposition_part_unref(part);
}

static void test_a_hundred_thousand_series(void) {
    enum { N = 100000 };
    struct labels **labels = calloc(N, sizeof(*labels));
    for (int i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%06d", i);
        labels[i] = labels_render("method", "GET", "path", text, "node", "n1");
        snapshot_add(&snapshot, &beats, labels[i], i);
    }
    snapshot_add(&snapshot, &beats, labels[N / 2], 1);
    struct exposition_part *part = render(1);
    const struct exposition_block *all = block(part, 0);
    TEST_ASSERT_EQUAL_UINT64(N, all->n_samples);
    const char *last = "\nbeats_total{method=\"GET\",path=\"099999\",node=\"n1\"} 99999\n";
    const struct iovec *piece = &all->pieces[all->n_pieces - 1];
    const char *end = (const char *)piece->iov_base + piece->iov_len;
    TEST_ASSERT_EQUAL_STRING_LEN(last, end - strlen(last), strlen(last));
    exposition_part_unref(part);
    for (int i = 0; i < N; i++) {
        labels_destroy(labels[i]);
    }
    free(labels);
}
