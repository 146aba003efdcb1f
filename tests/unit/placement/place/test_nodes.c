#include "placement/place/nodes.h"

#include <string.h>
#include <unity.h>

static struct place_samples samples;
static struct place_nodes nodes;
static struct buf rows[N_PLACE_QUERIES];
static struct error err;

void setUp(void) {
    samples = (struct place_samples){.load = {.n_series = 0}};
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
        struct promql_answer *answer = place_samples_answer(&samples, (enum place_query)i);
        buf_printf(&answer->text,
                   "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[%s]}}",
                   buf_str(&rows[i]));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, promql_answer_parse(answer, 100, &err), err.text);
    }
    TEST_ASSERT_EQUAL_INT(0, place_nodes_join(&samples, 60, &nodes, &err));
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
    check_excluded("a", "several CPU loads");
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
