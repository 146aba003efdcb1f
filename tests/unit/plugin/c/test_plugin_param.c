#include "plugin/c/plugin_param.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <unity.h>

#include "plugin/c/plugin_client.h"
#include "tests/unit/waiting.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static const char *const modes[] = {"fast", "good", NULL};

void setUp(void) {
    setenv("WAAP_PUSH_SOCKET", "/nonexistent/push.sock", 1);
}

static const struct waap_json_value yes = {.type = WAAP_JSON_BOOL, .number = 1};

static struct waap_json_value number(double value) {
    return (struct waap_json_value){.type = WAAP_JSON_NUMBER, .number = value};
}

static struct waap_json_value text(const char *value) {
    return (struct waap_json_value){.type = WAAP_JSON_TEXT, .text = value};
}

/* As the client's thread does it. */
static const char *turn(struct waap_param *param, const struct waap_json_value *value) {
    pthread_mutex_lock(&waap_lock);
    const char *fault = waap_param_turn(param, value);
    pthread_mutex_unlock(&waap_lock);
    return fault;
}

static void test_defaults(void) {
    char string[16];
    TEST_ASSERT_EQUAL_INT64(720, waap_get_int(waap_param_int("int", 720, 240, 1080, NULL)));
    TEST_ASSERT_TRUE(waap_get_float(waap_param_float("float", 0.5, 0, 0, NULL)) == 0.5);
    TEST_ASSERT_TRUE(waap_get_bool(waap_param_bool("bool", true, NULL)));
    TEST_ASSERT_EQUAL_STRING("good", waap_get_enum(waap_param_enum("enum", "good", modes, NULL)));
    struct waap_param *model = waap_param_string("string", "yolo", NULL);
    TEST_ASSERT_EQUAL_size_t(4, waap_get_string(model, string, sizeof(string)));
    TEST_ASSERT_EQUAL_STRING("yolo", string);
    TEST_ASSERT_EQUAL_size_t(4, waap_get_string(model, string, 3));
    TEST_ASSERT_EQUAL_STRING("yo", string);
    TEST_ASSERT_EQUAL_size_t(4, waap_get_string(model, NULL, 0));
}

static void test_none_is_zero(void) {
    char string[4] = "x";
    TEST_ASSERT_EQUAL_INT64(0, waap_get_int(NULL));
    TEST_ASSERT_TRUE(waap_get_float(NULL) == 0);
    TEST_ASSERT_FALSE(waap_get_bool(NULL));
    TEST_ASSERT_EQUAL_STRING("", waap_get_enum(NULL));
    TEST_ASSERT_EQUAL_size_t(0, waap_get_string(NULL, string, sizeof(string)));
    TEST_ASSERT_EQUAL_STRING("", string);
}

static void test_what_cannot_be(void) {
    static const char *const none[] = {NULL};
    waap_param_int("taken", 1, 0, 0, NULL);
    const struct {
        struct waap_param_spec spec;
        int error;
    } cases[] = {
        {{.name = NULL}, EINVAL},
        {{.name = ""}, EINVAL},
        {{.name = "x", .type = WAAP_ENUM + 1}, EINVAL},
        {{.name = "x", .min = 2, .max = 1}, EINVAL},
        {{.name = "x", .min = NAN}, EINVAL},
        {{.name = "x", .step = -1}, EINVAL},
        {{.name = "x", .step = INFINITY}, EINVAL},
        {{.name = "x", .min = 0, .max = -INFINITY}, EINVAL},
        {{.name = "x", .number = 0.5}, EINVAL},
        {{.name = "x", .number = 5, .min = 1, .max = 4}, EINVAL},
        {{.name = "x", .number = 7, .min = 0, .max = 10, .step = 2}, EINVAL},
        {{.name = "x", .number = -7, .step = 2}, EINVAL},
        {{.name = "x", .type = WAAP_FLOAT, .number = NAN}, EINVAL},
        {{.name = "x", .type = WAAP_BOOL, .number = 2}, EINVAL},
        {{.name = "x", .type = WAAP_STRING}, EINVAL},
        {{.name = "x", .type = WAAP_ENUM, .text = "fast"}, EINVAL},
        {{.name = "x", .type = WAAP_ENUM, .text = "fast", .values = none}, EINVAL},
        {{.name = "x", .type = WAAP_ENUM, .text = "slow", .values = modes}, EINVAL},
        {{.name = "taken", .type = WAAP_FLOAT}, EEXIST},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        errno = 0;
        TEST_ASSERT_NULL(waap_param_new(&cases[i].spec));
        TEST_ASSERT_EQUAL_INT(cases[i].error, errno);
    }
}

static void test_turns(void) {
    struct waap_param *res = waap_param_int("res", 720, 240, 1080, NULL);
    const struct {
        struct waap_json_value value;
        bool good;
    } cases[] = {
        {number(480), true},   {number(240), true},    {number(239), false},
        {number(1081), false}, {number(480.5), false}, {yes, false},
        {text("480"), false},  {{0}, false},           {number(1e300), false},
    };
    double before = 720;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *fault = turn(res, &cases[i].value);
        TEST_ASSERT_EQUAL_INT(cases[i].good, fault == NULL);
        before = cases[i].good ? cases[i].value.number : before;
        TEST_ASSERT_EQUAL_INT64((int64_t)before, waap_get_int(res));
    }
}

static void test_turns_with_one_bound(void) {
    struct waap_json_value huge = number(1e300), below = number(-1);
    struct waap_param *gain = waap_param_float("gain from 0", 0, 0, INFINITY, NULL);
    TEST_ASSERT_NULL(turn(gain, &huge));
    TEST_ASSERT_NOT_NULL(turn(gain, &below));
    TEST_ASSERT_TRUE(waap_get_float(gain) == 1e300);
}

static void test_turns_of_other_types(void) {
    struct waap_json_value half = number(0.5), fast = text("fast"), slow = text("slow");
    struct waap_param *gain = waap_param_float("gain", 0, 0, 0, NULL);
    TEST_ASSERT_NULL(turn(gain, &half));
    TEST_ASSERT_TRUE(waap_get_float(gain) == 0.5);
    struct waap_param *on = waap_param_bool("on", false, NULL);
    TEST_ASSERT_NULL(turn(on, &yes));
    TEST_ASSERT_TRUE(waap_get_bool(on));
    TEST_ASSERT_NOT_NULL(turn(on, &half));
    struct waap_param *mode = waap_param_enum("mode", "good", modes, NULL);
    TEST_ASSERT_NULL(turn(mode, &fast));
    TEST_ASSERT_NOT_NULL(turn(mode, &slow));
    TEST_ASSERT_EQUAL_STRING("fast", waap_get_enum(mode));
    char string[8];
    struct waap_param *model = waap_param_string("model", "yolo", NULL);
    TEST_ASSERT_NULL(turn(model, &slow));
    waap_get_string(model, string, sizeof(string));
    TEST_ASSERT_EQUAL_STRING("slow", string);
}

static void test_reading_applies(void) {
    struct waap_json_value one = number(1);
    struct waap_param *param = waap_param_int("applied", 0, 0, 0, NULL);
    TEST_ASSERT_NULL(turn(param, &one));
    TEST_ASSERT_TRUE(param->applied != param->version);
    waap_get_int(param);
    TEST_ASSERT_TRUE(param->applied == param->version);
}

static int64_t called_with;

static void changed(struct waap_param *param, void *data) {
    called_with = waap_get_int(param) * *(int *)data;
    TEST_ASSERT_TRUE(param->applied != param->version);
}

static void test_the_call_applies(void) {
    int factor = 10;
    struct waap_json_value four = number(4);
    struct waap_param *param = waap_param_new(&(struct waap_param_spec){
        .type = WAAP_INT, .name = "called", .on_change = changed, .data = &factor});
    waap_params_call();
    TEST_ASSERT_EQUAL_INT64(0, called_with);
    TEST_ASSERT_NULL(turn(param, &four));
    waap_params_call();
    /* The client's thread may have been first and be at it. */
    TEST_ASSERT_TRUE(BECOMES_TRUE(param->applied == param->version));
    TEST_ASSERT_EQUAL_INT64(40, called_with);
    /* Told once more, with the next connection: it is reported, but nothing has changed. */
    called_with = 0;
    unsigned version = param->version;
    param->reported = true;
    TEST_ASSERT_NULL(turn(param, &four));
    TEST_ASSERT_EQUAL_UINT(version, param->version);
    waap_params_call();
    TEST_ASSERT_EQUAL_INT64(0, called_with);
}

static void test_told_again(void) {
    struct waap_json_value fast = text("fast"), good = text("good"), none = text("bad");
    struct waap_param *mode = waap_param_enum("mode again", "fast", modes, NULL);
    struct waap_param *model = waap_param_string("model again", "fast", NULL);
    struct waap_param *const params[] = {mode, model};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        unsigned version = params[i]->version;
        TEST_ASSERT_NULL(turn(params[i], &fast));
        TEST_ASSERT_EQUAL_UINT(version, params[i]->version);
        TEST_ASSERT_NULL(turn(params[i], &good));
        TEST_ASSERT_TRUE(version != params[i]->version);
    }
    TEST_ASSERT_NOT_NULL(turn(mode, &none));
}
