#include "placement/place/choice.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

/* A predictor that knows 1 s for an idle Raspberry Pi and 3 s for a busy one. */
enum { N_ROWS = 100 };

static struct gbt *gbt;
static struct error err;
static struct place_request request;
static struct place_node list[3];
static struct place_nodes nodes;

void setUp(void) {
    static float rows[N_ROWS * N_FEATURES], labels[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++) {
        rows[i * N_FEATURES + FEATURE_LOAD] = (float)i;
        labels[i] = logf(i < N_ROWS / 2 ? 1 : 3);
    }
    const struct gbt_data data = {feature_names, N_FEATURES, rows, labels, N_ROWS};
    if (gbt == NULL && gbt_train(&data, &gbt, &err) == -ENOENT) {
        TEST_IGNORE_MESSAGE(err.text);
    }
    request = (struct place_request){.model = "m"};
    list[0] = (struct place_node){
        .name = "idle", .class = "", .uuid = "", .device_model = "Raspberry Pi", .load = 10};
    list[1] = (struct place_node){
        .name = "busy", .class = "", .uuid = "", .device_model = "Raspberry Pi", .load = 90};
    list[2] = (struct place_node){
        .name = "pc", .class = "", .uuid = "", .device_model = "desktop", .load = 50};
    nodes = (struct place_nodes){list, ARRAY_LEN(list)};
}

static struct place_choice choose(void) {
    struct place_choice choice;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, place_choose(gbt, &request, &nodes, &choice, &err), err.text);
    TEST_ASSERT_NOT_NULL(choice.best);
    return choice;
}

static void test_predicted(void) {
    TEST_ASSERT_EQUAL_STRING("idle", choose().best->name);
    TEST_ASSERT_DOUBLE_WITHIN(0.05, 1, list[0].seconds);
    TEST_ASSERT_DOUBLE_WITHIN(0.05, 3, list[1].seconds);
    TEST_ASSERT_NOT_NULL(list[2].excluded);
}

/* One that was imported: in seconds, and nobody knows what it was trained with. */
static void test_predicted_in_seconds(void) {
    struct gbt_notes *notes = (struct gbt_notes *)gbt_notes(gbt);
    const struct gbt_notes before = *notes;
    nodes.n_nodes = 1;
    TEST_ASSERT_TRUE(choose().is_sure);
    notes->n_rows = 0;
    TEST_ASSERT_FALSE(choose().is_sure);
    notes->in_seconds = true;
    choose();
    TEST_ASSERT_DOUBLE_WITHIN(0.05, 0, list[0].seconds);
    *notes = before;
}

static void test_measured_beats_predicted(void) {
    list[1].measured = (struct place_measured){.seconds = 0.5, .samples = 20, .age_seconds = 1};
    TEST_ASSERT_EQUAL_STRING("busy", choose().best->name);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, list[1].seconds);
    TEST_ASSERT_DOUBLE_WITHIN(0.05, 3, list[1].predicted_seconds);
    TEST_ASSERT_TRUE(place_node_has_error(&list[1]));
    TEST_ASSERT_FALSE(place_node_has_error(&list[0]));
    /* Also where it is the worse for the node. */
    list[0].measured = (struct place_measured){.seconds = 9, .samples = 20};
    list[1].measured = (struct place_measured){.samples = 0};
    TEST_ASSERT_EQUAL_STRING("busy", choose().best->name);
}

static void test_unused_is_not_used(void) {
    list[1].measured = (struct place_measured){.seconds = 0.5, .samples = 20, .unused = "too old"};
    list[2].measured = list[1].measured;
    TEST_ASSERT_EQUAL_STRING("idle", choose().best->name);
    TEST_ASSERT_DOUBLE_WITHIN(0.05, 3, list[1].seconds);
    TEST_ASSERT_FALSE(place_node_has_error(&list[1]));
    TEST_ASSERT_NOT_NULL(list[2].excluded);
}

/* The predictor has nothing to say of such a node, so there is nothing to compare either. */
static void test_measured_on_an_unknown_device(void) {
    list[2].measured = (struct place_measured){.seconds = 0.5, .samples = 20};
    TEST_ASSERT_EQUAL_STRING("pc", choose().best->name);
    TEST_ASSERT_TRUE(isnan(list[2].predicted_seconds));
    TEST_ASSERT_FALSE(place_node_has_error(&list[2]));
    struct buf out CLEANUP_BUF = {0};
    struct place_choice choice = choose();
    place_answer_write(gbt, &request, &choice, &nodes, &out);
    TEST_ASSERT_NULL(strstr(buf_str(&out), "aN"));
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&out), "\"basis\":\"measured\""));
}

/* An excluded node stays so: nobody knows whether it is still there. */
static void test_measured_but_excluded(void) {
    list[1].measured = (struct place_measured){.seconds = 0.5, .samples = 20};
    list[1].excluded = "its last samples are too old";
    TEST_ASSERT_EQUAL_STRING("idle", choose().best->name);
}

static void test_sure_where_all_is_measured(void) {
    request.features[FEATURE_CONV_LAYERS] = 1e6F;
    list[0].measured = (struct place_measured){.seconds = 2, .samples = 20};
    TEST_ASSERT_FALSE(choose().is_sure);
    list[1].measured = list[0].measured;
    TEST_ASSERT_TRUE(choose().is_sure);
}

int suiteTearDown(int failures) {
    gbt_destroy(gbt);
    return failures;
}
