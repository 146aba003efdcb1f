#include "placement/onnx/graph.h"

#include <errno.h>
#include <unity.h>

#include "tests/unit/placement/onnx/onnx_text.h"

static struct buf graph, file;
static struct onnx_model model;
static struct error err;

void setUp(void) {
    graph = file = (struct buf){0};
    model = (struct onnx_model){.mapped = false};
    err = (struct error){.text = ""};
}

void tearDown(void) {
    onnx_model_finish(&model);
    buf_finish(&graph);
    buf_finish(&file);
}

/* Puts the graph into a model and reads that. */
static int read_model(void) {
    onnx_put_part(&file, 7, &graph);
    model.file = (struct protobuf){buf_str(&file), file.len};
    return onnx_model_read(&model, &err);
}

static void test_names_join_nodes_and_weights(void) {
    onnx_put_node(&graph, "MatMul", "x", "w", "y");
    onnx_put_weights(&graph, "w", 3, 5, false);
    TEST_ASSERT_EQUAL_INT(0, read_model());
    const struct onnx_node *node = model.graph->nodes;
    TEST_ASSERT_EQUAL_UINT64(2, node->n_inputs);
    TEST_ASSERT_NULL(node->inputs[0]->tensor);
    TEST_ASSERT_TRUE(node->inputs[1]->is_initializer);
    TEST_ASSERT_EQUAL_INT64(5, node->inputs[1]->tensor->dims[1]);
    TEST_ASSERT_EQUAL_UINT64(15, model.graph->n_parameters);
    TEST_ASSERT_EQUAL_PTR(node, node->outputs[0]->producer);
}

static void test_packed_dimensions(void) {
    onnx_put_weights(&graph, "w", 300, 500, true);
    TEST_ASSERT_EQUAL_INT(0, read_model());
    TEST_ASSERT_EQUAL_UINT64(150000, model.graph->n_parameters);
}

/* A message that is written twice is the sum of both. */
static void test_two_graphs_are_one(void) {
    onnx_put_weights(&graph, "w", 2, 2, false);
    onnx_put_part(&file, 7, &graph);
    onnx_put_node(&graph, "MatMul", "x", "w", "y");
    TEST_ASSERT_EQUAL_INT(0, read_model());
    TEST_ASSERT_TRUE(model.graph->nodes->inputs[1]->is_initializer);
}

static void test_wrong_wire_types_are_passed_over(void) {
    onnx_put_number(&graph, 1, 17); /* a node that is a number */
    onnx_put_number(&file, 2, 5);   /* a producer as well */
    TEST_ASSERT_EQUAL_INT(0, read_model());
    TEST_ASSERT_EQUAL_UINT64(0, model.graph->n_nodes);
    TEST_ASSERT_EQUAL_UINT64(0, model.producer_name.len);
}

static void test_subgraph_sees_what_is_around_it(void) {
    struct buf inner CLEANUP_BUF = {0}, attribute CLEANUP_BUF = {0}, node CLEANUP_BUF = {0};
    onnx_put_node(&inner, "MatMul", "x", "w", "y");
    onnx_put_text(&attribute, 1, "then_branch");
    onnx_put_part(&attribute, 6, &inner);
    onnx_put_text(&node, 4, "If");
    onnx_put_part(&node, 5, &attribute);
    onnx_put_part(&graph, 1, &node);
    onnx_put_weights(&graph, "w", 2, 3, false);
    TEST_ASSERT_EQUAL_INT(0, read_model());
    const struct onnx_graph *branch = model.graph->nodes->subgraphs;
    const struct onnx_value *weights = branch->nodes->inputs[1];
    TEST_ASSERT_NULL(weights->tensor);
    TEST_ASSERT_EQUAL_UINT64(6, onnx_value_resolve(&model, weights)->tensor->n_elements);
    TEST_ASSERT_EQUAL_PTR(branch->nodes->inputs[0],
                          onnx_value_resolve(&model, branch->nodes->inputs[0]));
}

/* Every beginning of a good file either ends between two fields or is told from where it breaks. */
static void test_cut_off_anywhere(void) {
    onnx_put_node(&graph, "MatMul", "x", "w", "y");
    onnx_put_weights(&graph, "w", 3, 5, false);
    TEST_ASSERT_EQUAL_INT(0, read_model());
    for (size_t len = 1; len < file.len; len++) {
        onnx_model_finish(&model);
        model = (struct onnx_model){.file = {buf_str(&file), len}};
        TEST_ASSERT_EQUAL_INT(-EINVAL, onnx_model_read(&model, &err));
        TEST_ASSERT_EQUAL_STRING_LEN("byte 0: ", err.text, 8);
    }
}

static const struct {
    uint64_t rows, columns;
    const char *said;
} wrong_dims[] = {
    {UINT64_MAX, 1, "byte 4: a tensor with a negative dimension"},
    {UINT64_C(1) << 40, UINT64_C(1) << 40, "byte 4: a tensor of more elements than can be counted"},
};

static void test_wrong_dimensions(void) {
    for (size_t i = 0; i < ARRAY_LEN(wrong_dims); i++) {
        tearDown();
        setUp();
        onnx_put_weights(&graph, "w", wrong_dims[i].rows, wrong_dims[i].columns, false);
        TEST_ASSERT_EQUAL_INT(-EINVAL, read_model());
        TEST_ASSERT_EQUAL_STRING(wrong_dims[i].said, err.text);
    }
}

/* One of them is empty, so that the product is none. */
static void test_dimension_zero(void) {
    onnx_put_weights(&graph, "w", UINT64_C(1) << 62, 0, false);
    TEST_ASSERT_EQUAL_INT(0, read_model());
    TEST_ASSERT_EQUAL_UINT64(0, model.graph->n_parameters);
}

/* Parts of a graph, each with little in it; all of them take much more memory than room in the
 * file. */
static const struct {
    const char *bytes;
    size_t len;
} dense[] = {
    {"\x0a\x00", 2},                 /* a node */
    {"\x0a\x04\x2a\x02\x2a\x00", 6}, /* a node with an attribute with a tensor */
    {"\x0a\x04\x2a\x02\x32\x00", 6}, /* a node with an attribute with a graph */
    {"\x2a\x00", 2},                 /* weights */
    {"\x5a\x00", 2},                 /* an input */
    {"\x62\x00", 2},                 /* an output */
};

static void test_graph_that_takes_much_memory(void) {
    enum { N = 40000, MAX_MEMORY = 1 << 20 };
    for (size_t i = 0; i < ARRAY_LEN(dense); i++) {
        tearDown();
        setUp();
        model.arena.max = MAX_MEMORY;
        for (int k = 0; k < N; k++) {
            buf_add(&graph, dense[i].bytes, dense[i].len);
        }
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EFBIG, read_model(), dense[i].bytes);
        TEST_ASSERT_EQUAL_STRING("its graph takes more than 1048576 bytes of memory", err.text);
        TEST_ASSERT_LESS_OR_EQUAL_size_t(MAX_MEMORY, model.arena.taken);
    }
}

static void test_tensors_of_one_attribute_take_memory(void) {
    struct buf attribute CLEANUP_BUF = {0}, node CLEANUP_BUF = {0};
    for (int i = 0; i < 20000; i++) {
        buf_add(&attribute, "\x2a\x00", 2);
    }
    onnx_put_part(&node, 5, &attribute);
    onnx_put_part(&graph, 1, &node);
    model.arena.max = 1 << 20;
    TEST_ASSERT_EQUAL_INT(-EFBIG, read_model());
}
