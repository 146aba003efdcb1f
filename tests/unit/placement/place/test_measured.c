#include "placement/place/measured.h"

#include <string.h>
#include <unity.h>

static const struct place_measured_limits limits = {.min_samples = 10, .max_age_seconds = 60};

static struct place_samples samples;
static struct place_nodes nodes;
static struct buf devices, rows;
static struct error err;

void setUp(void) {
    samples = (struct place_samples){.load = {.n_series = 0}};
    nodes = (struct place_nodes){.n_nodes = 0};
    devices = rows = (struct buf){0};
}

void tearDown(void) {
    place_samples_finish(&samples);
    place_nodes_finish(&nodes);
    buf_finish(&devices);
    buf_finish(&rows);
}

static void add_row(struct buf *out, const char *labels, const char *value) {
    buf_printf(out, "%s{\"metric\":{%s},\"value\":[1,\"%s\"]}", out->len > 0 ? "," : "", labels,
               value);
}

static void add_node(const char *name) {
    struct buf labels CLEANUP_BUF = {0};
    buf_printf(&labels, "\"char_node_name\":\"%s\",\"node\":\"%s\",\"instance\":\"%s:1\"", name,
               name, name);
    add_row(&devices, buf_str(&labels), "1");
}

static void add(const char *where, const char *model, const char *quantity, const char *value) {
    struct buf labels CLEANUP_BUF = {0};
    buf_printf(&labels, "%s,\"model\":\"%s\",\"quantity\":\"%s\"", where, model, quantity);
    add_row(&rows, buf_str(&labels), value);
}

static void add_all(const char *where, const char *model, const char *seconds, const char *n,
                    const char *age) {
    add(where, model, "age", age);
    add(where, model, "samples", n);
    add(where, model, "seconds", seconds);
}

static void parse(struct promql_answer *answer, struct buf *from) {
    buf_printf(&answer->text,
               "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
               buf_str(from));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, promql_answer_parse(answer, 100, &err), err.text);
}

static void join(void) {
    parse(&samples.device, &devices);
    parse(&samples.measured, &rows);
    TEST_ASSERT_EQUAL_INT(0, place_nodes_join(&samples, 60, &nodes, &err));
    TEST_ASSERT_EQUAL_INT(0, place_measured_join(&samples, "yolo", &limits, &nodes, &err));
}

static const struct place_node *node_of(const char *name) {
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        if (strcmp(nodes.nodes[i].name, name) == 0) {
            return &nodes.nodes[i];
        }
    }
    TEST_FAIL_MESSAGE(name);
    return NULL;
}

static void check(const char *name, double seconds, double n, double age) {
    const struct place_node *node = node_of(name);
    TEST_ASSERT_TRUE_MESSAGE(place_node_is_measured(node), name);
    TEST_ASSERT_EQUAL_DOUBLE(seconds, node->measured.seconds);
    TEST_ASSERT_EQUAL_DOUBLE(n, node->measured.samples);
    TEST_ASSERT_EQUAL_DOUBLE(age, node->measured.age_seconds);
}

static void test_by_node_and_model(void) {
    add_node("a");
    add_node("b");
    add_node("c");
    add_all("\"instance\":\"b:1\"", "yolo", "0.5", "20", "2");
    add_all("\"node\":\"a\"", "yolo", "0.25", "10", "60");
    add_all("\"node\":\"a\"", "ssd", "7", "70", "7");
    add_all("\"node\":\"c\"", "ssd", "8", "80", "8");
    add_all("\"node\":\"elsewhere\"", "yolo", "9", "90", "9");
    join();
    check("a", 0.25, 10, 60);
    check("b", 0.5, 20, 2);
    TEST_ASSERT_EQUAL_DOUBLE(0, node_of("c")->measured.samples);
    TEST_ASSERT_FALSE(place_node_is_measured(node_of("c")));
}

static const struct {
    const char *seconds, *n, *age;
    const char *unused; /* NULL: as if it had not been measured at all */
} bad[] = {
    {"1", "9", "1", "too few"}, {"1", "9.99", "1", "too few"}, {"1", "10", "60.1", "too old"},
    {"NaN", "0", "1", NULL},    {"NaN", "20", "1", NULL},      {"1", "NaN", "1", NULL},
    {"1", "20", "NaN", NULL},   {"0", "20", "1", NULL},        {"-1", "20", "1", NULL},
    {"+Inf", "20", "1", NULL},  {NULL, "20", "1", NULL},       {"1", NULL, "1", NULL},
    {"1", "20", NULL, NULL},
};

static void test_never_a_guess(void) {
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *const values[] = {bad[i].seconds, bad[i].n, bad[i].age};
        static const char *const names[] = {"seconds", "samples", "age"};
        setUp();
        add_node("a");
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            if (values[k] != NULL) {
                add("\"node\":\"a\"", "yolo", names[k], values[k]);
            }
        }
        join();
        const struct place_measured *found = &node_of("a")->measured;
        TEST_ASSERT_FALSE(place_node_is_measured(node_of("a")));
        if (bad[i].unused != NULL) {
            TEST_ASSERT_EQUAL_STRING(bad[i].unused, found->unused);
            TEST_ASSERT_EQUAL_DOUBLE(1, found->seconds);
        } else {
            TEST_ASSERT_EQUAL_DOUBLE(0, found->samples);
        }
        tearDown();
    }
    setUp();
}

static void test_contradictions(void) {
    add_node("a");
    add_all("\"node\":\"a\",\"plugin\":\"x\"", "yolo", "1", "20", "1");
    add_all("\"node\":\"a\",\"plugin\":\"y\"", "yolo", "2", "20", "1");
    join();
    TEST_ASSERT_EQUAL_DOUBLE(0, node_of("a")->measured.samples);
}

/* A name cannot end the string that it stands in. */
static void test_query(void) {
    static const char *const cases[][3] = {
        {"a{model=\"$model\"} / b{model=\"$model\"}", "yolo",
         "a{model=\"yolo\"} / b{model=\"yolo\"}"},
        {"a{model=\"$model\"}", "x\"} or vector(1) #\\\n",
         "a{model=\"x\\\"} or vector(1) #\\\\\\n\"}"},
        {"a{model=\"$model\"}", "$model", "a{model=\"$model\"}"},
        {"a:mean", "yolo", "a:mean"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out CLEANUP_BUF = {0};
        place_measured_query_write(cases[i][0], cases[i][1], &out);
        TEST_ASSERT_EQUAL_STRING(cases[i][2], buf_str(&out));
    }
}
