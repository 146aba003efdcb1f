#include "placement/place/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

enum { N_NODES = PLACE_MAX_ERRORS + 50 };

static struct place_node list[N_NODES];
static char names[N_NODES][16];
static struct place_errors errors;

void setUp(void) {
    for (size_t i = 0; i < N_NODES; i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        list[i] = (struct place_node){
            .name = names[i],
            .measured = {.seconds = 2, .samples = 20},
            .predicted_seconds = 3,
        };
    }
}

void tearDown(void) {
    place_errors_finish(&errors);
}

static void ask(const char *model, size_t n_nodes) {
    const struct place_nodes nodes = {list, n_nodes};
    struct place_errors later CLEANUP_PLACE_ERRORS = {0};
    place_errors_collect(&later, model, &nodes);
    place_errors_replace(&errors, model, &later);
}

static size_t count(const char *model) {
    size_t n = 0;
    for (size_t i = 0; i < errors.n_items; i++) {
        n += strcmp(errors.items[i].model, model) == 0;
    }
    return n;
}

static void test_ratio(void) {
    list[1].predicted_seconds = 1;
    ask("yolo", 2);
    TEST_ASSERT_EQUAL_UINT64(2, errors.n_items);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, errors.items[0].ratio);
    TEST_ASSERT_EQUAL_DOUBLE(-0.5, errors.items[1].ratio);
}

static void test_only_what_has_both(void) {
    list[0].excluded = "away";
    list[1].predicted_seconds = NAN;
    list[2].measured.unused = "too few";
    list[3].measured.samples = 0;
    ask("yolo", 4);
    TEST_ASSERT_EQUAL_UINT64(0, errors.n_items);
}

/* What is no longer measured is no longer shown. */
static void test_last_answer_counts(void) {
    ask("yolo", 3);
    ask("ssd", 2);
    list[0].predicted_seconds = 2;
    ask("yolo", 1);
    TEST_ASSERT_EQUAL_UINT64(1, count("yolo"));
    TEST_ASSERT_EQUAL_UINT64(2, count("ssd"));
    TEST_ASSERT_EQUAL_DOUBLE(0, errors.items[2].ratio);
    ask("ssd", 0);
    TEST_ASSERT_EQUAL_UINT64(1, errors.n_items);
}

static void test_bounded(void) {
    ask("old", 30);
    ask("middle", 40);
    ask("old", 30);
    ask("large", PLACE_MAX_ERRORS - 35);
    TEST_ASSERT_EQUAL_UINT64(PLACE_MAX_ERRORS, errors.n_items);
    TEST_ASSERT_EQUAL_UINT64(5, count("middle"));
    TEST_ASSERT_EQUAL_UINT64(30, count("old"));
    ask("all", N_NODES);
    TEST_ASSERT_EQUAL_UINT64(PLACE_MAX_ERRORS, count("all"));
    TEST_ASSERT_EQUAL_UINT64(PLACE_MAX_ERRORS, errors.n_items);
}
