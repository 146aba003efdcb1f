#include "placement/onnx/op.h"

#include <math.h>
#include <stdlib.h>

/* ---- inputs and their shapes ---- */

enum { MAX_UNPACKING = 4 };

bool onnx_shape_dims(const struct onnx_shape *shape, struct onnx_dims *ret) {
    if (!shape->known) {
        return false;
    }
    ret->n = shape->n_dims;
    for (size_t i = 0; i < shape->n_dims; i++) {
        ret->at[i] = i == 0 && shape->dims[i] < 0 ? 1 : shape->dims[i];
        if (ret->at[i] < 0) {
            return false;
        }
    }
    return true;
}

static const struct onnx_value *input_value(const struct onnx_layer *layer, size_t input) {
    return onnx_value_resolve(layer->model, layer->node->inputs[input]);
}

bool onnx_input_dims(const struct onnx_layer *layer, size_t input, struct onnx_dims *ret) {
    if (input >= layer->node->n_inputs) {
        return false;
    }
    const struct onnx_value *value = input_value(layer, input);
    if (value->tensor != NULL) {
        ret->n = value->tensor->n_dims;
        memcpy(ret->at, value->tensor->dims, ret->n * sizeof(ret->at[0]));
        return true;
    }
    return onnx_shape_dims(&value->shape, ret);
}

uint64_t onnx_dims_product(const struct onnx_dims *dims, size_t from) {
    uint64_t product = 1;
    for (size_t i = from; i < dims->n; i++) {
        if (__builtin_mul_overflow(product, (uint64_t)dims->at[i], &product)) {
            return UINT64_MAX;
        }
    }
    return product;
}

/* Operators between stored weights and the layer that uses them. */
static bool only_unpacks(const struct onnx_node *node, bool *ret_quantised) {
    if (onnx_text_is(node->op_type, "DequantizeLinear")) {
        *ret_quantised = true;
        return true;
    }
    return onnx_text_is(node->op_type, "Identity") || onnx_text_is(node->op_type, "Cast");
}

const struct onnx_tensor *onnx_input_weights(const struct onnx_layer *layer, size_t input,
                                             bool *ret_quantised) {
    const struct onnx_node *node = layer->node;
    *ret_quantised = false;
    for (int i = 0; i < MAX_UNPACKING && input < node->n_inputs; i++) {
        const struct onnx_value *value = onnx_value_resolve(layer->model, node->inputs[input]);
        if (value->tensor != NULL || value->producer == NULL ||
            !only_unpacks(value->producer, ret_quantised)) {
            return value->tensor;
        }
        node = value->producer;
        input = 0;
    }
    return NULL;
}

/* The tensor of an input that is fixed in the file, or NULL. */
static const struct onnx_tensor *fixed_input(const struct onnx_layer *layer, size_t input) {
    return input < layer->node->n_inputs ? input_value(layer, input)->tensor : NULL;
}

/* Whole numbers from an attribute, or from a fixed input; false if there are none. */
static bool input_ints(const struct onnx_layer *layer, const char *name, size_t input,
                       struct onnx_dims *ret) {
    const struct onnx_tensor *tensor;
    return onnx_attribute_ints(layer->node, name, ret) ||
           ((tensor = fixed_input(layer, input)) != NULL && onnx_tensor_ints(tensor, ret));
}

/* ---- operators that keep, join or rearrange their input ---- */

/* The rules begin with the shape of the first input in `dims` and leave that of the result there.
 */

/* Negative axes count from the end; -1 if it is out of range. */
static int64_t axis_of(int64_t axis, size_t n) {
    axis += axis < 0 ? (int64_t)n : 0;
    return axis < 0 || axis >= (int64_t)n ? -1 : axis;
}

static bool shape_same(const struct onnx_layer *layer, struct onnx_dims *dims) {
    (void)layer;
    (void)dims;
    return true;
}

/* Joins two shapes by their ends; a 1 stretches. */
static bool broadcast(struct onnx_dims *into, const struct onnx_dims *with) {
    struct onnx_dims wide = into->n >= with->n ? *into : *with;
    const struct onnx_dims *narrow = into->n >= with->n ? with : into;
    size_t shift = wide.n - narrow->n;
    for (size_t i = 0; i < narrow->n; i++) {
        int64_t *dim = &wide.at[i + shift];
        if (*dim != narrow->at[i] && *dim != 1 && narrow->at[i] != 1) {
            return false;
        }
        *dim = *dim == 1 ? narrow->at[i] : *dim;
    }
    *into = wide;
    return true;
}

static bool shape_broadcast(const struct onnx_layer *layer, struct onnx_dims *dims) {
    bool ok = true;
    for (size_t i = 1; ok && i < layer->node->n_inputs; i++) {
        struct onnx_dims next;
        ok = onnx_input_dims(layer, i, &next) && broadcast(dims, &next);
    }
    return ok;
}

static bool shape_concat(const struct onnx_layer *layer, struct onnx_dims *dims) {
    int64_t axis = axis_of(onnx_attribute_int(layer->node, "axis", 1), dims->n);
    bool ok = axis >= 0;
    for (size_t i = 1; ok && i < layer->node->n_inputs; i++) {
        struct onnx_dims next;
        ok = onnx_input_dims(layer, i, &next) && next.n == dims->n &&
             !__builtin_add_overflow(dims->at[axis], next.at[axis], &dims->at[axis]);
    }
    return ok;
}

static bool shape_flatten(const struct onnx_layer *layer, struct onnx_dims *dims) {
    /* The end counts as an axis. */
    int64_t axis = onnx_attribute_int(layer->node, "axis", 1);
    axis += axis < 0 ? (int64_t)dims->n : 0;
    if (axis < 0 || axis > (int64_t)dims->n) {
        return false;
    }
    uint64_t right = onnx_dims_product(dims, (size_t)axis);
    dims->n = (size_t)axis;
    uint64_t left = onnx_dims_product(dims, 0);
    *dims = (struct onnx_dims){.n = 2, .at = {(int64_t)left, (int64_t)right}};
    return left <= INT64_MAX && right <= INT64_MAX;
}

static bool shape_gemm(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims b;
    if (!onnx_input_dims(layer, layer->op->weight_input, &b) || dims->n != 2 || b.n != 2) {
        return false;
    }
    dims->at[0] = dims->at[onnx_attribute_int(layer->node, "transA", 0) != 0];
    dims->at[1] = b.at[onnx_attribute_int(layer->node, "transB", 0) == 0];
    return true;
}

static bool shape_matmul(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims b;
    if (!onnx_input_dims(layer, layer->op->weight_input, &b) || dims->n < 2 || b.n < 2) {
        return false;
    }
    int64_t rows = dims->at[dims->n - 2], columns = b.at[b.n - 1];
    dims->at[dims->n - 2] = dims->at[dims->n - 1] = 1;
    b.at[b.n - 2] = b.at[b.n - 1] = 1;
    bool ok = broadcast(dims, &b);
    dims->at[dims->n - 2] = rows;
    dims->at[dims->n - 1] = columns;
    return ok;
}

/* Marks the axes that an operator names, of its input with `more` dimensions for each: how many, or
 * -1 if one of them is wrong. */
static int read_axes(const struct onnx_layer *layer, size_t more, const struct onnx_dims *dims,
                     bool marks[static ONNX_MAX_RANK]) {
    struct onnx_dims axes;
    if (!input_ints(layer, "axes", 1, &axes)) {
        return 0;
    }
    size_t rank = dims->n + more * axes.n;
    for (size_t i = 0; i < axes.n; i++) {
        int64_t axis = rank <= ONNX_MAX_RANK ? axis_of(axes.at[i], rank) : -1;
        if (axis < 0) {
            return -1;
        }
        marks[axis] = true;
    }
    return (int)axes.n;
}

/* Without axes, those of one element go. */
static bool shape_squeeze(const struct onnx_layer *layer, struct onnx_dims *dims) {
    bool marks[ONNX_MAX_RANK] = {false};
    int n_axes = read_axes(layer, 0, dims, marks);
    size_t n = 0;
    for (size_t i = 0; i < dims->n; i++) {
        if (n_axes > 0 ? !marks[i] : dims->at[i] != 1) {
            dims->at[n++] = dims->at[i];
        }
    }
    dims->n = n;
    return n_axes >= 0;
}

static bool shape_reduce(const struct onnx_layer *layer, struct onnx_dims *dims) {
    bool marks[ONNX_MAX_RANK] = {false};
    bool keep = onnx_attribute_int(layer->node, "keepdims", 1) != 0;
    bool ok = read_axes(layer, 0, dims, marks) > 0;
    for (size_t i = 0; ok && keep && i < dims->n; i++) {
        dims->at[i] = marks[i] ? 1 : dims->at[i];
    }
    return ok && (keep || shape_squeeze(layer, dims));
}

static bool shape_unsqueeze(const struct onnx_layer *layer, struct onnx_dims *dims) {
    const struct onnx_dims in = *dims;
    bool marks[ONNX_MAX_RANK] = {false};
    int n_axes = read_axes(layer, 1, &in, marks);
    size_t taken = 0;
    dims->n = n_axes > 0 ? in.n + (size_t)n_axes : 0;
    for (size_t i = 0; i < dims->n; i++) {
        dims->at[i] = marks[i] || taken == in.n ? 1 : in.at[taken++];
    }
    return n_axes > 0;
}

/* 0 keeps a dimension, -1 takes the rest. */
static bool shape_reshape(const struct onnx_layer *layer, struct onnx_dims *dims) {
    const struct onnx_dims in = *dims;
    if (!input_ints(layer, "shape", 1, dims)) {
        return false;
    }
    int64_t *open = NULL;
    for (size_t i = 0; i < dims->n; i++) {
        int64_t *dim = &dims->at[i];
        *dim = *dim == 0 && i < in.n ? in.at[i] : *dim;
        if (*dim < -1 || (*dim == -1 && open != NULL)) {
            return false;
        }
        if (*dim == -1) {
            open = dim;
            *dim = 1;
        }
    }
    uint64_t all = onnx_dims_product(&in, 0), given = onnx_dims_product(dims, 0);
    if (all > INT64_MAX || given == 0 || all % given != 0) {
        return false;
    }
    if (open != NULL) {
        *open = (int64_t)(all / given);
    }
    return true;
}

static bool shape_transpose(const struct onnx_layer *layer, struct onnx_dims *dims) {
    const struct onnx_dims in = *dims;
    struct onnx_dims perm;
    bool is_given = onnx_attribute_ints(layer->node, "perm", &perm) && perm.n > 0;
    bool ok = !is_given || perm.n == in.n;
    for (size_t i = 0; ok && i < in.n; i++) {
        int64_t from = is_given ? perm.at[i] : (int64_t)(in.n - 1 - i);
        ok = from >= 0 && from < (int64_t)in.n;
        dims->at[i] = ok ? in.at[from] : 0;
    }
    return ok;
}

/* ---- operators that cut, stretch or frame their input ---- */

/* How much they cut is in attributes of old versions and in fixed inputs of later ones. */

enum { MAX_DIM = 1 << 30 };

static bool set_dim(struct onnx_dims *dims, size_t axis, int64_t value) {
    if (value < 0 || value > MAX_DIM) {
        return false;
    }
    dims->at[axis] = value;
    return true;
}

static bool shape_pad(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims pads;
    bool ok = input_ints(layer, "pads", 1, &pads) && pads.n == 2 * dims->n;
    for (size_t i = 0; ok && i < dims->n; i++) {
        int64_t both;
        ok = !__builtin_add_overflow(pads.at[i], pads.at[i + dims->n], &both) &&
             !__builtin_add_overflow(dims->at[i], both, &both) && set_dim(dims, i, both);
    }
    return ok;
}

/* Inputs are data, region, scales and sizes; before version 11 data and scales. */
static bool shape_resize(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims sizes;
    float scales[ONNX_MAX_RANK];
    bool has_sizes =
        layer->node->n_inputs > 3 && input_ints(layer, "", 3, &sizes) && sizes.n == dims->n;
    const struct onnx_tensor *tensor = fixed_input(layer, layer->node->n_inputs > 2 ? 2 : 1);
    bool ok = has_sizes ||
              (tensor != NULL && onnx_tensor_floats(tensor, scales, ONNX_MAX_RANK) == (int)dims->n);
    for (size_t i = 0; ok && i < dims->n; i++) {
        double size =
            has_sizes ? (double)sizes.at[i] : floor((double)dims->at[i] * (double)scales[i]);
        ok = size >= 0 && size <= MAX_DIM && set_dim(dims, i, (int64_t)size);
    }
    return ok;
}

static int64_t clamp(int64_t value, int64_t min, int64_t max) {
    return value < min ? min : value > max ? max : value;
}

/* The length of a slice; negative positions count from the end. */
static int64_t slice_len(int64_t dim, int64_t start, int64_t end, int64_t step) {
    start = start < 0 && start > -MAX_DIM ? start + dim : start;
    end = end < 0 && end > -MAX_DIM ? end + dim : end;
    if (step > 0) {
        int64_t len = clamp(end, 0, dim) - clamp(start, 0, dim);
        return len <= 0 ? 0 : (len + step - 1) / step;
    }
    int64_t len = clamp(start, -1, dim - 1) - clamp(end, -1, dim - 1);
    return len <= 0 ? 0 : (len - step - 1) / -step;
}

/* Optional numbers for each of `n` axes, which are `first`, `first` + `step`, … without. */
static bool read_optional(const struct onnx_layer *layer, const char *name, size_t input, size_t n,
                          int64_t first, int64_t step, struct onnx_dims *ret) {
    if (input_ints(layer, name, input, ret)) {
        return ret->n == n;
    }
    for (size_t i = 0; i < n; i++) {
        ret->at[i] = first + (int64_t)i * step;
    }
    return layer->node->n_inputs <= input;
}

static bool shape_slice(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims starts, ends, axes, steps;
    bool ok = input_ints(layer, "starts", 1, &starts) && input_ints(layer, "ends", 2, &ends) &&
              starts.n <= dims->n && ends.n == starts.n &&
              read_optional(layer, "axes", 3, starts.n, 0, 1, &axes) &&
              read_optional(layer, "steps", 4, starts.n, 1, 0, &steps);
    for (size_t i = 0; ok && i < starts.n; i++) {
        int64_t axis = axis_of(axes.at[i], dims->n), step = steps.at[i];
        ok = axis >= 0 && step != 0 && step > -MAX_DIM && step < MAX_DIM &&
             dims->at[axis] <= MAX_DIM &&
             set_dim(dims, (size_t)axis, slice_len(dims->at[axis], starts.at[i], ends.at[i], step));
    }
    return ok;
}

static bool shape_split(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims parts;
    int64_t axis = axis_of(onnx_attribute_int(layer->node, "axis", 0), dims->n);
    int64_t n_parts = (int64_t)layer->node->n_outputs;
    if (axis < 0) {
        return false;
    }
    if (input_ints(layer, "split", 1, &parts)) {
        return parts.n == layer->node->n_outputs &&
               set_dim(dims, (size_t)axis, parts.at[layer->output]);
    }
    return layer->node->n_inputs <= 1 && dims->at[axis] % n_parts == 0 &&
           set_dim(dims, (size_t)axis, dims->at[axis] / n_parts);
}

static bool has_small_blocks(const struct onnx_dims *dims, int64_t block) {
    return dims->n == 4 && block > 0 && block <= 1024 && dims->at[1] <= MAX_DIM &&
           dims->at[2] <= MAX_DIM && dims->at[3] <= MAX_DIM;
}

/* Channels to pixels. */
static bool shape_depth_to_space(const struct onnx_layer *layer, struct onnx_dims *dims) {
    int64_t block = onnx_attribute_int(layer->node, "blocksize", 0);
    return has_small_blocks(dims, block) && dims->at[1] % (block * block) == 0 &&
           set_dim(dims, 1, dims->at[1] / (block * block)) &&
           set_dim(dims, 2, dims->at[2] * block) && set_dim(dims, 3, dims->at[3] * block);
}

/* The other way round. */
static bool shape_space_to_depth(const struct onnx_layer *layer, struct onnx_dims *dims) {
    int64_t block = onnx_attribute_int(layer->node, "blocksize", 0);
    return has_small_blocks(dims, block) && dims->at[2] % block == 0 && dims->at[3] % block == 0 &&
           set_dim(dims, 1, dims->at[1] * block * block) && set_dim(dims, 2, dims->at[2] / block) &&
           set_dim(dims, 3, dims->at[3] / block);
}

/* ---- operators that move a window over their input: convolution and pooling ---- */

enum { MAX_SPATIAL = 8 };

struct window {
    size_t n; /* spatial dimensions */
    struct onnx_dims kernel, stride, dilation, pads, output_padding;
    bool same;
    bool ceil;
};

/* Rows of numbers that are all between `min` and MAX_DIM; without them, all are `fallback`. */
static bool read_row(const struct onnx_node *node, const char *name, int64_t fallback, int64_t min,
                     size_t n, struct onnx_dims *ret) {
    bool is_given = onnx_attribute_ints(node, name, ret) && ret->n > 0;
    bool ok = !is_given || ret->n == n;
    for (size_t i = 0; ok && i < n; i++) {
        ret->at[i] = is_given ? ret->at[i] : fallback;
        ok = ret->at[i] >= min && ret->at[i] <= MAX_DIM;
    }
    return ok;
}

/* The kernel's size is an attribute of pools, and the shape of the weights of convolutions, which
 * are NULL for pools. */
static bool read_window(const struct onnx_node *node, const struct onnx_dims *in,
                        const struct onnx_dims *weights, struct window *ret) {
    size_t n = in->n - 2;
    ret->n = n;
    struct protobuf auto_pad = onnx_attribute_text(node, "auto_pad");
    ret->same = onnx_text_is(auto_pad, "SAME_UPPER") || onnx_text_is(auto_pad, "SAME_LOWER");
    ret->ceil = onnx_attribute_int(node, "ceil_mode", 0) != 0;
    bool ok = in->n > 2 && n <= MAX_SPATIAL && read_row(node, "strides", 1, 1, n, &ret->stride) &&
              read_row(node, "dilations", 1, 0, n, &ret->dilation) &&
              read_row(node, "pads", 0, 0, 2 * n, &ret->pads) &&
              read_row(node, "output_padding", 0, 0, n, &ret->output_padding);
    if (weights == NULL) {
        return ok && read_row(node, "kernel_shape", 0, 1, n, &ret->kernel);
    }
    ok = ok && weights->n == in->n;
    for (size_t i = 0; ok && i < n; i++) {
        ret->kernel.at[i] = weights->at[i + 2];
        ok = ret->kernel.at[i] > 0 && ret->kernel.at[i] <= MAX_DIM;
    }
    return ok;
}

/* How far the kernel reaches beyond the padding of dimension `i`. */
static int64_t reach(const struct window *window, size_t i) {
    return window->dilation.at[i] * (window->kernel.at[i] - 1) + 1 - window->pads.at[i] -
           window->pads.at[i + window->n];
}

static bool slide(const struct window *window, struct onnx_dims *dims) {
    for (size_t i = 0; i < window->n; i++) {
        int64_t *dim = &dims->at[i + 2];
        int64_t stride = window->stride.at[i];
        if (*dim > MAX_DIM || (!window->same && *dim < reach(window, i))) {
            return false;
        }
        *dim = window->same
                   ? (*dim + stride - 1) / stride
                   : (*dim - reach(window, i) + (window->ceil ? stride - 1 : 0)) / stride + 1;
    }
    return true;
}

static bool shape_conv(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims weights;
    struct window window;
    bool ok = onnx_input_dims(layer, layer->op->weight_input, &weights) &&
              read_window(layer->node, dims, &weights, &window) && slide(&window, dims);
    dims->at[1] = ok ? weights.at[0] : 0;
    return ok;
}

static bool shape_conv_transpose(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct onnx_dims weights, fixed;
    struct window window;
    int64_t group = onnx_attribute_int(layer->node, "group", 1);
    bool ok = onnx_input_dims(layer, layer->op->weight_input, &weights) &&
              read_window(layer->node, dims, &weights, &window) && !window.same && group > 0 &&
              !onnx_attribute_ints(layer->node, "output_shape", &fixed) &&
              !__builtin_mul_overflow(weights.at[1], group, &dims->at[1]);
    for (size_t i = 0; ok && i < window.n; i++) {
        int64_t *dim = &dims->at[i + 2];
        ok = *dim > 0 && *dim <= MAX_DIM;
        *dim =
            ok ? window.stride.at[i] * (*dim - 1) + window.output_padding.at[i] + reach(&window, i)
               : -1;
        ok = *dim >= 0;
    }
    return ok;
}

static bool shape_pool(const struct onnx_layer *layer, struct onnx_dims *dims) {
    struct window window;
    return read_window(layer->node, dims, NULL, &window) && slide(&window, dims);
}

static bool shape_global_pool(const struct onnx_layer *layer, struct onnx_dims *dims) {
    (void)layer;
    for (size_t i = 2; i < dims->n; i++) {
        dims->at[i] = 1;
    }
    return dims->n > 2;
}

/* ---- operators ---- */

/* Operators whose result has the shape of the first input, and those whose inputs broadcast.
 * Those of Microsoft's domain have names of their own. */
static const char same_names[] =
    "Abs BatchNormalization Cast Ceil Celu Clip Cos CumSum DequantizeLinear Dropout "
    "DynamicQuantizeLinear Elu Erf Exp FastGelu Floor Gelu HardSigmoid HardSwish Hardmax "
    "Identity InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax Mish Neg "
    "Not QLinearLeakyRelu QLinearSigmoid QuantizeLinear QuickGelu Reciprocal Relu Round Selu "
    "Shrink Sigmoid Sign Sin Softmax Softplus Softsign Sqrt Tanh ThresholdedRelu ";
static const char broadcast_names[] =
    "Add And Div Equal Greater Less Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor ";

/* Sorted by name. */
static const struct onnx_op ops[] = {
    {"AveragePool", ONNX_POOL, 0, 0, shape_pool},
    {"Concat", .shape = shape_concat},
    {"Conv", ONNX_CONV, 1, 0, shape_conv},
    {"ConvInteger", ONNX_CONV, 1, ONNX_QUANTISED, shape_conv},
    {"ConvTranspose", ONNX_CONV_TRANSPOSE, 1, 0, shape_conv_transpose},
    {"DeformConv", ONNX_CONV, 1, 0, shape_conv},
    {"DepthToSpace", .shape = shape_depth_to_space},
    {"DynamicQuantizeMatMul", ONNX_MATMUL, 1, ONNX_QUANTISED | ONNX_FUSED, shape_matmul},
    {"Flatten", .shape = shape_flatten},
    {"FusedConv", ONNX_CONV, 1, ONNX_FUSED, shape_conv},
    {"FusedGemm", ONNX_GEMM, 1, ONNX_FUSED, shape_gemm},
    {"FusedMatMul", ONNX_MATMUL, 1, ONNX_FUSED, NULL},
    {"GRU", ONNX_RECURRENT, 1, 0, NULL},
    {"Gemm", ONNX_GEMM, 1, 0, shape_gemm},
    {"GlobalAveragePool", ONNX_POOL, 0, 0, shape_global_pool},
    {"GlobalLpPool", ONNX_POOL, 0, 0, shape_global_pool},
    {"GlobalMaxPool", ONNX_POOL, 0, 0, shape_global_pool},
    {"LSTM", ONNX_RECURRENT, 1, 0, NULL},
    {"LpPool", ONNX_POOL, 0, 0, shape_pool},
    {"MatMul", ONNX_MATMUL, 1, 0, shape_matmul},
    {"MatMulInteger", ONNX_MATMUL, 1, ONNX_QUANTISED, shape_matmul},
    {"MatMulIntegerToFloat", ONNX_MATMUL, 1, ONNX_QUANTISED | ONNX_FUSED, shape_matmul},
    {"MaxPool", ONNX_POOL, 0, 0, shape_pool},
    {"MaxRoiPool", ONNX_POOL, 0, 0, NULL},
    {"Pad", .shape = shape_pad},
    {"QGemm", ONNX_GEMM, 3, ONNX_QUANTISED | ONNX_FUSED, shape_gemm},
    {"QLinearAveragePool", ONNX_POOL, 0, ONNX_QUANTISED, shape_pool},
    {"QLinearConv", ONNX_CONV, 3, ONNX_QUANTISED, shape_conv},
    {"QLinearGlobalAveragePool", ONNX_POOL, 0, ONNX_QUANTISED, shape_global_pool},
    {"QLinearMatMul", ONNX_MATMUL, 3, ONNX_QUANTISED, shape_matmul},
    {"RNN", ONNX_RECURRENT, 1, 0, NULL},
    {"ReduceL2", .shape = shape_reduce},
    {"ReduceMax", .shape = shape_reduce},
    {"ReduceMean", .shape = shape_reduce},
    {"ReduceMin", .shape = shape_reduce},
    {"ReduceSum", .shape = shape_reduce},
    {"Reshape", .shape = shape_reshape},
    {"Resize", .shape = shape_resize},
    {"Slice", .shape = shape_slice},
    {"SpaceToDepth", .shape = shape_space_to_depth},
    {"Split", .shape = shape_split},
    {"Squeeze", .shape = shape_squeeze},
    {"Transpose", .shape = shape_transpose},
    {"Unsqueeze", .shape = shape_unsqueeze},
    {"Upsample", .shape = shape_resize},
};

static int compare_op(const void *key, const void *row) {
    const struct protobuf *name = key;
    const char *with = ((const struct onnx_op *)row)->name;
    size_t len = strlen(with);
    int order = memcmp(name->data, with, name->len < len ? name->len : len);
    return order != 0 ? order : (name->len > len) - (name->len < len);
}

static bool is_among(struct protobuf name, const char *words) {
    for (size_t len; *words != '\0'; words += len + 1) {
        len = strcspn(words, " ");
        if (len == name.len && memcmp(words, name.data, len) == 0) {
            return true;
        }
    }
    return false;
}

const struct onnx_op *onnx_op_find(const struct onnx_node *node) {
    static const struct onnx_op unknown = {""}, same = {.shape = shape_same},
                                broadcasting = {.shape = shape_broadcast};
    const struct protobuf *name = &node->op_type;
    const struct onnx_op *op =
        name->len > 0 ? bsearch(name, ops, ARRAY_LEN(ops), sizeof(ops[0]), compare_op) : &unknown;
    return op != NULL                         ? op
           : is_among(*name, same_names)      ? &same
           : is_among(*name, broadcast_names) ? &broadcasting
                                              : &unknown;
}

static void set_shape(struct onnx_model *model, struct onnx_value *value,
                      const struct onnx_dims *dims) {
    const int64_t *copy = onnx_keep(model, dims->at, dims->n * sizeof(dims->at[0]));
    if (copy != NULL) {
        value->shape = (struct onnx_shape){
            .known = true,
            .n_dims = dims->n,
            .dims = copy,
            .data_type = value->shape.data_type,
        };
    }
}

void onnx_shapes_fill(struct onnx_model *model, struct onnx_graph *graph) {
    for (struct onnx_node *node = graph->nodes; node != NULL; node = node->next) {
        struct onnx_layer layer = {model, node, onnx_op_find(node), .output = 0};
        size_t n_outputs = layer.op->shape == shape_split ? node->n_outputs : node->n_outputs > 0;
        for (; layer.op->shape != NULL && layer.output < n_outputs; layer.output++) {
            struct onnx_value *output = node->outputs[layer.output];
            struct onnx_dims dims;
            if (!onnx_shape_dims(&output->shape, &dims) && onnx_input_dims(&layer, 0, &dims) &&
                layer.op->shape(&layer, &dims)) {
                set_shape(model, output, &dims);
            }
        }
        for (struct onnx_graph *inner = node->subgraphs; inner != NULL; inner = inner->next) {
            onnx_shapes_fill(model, inner);
        }
    }
}
