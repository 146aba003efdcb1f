#include "placement/onnx/traits.h"

#include <errno.h>

#include "exporter/core/hash.h"
#include "placement/onnx/op.h"

/* ---- multiplications ---- */

/* Multiplications with addition, as papers count them: additions of a bias and activations are
 * left out. */

static uint64_t product_of_output(const struct onnx_node *node) {
    struct onnx_dims out;
    return node->n_outputs > 0 && onnx_shape_dims(&node->outputs[0]->shape, &out)
               ? onnx_dims_product(&out, 0)
               : UINT64_MAX;
}

/* UINT64_MAX if the number is unknown. */
static uint64_t macs_of(const struct onnx_layer *layer) {
    struct onnx_dims in, weights, state;
    bool has_in = onnx_input_dims(layer, 0, &in);
    bool has_weights = onnx_input_dims(layer, layer->op->weight_input, &weights);
    uint64_t out = product_of_output(layer->node), times = UINT64_MAX, each = UINT64_MAX;
    switch (layer->op->kind) {
    case ONNX_OTHER:
    case ONNX_POOL:
        return 0;
    case ONNX_CONV: /* every result takes one filter over its part of the channels */
        times = out;
        each = has_weights && weights.n >= 2 ? onnx_dims_product(&weights, 1) : UINT64_MAX;
        break;
    case ONNX_CONV_TRANSPOSE: /* every input is spread by one filter */
        times = has_in ? onnx_dims_product(&in, 0) : UINT64_MAX;
        each = has_weights && weights.n >= 2 ? onnx_dims_product(&weights, 1) : UINT64_MAX;
        break;
    case ONNX_GEMM:
        times = out;
        each = has_weights && weights.n == 2
                   ? (uint64_t)weights.at[onnx_attribute_int(layer->node, "transB", 0) != 0]
                   : UINT64_MAX;
        break;
    case ONNX_MATMUL:
        times = out;
        each = has_in && in.n >= 2 ? (uint64_t)in.at[in.n - 1] : UINT64_MAX;
        break;
    case ONNX_RECURRENT: /* input and state go through their weights at every step */
        if (has_in && has_weights && onnx_input_dims(layer, 2, &state) && in.n == 3) {
            times = onnx_multiply((uint64_t)in.at[0], (uint64_t)in.at[1]);
            each = onnx_add(onnx_dims_product(&weights, 0), onnx_dims_product(&state, 0));
        }
        break;
    }
    return times == UINT64_MAX || each == UINT64_MAX ? UINT64_MAX : onnx_multiply(times, each);
}

/* ---- the counts of the original service ---- */

/* Counting as the original service does, odd rules included: predictors that were trained with its
 * numbers need the same ones. */

static const struct onnx_tensor *initializer_of(const struct onnx_node *node, size_t input) {
    return input < node->n_inputs && node->inputs[input]->is_initializer
               ? node->inputs[input]->tensor
               : NULL;
}

static bool comes_from(const struct onnx_node *node, const char *op_type) {
    const struct onnx_node *producer = node->n_inputs > 0 ? node->inputs[0]->producer : NULL;
    return producer != NULL && onnx_text_is(producer->op_type, op_type);
}

/* A convolution behind the global pool is the classifier: it counts as both. */
static void count_original_conv(const struct onnx_node *node, struct onnx_traits *traits) {
    const struct onnx_tensor *weights = initializer_of(node, 1);
    if (weights != NULL && weights->n_dims > 0) {
        traits->conv_layers++;
        traits->filter_details = onnx_add(traits->filter_details, (uint64_t)weights->dims[0]);
        traits->fc_layers += comes_from(node, "GlobalAveragePool");
    }
}

static void count_as_original(const struct onnx_model *model, struct onnx_traits *traits) {
    traits->total_parameters = model->graph->n_parameters;
    for (const struct onnx_node *node = model->graph->nodes; node != NULL; node = node->next) {
        if (onnx_text_is(node->op_type, "Conv")) {
            count_original_conv(node, traits);
        } else if (onnx_text_is(node->op_type, "Gemm")) {
            traits->fc_layers++;
        } else if (onnx_text_is(node->op_type, "MatMul")) {
            traits->fc_layers += comes_from(node, "Flatten") || initializer_of(node, 1) != NULL;
        } else if (onnx_text_is(node->op_type, "AveragePool") ||
                   onnx_text_is(node->op_type, "GlobalAveragePool") ||
                   onnx_text_is(node->op_type, "MaxPool")) {
            traits->pool_layers++;
        }
    }
}

/* ---- totals ---- */

enum { MAX_CALLS = 64 }; /* of functions within functions */

const char *const onnx_total_names[ONNX_N_TOTALS] = {
    [ONNX_CONV_LAYERS] = "conv_layers",
    [ONNX_DEPTHWISE_LAYERS] = "depthwise_conv_layers",
    [ONNX_GROUPED_LAYERS] = "grouped_conv_layers",
    [ONNX_FILTERS] = "filters",
    [ONNX_FC_LAYERS] = "fc_layers",
    [ONNX_MATMUL_LAYERS] = "matmul_layers",
    [ONNX_POOL_LAYERS] = "pool_layers",
    [ONNX_RECURRENT_LAYERS] = "recurrent_layers",
    [ONNX_QUANTISED_LAYERS] = "quantised_layers",
    [ONNX_FUSED_LAYERS] = "fused_layers",
    [ONNX_PARAMETERS] = "parameters",
    [ONNX_WEIGHT_BYTES] = "weight_bytes",
    [ONNX_MACS] = "macs",
    [ONNX_MACS_UNKNOWN] = "layers_without_macs",
    [ONNX_NODES] = "nodes",
    [ONNX_SUBGRAPHS] = "subgraphs",
};

struct sums {
    uint64_t at[ONNX_N_TOTALS];
};

/* A function that was counted, or that is being counted. */
struct called {
    const struct onnx_graph *function;
    bool done;
    struct sums sums;
};

struct counter {
    struct onnx_model *model;
    struct hash_index functions; /* of struct called */
    int depth;
};

static uint64_t hash_text(struct protobuf text) {
    return hash_bytes(text.data, text.len);
}

static void add(struct sums *sums, enum onnx_total total, uint64_t n) {
    sums->at[total] = onnx_add(sums->at[total], n);
}

static void add_sums(struct sums *to, const struct sums *from) {
    for (size_t i = 0; i < ONNX_N_TOTALS; i++) {
        add(to, (enum onnx_total)i, from->at[i]);
    }
}

/* Of the weights' form [filters, channels per group, …] one channel per group is depthwise. */
static void count_conv(const struct onnx_layer *layer, const struct onnx_tensor *weights,
                       struct sums *sums) {
    int64_t group = onnx_attribute_int(layer->node, "group", 1);
    sums->at[ONNX_CONV_LAYERS]++;
    if (weights == NULL || weights->n_dims < 2) {
        sums->at[ONNX_GROUPED_LAYERS] += group > 1;
        return;
    }
    bool transposed = layer->op->kind == ONNX_CONV_TRANSPOSE;
    bool depthwise = group > 1 && weights->dims[1] == 1;
    uint64_t filters = (uint64_t)weights->dims[transposed ? 1 : 0];
    add(sums, ONNX_FILTERS,
        transposed ? onnx_multiply(filters, group > 0 ? (uint64_t)group : 1) : filters);
    sums->at[ONNX_DEPTHWISE_LAYERS] += depthwise;
    sums->at[ONNX_GROUPED_LAYERS] += group > 1 && !depthwise;
}

static bool count_product(const struct onnx_layer *layer, const struct onnx_tensor *weights,
                          struct sums *sums) {
    bool quantised = false;
    bool stored = weights != NULL || layer->op->kind == ONNX_GEMM ||
                  onnx_input_weights(layer, 0, &quantised) != NULL;
    sums->at[stored ? ONNX_FC_LAYERS : ONNX_MATMUL_LAYERS]++;
    return quantised;
}

static void count_layer(const struct onnx_model *model, const struct onnx_node *node,
                        struct sums *sums) {
    const struct onnx_op *op = onnx_op_find(node);
    const struct onnx_layer layer = {model, node, op, .output = 0};
    bool quantised = false;
    const struct onnx_tensor *weights =
        op->kind != ONNX_OTHER && op->kind != ONNX_POOL
            ? onnx_input_weights(&layer, op->weight_input, &quantised)
            : NULL;
    switch (op->kind) {
    case ONNX_OTHER:
        return;
    case ONNX_CONV:
    case ONNX_CONV_TRANSPOSE:
        count_conv(&layer, weights, sums);
        break;
    case ONNX_GEMM:
    case ONNX_MATMUL:
        quantised = count_product(&layer, weights, sums) || quantised;
        break;
    case ONNX_POOL:
        sums->at[ONNX_POOL_LAYERS]++;
        break;
    case ONNX_RECURRENT:
        sums->at[ONNX_RECURRENT_LAYERS]++;
        break;
    }
    sums->at[ONNX_QUANTISED_LAYERS] += quantised || (op->flags & ONNX_QUANTISED) != 0;
    sums->at[ONNX_FUSED_LAYERS] += (op->flags & ONNX_FUSED) != 0;
    uint64_t macs = macs_of(&layer);
    add(sums, macs == UINT64_MAX ? ONNX_MACS_UNKNOWN : ONNX_MACS, macs == UINT64_MAX ? 1 : macs);
}

static void count_graph(struct counter *counter, const struct onnx_graph *graph, struct sums *sums);

static bool same_text(struct protobuf a, struct protobuf b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static struct called *find_function(const struct counter *counter, const struct onnx_node *node) {
    size_t cursor = 0;
    struct called *called;
    do {
        called = hash_index_next(&counter->functions, hash_text(node->op_type), &cursor);
    } while (called != NULL && !(same_text(called->function->name, node->op_type) &&
                                 same_text(called->function->domain, node->domain)));
    return called;
}

static void count_call(struct counter *counter, struct called *called, struct sums *sums) {
    if (!called->done && counter->depth == MAX_CALLS) {
        onnx_fail(counter->model, called->function->start,
                  "a function that calls itself, or calls more than %d deep", MAX_CALLS);
        return;
    }
    if (!called->done) {
        struct sums own = {{0}};
        counter->depth++;
        count_graph(counter, called->function, &own);
        counter->depth--;
        called->sums = own;
        called->done = true;
    }
    add_sums(sums, &called->sums);
}

/* Counts the branch of an If with more weights and layers; the number of iterations of a loop is
 * not in the file, so its multiplications are unknown. */
static void count_subgraphs(struct counter *counter, const struct onnx_node *node,
                            struct sums *sums) {
    bool is_if = onnx_text_is(node->op_type, "If");
    struct sums best = {{0}};
    for (const struct onnx_graph *inner = node->subgraphs; inner != NULL; inner = inner->next) {
        struct sums own = {.at = {[ONNX_SUBGRAPHS] = 1}};
        count_graph(counter, inner, &own);
        if (!is_if) {
            add(&own, ONNX_MACS_UNKNOWN, own.at[ONNX_MACS] > 0);
            own.at[ONNX_MACS] = 0;
            add_sums(&best, &own);
        } else if (own.at[ONNX_PARAMETERS] > best.at[ONNX_PARAMETERS] ||
                   (own.at[ONNX_PARAMETERS] == best.at[ONNX_PARAMETERS] &&
                    own.at[ONNX_NODES] > best.at[ONNX_NODES])) {
            best = own;
        }
    }
    add_sums(sums, &best);
}

static void count_graph(struct counter *counter, const struct onnx_graph *graph,
                        struct sums *sums) {
    add(sums, ONNX_PARAMETERS, onnx_add(graph->n_parameters, graph->n_sparse_values));
    add(sums, ONNX_WEIGHT_BYTES, graph->n_weight_bytes);
    const struct onnx_node *node = graph->nodes;
    for (; node != NULL && counter->model->status == 0; node = node->next) {
        sums->at[ONNX_NODES]++;
        const struct onnx_value *output = node->n_outputs > 0 ? node->outputs[0] : NULL;
        if (output != NULL && !output->is_initializer && output->tensor != NULL) {
            add(sums, ONNX_PARAMETERS, output->tensor->n_elements);
            add(sums, ONNX_WEIGHT_BYTES, onnx_tensor_bytes(output->tensor));
        }
        struct called *called = find_function(counter, node);
        if (called != NULL) {
            count_call(counter, called, sums);
        } else {
            count_layer(counter->model, node, sums);
        }
        count_subgraphs(counter, node, sums);
    }
}

static int64_t bytes_of(const struct onnx_port *ports, bool *batch_assumed) {
    uint64_t sum = 0;
    for (const struct onnx_port *port = ports; port != NULL; port = port->next) {
        struct onnx_dims dims;
        size_t size = onnx_type_size(port->shape.data_type);
        if (port->value->is_initializer) {
            continue;
        }
        /* The shape of an output may follow from the layers only. */
        const struct onnx_shape *shape =
            onnx_shape_dims(&port->shape, &dims) ? &port->shape : &port->value->shape;
        if (!onnx_shape_dims(shape, &dims) || size == 0) {
            return -1;
        }
        *batch_assumed = *batch_assumed || (shape->n_dims > 0 && shape->dims[0] < 0);
        sum = onnx_add(sum, onnx_multiply(onnx_dims_product(&dims, 0), size));
    }
    return sum > INT64_MAX ? -1 : (int64_t)sum;
}

static void list_functions(struct onnx_model *model, struct counter *counter) {
    for (const struct onnx_graph *f = model->functions; f != NULL; f = f->next) {
        struct called *called = onnx_take(model, sizeof(*called));
        if (called == NULL) {
            return;
        }
        *called = (struct called){.function = f};
        hash_index_add(&counter->functions, hash_text(f->name), called);
    }
}

int onnx_traits_get(struct onnx_model *model, struct onnx_traits *ret_traits, struct error *err) {
    struct counter counter = {.model = model};
    struct sums sums = {{0}};
    model->err = err;
    onnx_shapes_fill(model, model->graph);
    list_functions(model, &counter);
    count_graph(&counter, model->graph, &sums);
    hash_index_finish(&counter.functions);
    if (model->status < 0) {
        return model->status;
    }
    struct onnx_traits traits = {0};
    count_as_original(model, &traits);
    memcpy(traits.totals, sums.at, sizeof(sums.at));
    traits.input_bytes = bytes_of(model->graph->inputs, &traits.batch_assumed);
    traits.output_bytes = bytes_of(model->graph->outputs, &traits.batch_assumed);
    *ret_traits = traits;
    return 0;
}
