#include "profiler/analysis/gate.h"

#include <jansson.h>
#include <math.h>
#include <unity.h>

static struct measures before, after;

static void add(struct measures *measures, const char *name, double mean) {
    struct measure *measure = measures_add(measures, name, "", BETTER_NEITHER);
    TEST_ASSERT_NOT_NULL(measure);
    measure->mean = mean;
}

void setUp(void) {
    add(&before, "fps", 20);
    add(&after, "fps", 18);
    add(&before, "zero", 0);
    add(&after, "zero", 1);
    add(&after, "temperature.celsius{zone=\"cpu\"}", 60);
    add(&after, "temperature.celsius{zone=\"gpu\"}", 50);
}

void tearDown(void) {
    measures_finish(&before);
    measures_finish(&after);
}

static struct gate judge(const char *text, const struct measures *base) {
    static json_t *json;
    json_decref(json);
    json = json_loads(text, 0, NULL);
    TEST_ASSERT_NOT_NULL_MESSAGE(json, text);
    size_t n;
    struct gate *gates CLEANUP_FREE = gates_judge(json, "cpu.res=480", "cpu", &after, base, &n);
    TEST_ASSERT_EQUAL_MESSAGE(1, n, text);
    return gates[0];
}

static void test_limits(void) {
    static const struct {
        const char *text;
        enum gate_state state;
    } rows[] = {
        {"[{\"metric\":\"fps\",\"min\":18}]", GATE_OK},
        {"[{\"metric\":\"fps\",\"min\":18.1}]", GATE_FAILED},
        {"[{\"metric\":\"fps\",\"max\":18}]", GATE_OK},
        {"[{\"metric\":\"fps\",\"max\":17}]", GATE_FAILED},
        {"[{\"metric\":\"none\",\"max\":17}]", GATE_FAILED},
        {"[{\"metric\":\"fps.p50\",\"min\":1}]", GATE_FAILED},
        {"[{\"metric\":\"fps\",\"max_decrease\":0.1}]", GATE_OK},
        {"[{\"metric\":\"fps\",\"max_decrease\":0.09}]", GATE_FAILED},
        {"[{\"metric\":\"fps\",\"max_increase\":0}]", GATE_OK},
        {"[{\"metric\":\"zero\",\"max_increase\":9}]", GATE_FAILED},
        {"[{\"metric\":\"temperature\",\"max_increase\":9}]", GATE_SKIPPED},
        {"[{\"metric\":\"none\",\"max_increase\":9}]", GATE_FAILED},
        {"[{\"metric\":\"temperature\",\"max\":55}]", GATE_FAILED},
        {"[{\"metric\":\"temperature\",\"min\":55}]", GATE_FAILED},
        {"[{\"metric\":\"fps\",\"min\":1,\"target\":\"cpu\"}]", GATE_OK},
        {"[{\"metric\":\"fps\",\"min\":1,\"target\":\"cpu.res=480\"}]", GATE_OK},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].state, judge(rows[i].text, &before).state, rows[i].text);
    }
}

static void test_without_a_baseline(void) {
    struct gate gate = judge("[{\"metric\":\"fps\",\"max_decrease\":0.1}]", NULL);
    TEST_ASSERT_EQUAL(GATE_SKIPPED, gate.state);
    TEST_ASSERT_TRUE(gate_is_relative(&gate));
    TEST_ASSERT_EQUAL_STRING("max_decrease", gate_kinds[gate.kind]);
}

static void test_what_is_no_gate(void) {
    static const char *const rows[] = {
        "[]",
        "{}",
        "[1, null, \"fps\"]",
        "[{\"metric\":\"fps\"}]",
        "[{\"min\":1}]",
        "[{\"metric\":\"fps\",\"min\":\"1\"}]",
        "[{\"metric\":\"fps\",\"min\":1,\"target\":\"gpu\"}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *json = json_loads(rows[i], 0, NULL);
        size_t n;
        free(gates_judge(json, "cpu", NULL, &after, NULL, &n));
        TEST_ASSERT_EQUAL_MESSAGE(0, n, rows[i]);
        json_decref(json);
    }
}

static void test_explanations(void) {
    static const struct {
        const char *metric;
        const char *expected;
    } rows[] = {
        {"fpss.mean", "fpss.mean: there is no such measure, did you mean fps.mean?"},
        {"fsp", "fsp: there is no such measure"},
        {"fps.p50", "fps.p50 was not measured"},
        {"fps.p51", "fps.p51: there is no such measure"},
        {"temprature.max",
         "temprature.max: there is no such measure, did you mean temperature.max?"},
        {"celsius", "celsius: there is no such measure, did you mean temperature.celsius?"},
        {"", ": there is no such measure"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gate gate = {.metric = rows[i].metric, .value = NAN};
        struct buf text CLEANUP_BUF = {0};
        gate_explain(&gate, &after, &text);
        TEST_ASSERT_EQUAL_STRING(rows[i].expected, buf_str(&text));
    }
    struct gate broken = {
        .kind = GATE_MIN, .metric = "fps.mean", .value = 34, .limit = 40, .unit = "/s"};
    struct buf text CLEANUP_BUF = {0};
    gate_explain(&broken, &after, &text);
    TEST_ASSERT_EQUAL_STRING("fps.mean is 34 /s, min is 40 /s", buf_str(&text));
}
