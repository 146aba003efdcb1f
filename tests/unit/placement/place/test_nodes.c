#include "placement/place/nodes.h"

#include <string.h>
#include <unity.h>

static struct place_samples samples;
static struct place_nodes nodes;
static struct buf rows[N_PLACE_QUERIES];
static struct error err;

void setUp(void) {
    memset(&samples, 0, sizeof(samples));
    nodes = (struct place_nodes){.n_nodes = 0};
    memset(rows, 0, sizeof(rows));
}

void tearDown(void) {
    place_samples_finish(&samples);
    place_nodes_finish(&nodes);
    for (size_t i = 0; i < N_PLACE_QUERIES; i++) {
        buf_finish(&rows[i]);
    }
}

/* A series of an answer: labels as JSON without braces. */
static void add(enum place_query query, const char *labels, const char *value) {
    buf_printf(&rows[query], "%s{\"metric\":{%s},\"value\":[1,\"%s\"]}",
               rows[query].len > 0 ? "," : "", labels, value);
}

static void add_state(const char *labels, const char *load, const char *disk) {
    add(PLACE_LOAD, labels, load);
    add(PLACE_DISK, labels, disk);
}

#define NAMED(name, model)                                                                         \
    "\"char_node_name\":\"" name "\",\"char_node_device_model_name\":\"" model "\""

static void join(void) {
    for (int i = 0; i < N_PLACE_QUERIES; i++) {
        struct promql_answer *answer = &samples.answers[i];
        buf_printf(&answer->text,
                   "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
                   buf_str(&rows[i]));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, promql_answer_parse(answer, 100, &err), err.text);
    }
    place_nodes_join(&samples, 60, &nodes);
}

static void check(const char *name, double load, double disk) {
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        if (strcmp(nodes.nodes[i].name, name) == 0) {
            TEST_ASSERT_NULL_MESSAGE(nodes.nodes[i].excluded, nodes.nodes[i].excluded);
            TEST_ASSERT_EQUAL_DOUBLE(load, nodes.nodes[i].load);
            TEST_ASSERT_EQUAL_DOUBLE(disk, nodes.nodes[i].disk);
            return;
        }
    }
    TEST_FAIL_MESSAGE(name);
}

static void check_excluded(const char *name, const char *reason) {
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        if (strcmp(nodes.nodes[i].name, name) == 0) {
            TEST_ASSERT_NOT_NULL_MESSAGE(nodes.nodes[i].excluded, name);
            TEST_ASSERT_NOT_NULL_MESSAGE(strstr(nodes.nodes[i].excluded, reason),
                                         nodes.nodes[i].excluded);
            return;
        }
    }
    TEST_FAIL_MESSAGE(name);
}

/* Of one exporter; of node_exporter and an agent whose node is the instance; by the target's. */
static void test_ways_to_find_a_node(void) {
    add(PLACE_DEVICE, NAMED("a", "x") ",\"node\":\"A\",\"instance\":\"h:1\"", "1");
    add(PLACE_DEVICE, NAMED("b", "x") ",\"instance\":\"agent:5001\"", "1");
    add(PLACE_DEVICE, NAMED("c", "x") ",\"instance\":\"h:3\"", "1");
    add_state("\"instance\":\"h:3\"", "30", "33");
    add_state("\"instance\":\"b\"", "20", "22");
    add_state("\"node\":\"A\",\"instance\":\"h:2\"", "10", "11");
    join();
    TEST_ASSERT_EQUAL_UINT64(3, nodes.n_nodes);
    check("a", 10, 11);
    check("b", 20, 22);
    check("c", 30, 33);
}

/* What is missing of one node is not taken from another on the same host. */
static void test_missing_is_missing(void) {
    add(PLACE_DEVICE, NAMED("a", "x") ",\"instance\":\"h:1\"", "1");
    add(PLACE_DEVICE, NAMED("b", "x") ",\"instance\":\"h:2\"", "1");
    add_state("\"instance\":\"h:2\"", "20", "22");
    add(PLACE_DISK, "\"instance\":\"h:1\"", "11");
    join();
    check("b", 20, 22);
    check_excluded("a", "no CPU load");
}

static void test_twice(void) {
    add(PLACE_DEVICE, NAMED("a", "x") ",\"node\":\"A\"", "1");
    add(PLACE_DEVICE, NAMED("b", "x") ",\"node\":\"B\"", "1");
    add(PLACE_DEVICE, NAMED("b", "y") ",\"node\":\"B\"", "1");
    add(PLACE_DEVICE, NAMED("c", "x") ",\"node\":\"C\",\"job\":\"1\"", "1");
    add(PLACE_DEVICE, NAMED("c", "x") ",\"node\":\"C\",\"job\":\"2\"", "1");
    add_state("\"node\":\"A\",\"instance\":\"1\"", "1", "1");
    add_state("\"node\":\"A\",\"instance\":\"2\"", "2", "2");
    add_state("\"node\":\"B\"", "3", "3");
    add_state("\"node\":\"C\"", "4", "4");
    join();
    TEST_ASSERT_EQUAL_UINT64(4, nodes.n_nodes);
    check_excluded("a", "more than one CPU load");
    check_excluded("b", "--collector.host.node-name");
    check("c", 4, 4);
}

/* Copied cards: the same name, identity and model at two places are two nodes. */
static void test_one_name_two_instances(void) {
#define COPY NAMED("rpi", "x") ",\"char_node_uuid\":\"u\",\"instance\":"
    add(PLACE_DEVICE, COPY "\"h1:9090\",\"job\":\"1\"", "1");
    add(PLACE_DEVICE, COPY "\"h2:9090\"", "1");
    add(PLACE_DEVICE, COPY "\"h1:9090\",\"job\":\"2\"", "1");
    add(PLACE_DEVICE, NAMED("nx", "x") ",\"instance\":\"h3:9090\",\"node\":\"nx\"", "1");
    add(PLACE_DEVICE, NAMED("nx", "x") ",\"instance\":\"h3:5001\",\"node\":\"nx\"", "1");
    add(PLACE_DEVICE, NAMED("moved", "x") ",\"instance\":\"h4:9090\"", "99");
    add(PLACE_DEVICE, NAMED("moved", "x") ",\"instance\":\"h5:9090\"", "1");
    add_state("\"instance\":\"h1:9090\"", "1", "1");
    add_state("\"instance\":\"h2:9090\"", "2", "2");
    add_state("\"node\":\"nx\"", "3", "3");
    add_state("\"instance\":\"h5:9090\"", "5", "5");
    join();
    TEST_ASSERT_EQUAL_UINT64(5, nodes.n_nodes);
    check("nx", 3, 3);
    struct buf names CLEANUP_BUF = {0};
    for (size_t i = 0; i < nodes.n_nodes; i++) {
        place_node_write_name(&nodes.nodes[i], &names);
        buf_printf(&names, " %s\n", nodes.nodes[i].excluded != NULL ? "out" : "in");
    }
    TEST_ASSERT_EQUAL_STRING("moved out\nmoved in\nnx in\nrpi (h1:9090) out\nrpi (h2:9090) out\n",
                             buf_str(&names));
}

static void test_values_that_are_none(void) {
    add(PLACE_DEVICE, NAMED("old", "x") ",\"node\":\"A\"", "61");
    add(PLACE_DEVICE, NAMED("nan", "x") ",\"node\":\"B\"", "1");
    add(PLACE_DEVICE, NAMED("over", "x") ",\"node\":\"C\"", "1");
    add(PLACE_DEVICE, "\"node\":\"D\"", "NaN");
    add_state("\"node\":\"A\"", "1", "1");
    add_state("\"node\":\"B\"", "NaN", "1");
    add_state("\"node\":\"C\"", "-0.5", "100");
    add_state("\"node\":\"D\"", "1", "1");
    join();
    check_excluded("old", "too old");
    check_excluded("nan", "no CPU load");
    check("over", 0, 100);
    check_excluded("D", "too old"); /* named by its other label */
}

static void test_nothing(void) {
    join();
    TEST_ASSERT_EQUAL_UINT64(0, nodes.n_nodes);
}

/* ---- measured times ---- */

static const struct place_measured_limits limits = {.min_samples = 10, .max_age_seconds = 60};

static void add_node(const char *name) {
    struct buf labels CLEANUP_BUF = {0};
    buf_printf(&labels, "\"char_node_name\":\"%s\",\"node\":\"%s\",\"instance\":\"%s:1\"", name,
               name, name);
    add(PLACE_DEVICE, buf_str(&labels), "1");
}

static void add_measured(const char *where, const char *model, const char *quantity,
                         const char *value) {
    struct buf labels CLEANUP_BUF = {0};
    buf_printf(&labels, "%s,\"model\":\"%s\",\"quantity\":\"%s\"", where, model, quantity);
    add(PLACE_MEASURED, buf_str(&labels), value);
}

static void add_all(const char *where, const char *model, const char *seconds, const char *n,
                    const char *age) {
    add_measured(where, model, "age", age);
    add_measured(where, model, "samples", n);
    add_measured(where, model, "seconds", seconds);
}

static void join_measured(void) {
    join();
    place_measured_join(&samples, "yolo", &limits, &nodes);
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

static void check_measured(const char *name, double seconds, double n, double age) {
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
    join_measured();
    check_measured("a", 0.25, 10, 60);
    check_measured("b", 0.5, 20, 2);
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
                add_measured("\"node\":\"a\"", "yolo", names[k], values[k]);
            }
        }
        join_measured();
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

static void test_ambiguous_times(void) {
    add_node("a");
    add_all("\"node\":\"a\",\"plugin\":\"x\"", "yolo", "1", "20", "1");
    add_all("\"node\":\"a\",\"plugin\":\"y\"", "yolo", "2", "20", "1");
    join_measured();
    TEST_ASSERT_EQUAL_DOUBLE(0, node_of("a")->measured.samples);
}

/* A name cannot end the string that it stands in. */
static void test_measured_query(void) {
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
