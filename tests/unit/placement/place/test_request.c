#include "placement/place/request.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

static struct place_request request;
static struct error err;

void setUp(void) {
    request = (struct place_request){.model = NULL};
    err = (struct error){.text = ""};
}

void tearDown(void) {
    place_request_finish(&request);
}

static int read_text(const char *text) {
    return place_request_read(&request, text, strlen(text), &err);
}

#define COUNTS                                                                                     \
    "\"conv_layers\":1,\"fc_layers\":2,\"filter_details\":3,\"model_input_size\":4,"               \
    "\"model_output_size\":5,\"pool_layers\":6,\"total_parameters\":7"

static void test_features(void) {
    TEST_ASSERT_EQUAL_INT(0, read_text("{\"model\":\"a\\\"b\"," COUNTS "}"));
    TEST_ASSERT_EQUAL_FLOAT(1, request.features[FEATURE_CONV_LAYERS]);
    TEST_ASSERT_EQUAL_FLOAT(2, request.features[FEATURE_FC_LAYERS]);
    TEST_ASSERT_EQUAL_FLOAT(3, request.features[FEATURE_FILTERS]);
    TEST_ASSERT_EQUAL_FLOAT(4, request.features[FEATURE_READ_BYTES]);
    TEST_ASSERT_EQUAL_FLOAT(5, request.features[FEATURE_WRITE_BYTES]);
    TEST_ASSERT_EQUAL_FLOAT(6, request.features[FEATURE_POOL_LAYERS]);
    TEST_ASSERT_EQUAL_FLOAT(7, request.features[FEATURE_PARAMETERS]);
    TEST_ASSERT_EQUAL_STRING("a\"b", request.model);
}

static void test_echo(void) {
    TEST_ASSERT_EQUAL_INT(0, read_text(" {\"z\": {\"b\": [ ], \"a\": [1 , {\"d\":{}}]}, " COUNTS
                                       ", \"x\": 10000000000000000000.50e+3, \"model\": \"m\", "
                                       "\"x\": -0 }\n"));
    TEST_ASSERT_EQUAL_STRING("{\"conv_layers\":1,\"fc_layers\":2,\"filter_details\":3,\"model\":"
                             "\"m\",\"model_input_size\":4,\"model_output_size\":5,"
                             "\"pool_layers\":6,\"total_parameters\":7,\"x\":-0,"
                             "\"z\":{\"a\":[1,{\"d\":{}}],\"b\":[]}}",
                             buf_str(&request.echo));
}

static const struct {
    const char *text;
    int code;
    const char *said;
} wrong[] = {
    {"", -EINVAL, "expected an object"},
    {"7", -EINVAL, "expected an object"},
    {"{\"model\":\"m\"}", -EINVAL, "conv_layers: missing"},
    {"{" COUNTS "}", -EINVAL, "model: missing"},
    {"{\"model\":null," COUNTS "}", -EINVAL, "model: expected a name"},
    {"{\"model\":\"m\",\"conv_layers\":[1]}", -EINVAL, "conv_layers: expected a number"},
    {"{\"model\":\"m\",\"conv_layers\":1e999}", -EINVAL, "conv_layers: expected a number"},
    {"{\"model\":\"m\",\"conv_layers\":1e300}", -ERANGE, "conv_layers: 1e+300 is out of range"},
    {"{\"model\":\"m\",\"conv_layers\":-3}", -ERANGE, "conv_layers: -3 is out of range"},
    {"{\"model\":\"m\"," COUNTS "} {}", -EINVAL, "expected nothing after"},
    {"{\"model\":\"m\"," COUNTS, -EINVAL, "line 1"},
};

static void test_wrong_requests(void) {
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        tearDown();
        setUp();
        TEST_ASSERT_EQUAL_INT_MESSAGE(wrong[i].code, read_text(wrong[i].text), wrong[i].text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, wrong[i].said), err.text);
    }
}
