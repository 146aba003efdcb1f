#include "placement/predictor/import.h"

#include <errno.h>
#include <float.h>
#include <string.h>
#include <unity.h>

#include "placement/predictor/predictor.h"

static const char *const no_maps[] = {NULL};
static struct import import;
static struct gbt *gbt;
static struct error err;

void tearDown(void) {
    gbt_destroy(gbt);
    gbt = NULL;
}

/* A model of one tree with one split: 1 below `at`, 3 from it on, and 0.5 for both. */
static int read_model(const char *names, unsigned n_features, unsigned index, double at,
                      const char *const *maps) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text,
               "{\"version\":[1,7,4],\"learner\":{\"attributes\":{},\"feature_names\":[%s],"
               "\"feature_types\":[],\"objective\":{\"name\":\"reg:squarederror\","
               "\"reg_loss_param\":{\"scale_pos_weight\":\"1\"}},\"learner_model_param\":{"
               "\"base_score\":\"5E-1\",\"num_class\":\"0\",\"num_feature\":\"%u\"},"
               "\"gradient_booster\":{\"name\":\"gbtree\",\"model\":{\"gbtree_model_param\":{"
               "\"num_trees\":\"1\",\"size_leaf_vector\":\"0\"},\"tree_info\":[0],\"trees\":[{"
               "\"base_weights\":[0.0,1.0,3.0],\"categories\":[],\"categories_nodes\":[],"
               "\"categories_segments\":[],\"categories_sizes\":[],\"default_left\":[0,0,0],"
               "\"id\":0,\"left_children\":[1,-1,-1],\"loss_changes\":[1.0,0.0,0.0],"
               "\"parents\":[2147483647,0,0],\"right_children\":[2,-1,-1],"
               "\"split_conditions\":[%.9e,1.0,3.0],\"split_indices\":[%u,0,0],"
               "\"split_type\":[0,0,0],\"sum_hessian\":[2.0,1.0,1.0],\"tree_param\":{"
               "\"num_deleted\":\"0\",\"num_feature\":\"%u\",\"num_nodes\":\"3\","
               "\"size_leaf_vector\":\"0\"}}]}}}}",
               names, n_features, at, index, n_features);
    int r = import_read(buf_str(&text), text.len, maps, true, &import, &gbt, &err);
    if (r == -ENOENT) {
        TEST_IGNORE_MESSAGE(err.text);
    }
    return r;
}

static float predict(enum feature feature, float value) {
    float row[N_FEATURES] = {0}, result = 0;
    row[feature] = value;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, gbt_predict(gbt, row, 1, &result, &err), err.text);
    return result;
}

static void test_names_of_requests(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_model("\"device\",\"fc_layers\"", 2, 1, 7, no_maps),
                                  err.text);
    TEST_ASSERT_EQUAL_FLOAT(1.5F, predict(FEATURE_FC_LAYERS, 6));
    TEST_ASSERT_EQUAL_FLOAT(3.5F, predict(FEATURE_FC_LAYERS, 7));
    TEST_ASSERT_EQUAL_size_t(1, import.n_trees);
    TEST_ASSERT_EQUAL_size_t(1, import.n_splits);
    TEST_ASSERT_EQUAL_INT(FEATURE_DEVICE, import.columns[0].feature);
    TEST_ASSERT_EQUAL_size_t(0, import.columns[0].n_splits);
    TEST_ASSERT_EQUAL_FLOAT(7, import.columns[1].low);
}

static void test_notes(void) {
    TEST_ASSERT_EQUAL_INT(0, read_model("\"device\"", 1, 0, 0.5, no_maps));
    const struct gbt_notes *notes = gbt_notes(gbt);
    TEST_ASSERT_TRUE(notes->in_seconds);
    TEST_ASSERT_FALSE(notes->simulated);
    TEST_ASSERT_EQUAL_size_t(0, notes->n_rows);
    TEST_ASSERT_EQUAL_STRING("total_parameters", notes->features[FEATURE_PARAMETERS].name);
    TEST_ASSERT_EQUAL_FLOAT(FLT_MAX, notes->features[FEATURE_PARAMETERS].max);
    /* Nothing tells another device from a Raspberry Pi. */
    TEST_ASSERT_EQUAL_FLOAT(DEVICE_RASPBERRY, notes->features[FEATURE_DEVICE].min);
    TEST_ASSERT_EQUAL_size_t(GBT_MAX_CHECKS, notes->n_checks);
    for (size_t i = 0; i < notes->n_checks; i++) {
        float device = notes->checks[i].row[FEATURE_DEVICE];
        TEST_ASSERT_EQUAL_FLOAT(device < 0.5F ? 1.5F : 3.5F, notes->checks[i].expected);
    }
    tearDown();
    TEST_ASSERT_EQUAL_INT(0, read_model("\"device\"", 1, 0, -0.5, no_maps));
    TEST_ASSERT_EQUAL_FLOAT(DEVICE_OTHER, gbt_notes(gbt)->features[FEATURE_DEVICE].min);
}

static void test_maps(void) {
    static const char *const maps[] = {"f1=device_load_percent:50:20", "f0=device", NULL};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_model("", 2, 1, 1.5, maps), err.text);
    TEST_ASSERT_EQUAL_FLOAT(80, import.columns[1].low);
    TEST_ASSERT_EQUAL_FLOAT(1.5F, predict(FEATURE_LOAD, 79));
    TEST_ASSERT_EQUAL_FLOAT(3.5F, predict(FEATURE_LOAD, 80));
}

static void test_refused(void) {
    static const char *const huge[] = {"device=device:0:1e300", NULL};
    static const char *const part[] = {"dev=device", NULL};
    static const struct {
        const char *names;
        unsigned n_features, index;
        const char *const *maps;
        const char *said;
    } cases[] = {
        {"\"gpus\"", 1, 0, no_maps, "feature \"gpus\" is unknown"},
        {"", 1, 0, no_maps, "feature \"f0\" is unknown"},
        {"1", 1, 0, no_maps, "the name of feature 1"},
        {"", 65, 0, no_maps, "it has 65 features; expected 1 to 64"},
        {"", 0, 0, no_maps, "it has 0 features"},
        {"\"device\"", 1, 1, no_maps, "tree 0, node 0: a split by no feature"},
        {"\"device\"", 1, 0, huge, "does not fit a float"},
        {"\"device\"", 1, 0, part, "the model has no dev"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = read_model(cases[i].names, cases[i].n_features, cases[i].index, 1, cases[i].maps);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, r, cases[i].said);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, cases[i].said), err.text);
    }
}
