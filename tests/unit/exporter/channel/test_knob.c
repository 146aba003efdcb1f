#include "exporter/channel/knob.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unity.h>

#define NUMBER(n)                                                                                  \
    { .form = KNOB_NUMBER, .number = (n) }
#define TRUTH(n)                                                                                   \
    { .form = KNOB_TRUTH, .number = (n) }
#define TEXT(t)                                                                                    \
    { .form = KNOB_TEXT, .text = (t) }

static const char *const modes[] = {"fast", "exact"};
static struct error err;

static const struct knob_spec res = {
    .name = "res", .type = KNOB_INT, .initial = NUMBER(720), .min = 240, .max = 1080, .step = 8};
static const struct knob_spec coarse = {
    .name = "res", .type = KNOB_INT, .initial = NUMBER(480), .min = 240, .max = 1000, .step = 120};
static const struct knob_spec gain = {.name = "gain",
                                      .type = KNOB_FLOAT,
                                      .initial = NUMBER(0.5),
                                      .min = -INFINITY,
                                      .max = INFINITY,
                                      .step = 0.1};
static const struct knob_spec flip = {
    .name = "flip", .type = KNOB_BOOL, .initial = TRUTH(0), .min = -INFINITY, .max = INFINITY};
static const struct knob_spec model = {.name = "model",
                                       .type = KNOB_STRING,
                                       .initial = TEXT("yolo"),
                                       .min = -INFINITY,
                                       .max = INFINITY};
static const struct knob_spec mode = {.name = "mode",
                                      .type = KNOB_ENUM,
                                      .initial = TEXT("fast"),
                                      .values = modes,
                                      .n_values = 2,
                                      .min = -INFINITY,
                                      .max = INFINITY};

static const struct knob_spec any = {
    .name = "any", .type = KNOB_ANY, .min = -INFINITY, .max = INFINITY};
static const struct knob_spec open = {.name = "open", .type = KNOB_INT, .min = 240, .max = 1080};

void setUp(void) {
    err.text[0] = '\0';
}

static void test_steps(void) {
    static const double two53 = 9007199254740992.0;
    static const struct {
        enum knob_type type;
        double min, step, number;
        bool good;
    } rows[] = {
        {KNOB_INT, 0, 8, 8000000000, true},
        {KNOB_INT, 0, 8, 8000000001, false},
        {KNOB_INT, 0, 8, 800000000001, false},
        {KNOB_INT, 0, 8, two53, true},
        {KNOB_INT, 0, 8, two53 - 1, false},
        {KNOB_INT, -INFINITY, 8, -8000000000, true},
        {KNOB_INT, -INFINITY, 8, -8000000001, false},
        {KNOB_INT, -INFINITY, 7, -two53 + 5, false},
        {KNOB_INT, -1e300, 8, 8000000001, false},
        {KNOB_INT, -1e300, 8, 8000000000, true},
        {KNOB_INT, 3, 8, 8000000003, true},
        {KNOB_INT, 3, 8, 8000000000, false},
        {KNOB_INT, -5, 8, 3, true},
        {KNOB_INT, -5, 8, 8000000003, true},
        {KNOB_INT, -5, 8, 8000000005, false},
        /* The distance is odd and above 2^53: no double. */
        {KNOB_INT, -two53, 2, two53 - 1, false},
        {KNOB_INT, -two53 + 1, 2, two53 - 1, true},
        {KNOB_INT, -two53 + 1, 2, two53, false},
        {KNOB_INT, 5, 1e300, 5, true},
        {KNOB_INT, 5, 1e300, 6, false},
        {KNOB_INT, 0, 2.5, 5, true},
        {KNOB_INT, 0, 2.5, 6, false},
        {KNOB_INT, 0, 2.5, 8000000001, false},
        {KNOB_INT, 0.5, 1.5, 2, true},
        {KNOB_FLOAT, 0, 0.1, 0.1 + 0.2, true},
        {KNOB_FLOAT, 0, 0.1, 123456.7, true},
        {KNOB_FLOAT, 0, 0.1, 123456.75, false},
        {KNOB_FLOAT, 0, 0.1, 1e9 + 0.1, true},
        {KNOB_FLOAT, 0, 0.1, 1e9 + 0.15, false},
        {KNOB_FLOAT, 1e9, 0.1, 1e9 + 0.1, true},
        {KNOB_FLOAT, 1e9, 0.1, 1e9 + 0.15, false},
        {KNOB_FLOAT, 0, 8, 8000000001, false},
        {KNOB_FLOAT, -0.3, 0.1, 0.4, true},
        {KNOB_FLOAT, 0, 1e-6, 1e300, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char which[40];
        snprintf(which, sizeof(which), "row %zu", i);
        const struct knob_spec spec = {.name = "x",
                                       .type = rows[i].type,
                                       .min = rows[i].min,
                                       .max = INFINITY,
                                       .step = rows[i].step};
        const struct knob_value value = NUMBER(rows[i].number);
        int expected = rows[i].good ? 0 : -EINVAL;
        TEST_ASSERT_EQUAL_INT_MESSAGE(expected, knob_check(&spec, &value, NULL), which);
    }
}

static void test_values(void) {
    static const struct {
        const struct knob_spec *spec;
        struct knob_value value;
        const char *refusal; /* NULL: good */
    } rows[] = {
        {&res, NUMBER(240), NULL},
        {&res, NUMBER(1080), NULL},
        {&res, NUMBER(480), NULL},
        {&res, NUMBER(481), "res: 481 is not one of its steps of 8, the nearest are 480 and 488"},
        {&coarse, NUMBER(500),
         "res: 500 is not one of its steps of 120, the nearest are 480 and 600"},
        {&coarse, NUMBER(990), "res: 990 is not one of its steps of 120, the nearest is 960"},
        {&res, NUMBER(2000), "res: 2000 is above its maximum, 1080"},
        {&res, NUMBER(0), "res: 0 is below its minimum, 240"},
        {&res, NUMBER(480.5), "res: 480.5 is not a whole number up to 2^53"},
        {&res, NUMBER(NAN), "res: expected a whole number, got NaN"},
        {&res, TEXT("480"), "res: expected a whole number, got \"480\""},
        {&res, TRUTH(1), "res: expected a whole number, got true"},
        {&res, {0}, "res: expected a whole number, got null"},
        {&gain, NUMBER(0.3), NULL},
        {&gain, NUMBER(-1e6), NULL},
        {&gain, NUMBER(0.35),
         "gain: 0.35 is not one of its steps of 0.1, the nearest are 0.3 and 0.4"},
        {&gain, NUMBER(-0.05),
         "gain: -0.05 is not one of its steps of 0.1, the nearest are -0.1 and 0"},
        {&gain, NUMBER(INFINITY), "gain: expected a number, got +Inf"},
        {&flip, TRUTH(1), NULL},
        {&flip, NUMBER(1), "flip: expected true or false, got 1"},
        {&model, TEXT(""), NULL},
        {&model, NUMBER(1), "model: expected a string, got 1"},
        {&mode, TEXT("exact"), NULL},
        {&mode, TEXT("Fast"), "mode: expected one of fast, exact, got \"Fast\""},
        {&mode, NUMBER(1), "mode: expected one of its values, got 1"},
        {&any, NUMBER(0.5), NULL},
        {&any, TRUTH(1), NULL},
        {&any, TEXT("auto"), NULL},
        {&any, {0}, NULL},
        {&any, NUMBER(NAN), "any: expected a number, true, false or a string, got NaN"},
        {&open, {0}, NULL},
        {&open, NUMBER(100), "open: 100 is below its minimum, 240"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        err.text[0] = '\0';
        int r = knob_check(rows[i].spec, &rows[i].value, &err);
        TEST_ASSERT_EQUAL_STRING(rows[i].refusal != NULL ? rows[i].refusal : "", err.text);
        TEST_ASSERT_EQUAL_INT(rows[i].refusal != NULL ? -EINVAL : 0, r);
    }
}

static void test_long_text(void) {
    char text[KNOB_MAX_TEXT + 2] = {0};
    memset(text, 'x', KNOB_MAX_TEXT);
    struct knob_value value = TEXT(text);
    TEST_ASSERT_EQUAL_INT(0, knob_check(&model, &value, &err));
    TEST_ASSERT_EQUAL_INT(0, knob_check(&any, &value, &err));
    TEST_ASSERT_GREATER_THAN_size_t(4 * KNOB_MAX_TEXT, knob_spec_room(&any));
    text[KNOB_MAX_TEXT] = 'x';
    TEST_ASSERT_EQUAL_INT(-EINVAL, knob_check(&model, &value, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, knob_check(&any, &value, &err));
}

static void test_long_declarations(void) {
    char text[8 * KNOB_MAX_TEXT] = {0};
    memset(text, 'x', sizeof(text) - 1);
    struct knob_spec long_ones[] = {model, model, model, mode};
    long_ones[0].name = text;
    long_ones[1].help = text;
    long_ones[2].unit = text;
    const char *const values[] = {"fast", text};
    long_ones[3].values = values;
    for (size_t i = 0; i < ARRAY_LEN(long_ones); i++) {
        TEST_ASSERT_EQUAL_INT(-E2BIG, knob_spec_check(&long_ones[i], &err));
    }
}

static void test_declarations(void) {
    static const struct knob_spec *const good[] = {&res, &gain, &flip, &model, &mode, &any, &open};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, knob_spec_check(good[i], &err), err.text);
    }
    struct knob_spec bad[9];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bad[i] = res;
    }
    bad[0].name = "a-b";
    bad[1].min = 2000;
    bad[2].step = -1;
    bad[3].type = KNOB_ANY;
    bad[4].initial = (struct knob_value)NUMBER(7);
    bad[5].type = KNOB_BOOL;
    bad[6].values = modes;
    bad[6].n_values = 2;
    bad[7].type = KNOB_ENUM;
    bad[8].step = INFINITY;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err.text[0] = '\0';
        TEST_ASSERT_EQUAL_INT(-EINVAL, knob_spec_check(&bad[i], &err));
        TEST_ASSERT_NOT_EQUAL_CHAR('\0', err.text[0]);
    }
}

static void test_equal(void) {
    struct knob_value one = NUMBER(1), yes = TRUTH(1), text = TEXT("1"), same = TEXT("1");
    struct knob_value absent = {0};
    TEST_ASSERT_FALSE(knob_value_equal(&one, &yes));
    TEST_ASSERT_FALSE(knob_value_equal(&one, &absent));
    TEST_ASSERT_TRUE(knob_value_equal(&absent, &absent));
    TEST_ASSERT_TRUE(knob_value_equal(&text, &same));
}
