#include "placement/onnx/op.h"

/* Results of operators that move a window over their input: convolution and pooling. */

enum { MAX_SPATIAL = 8, MAX_NUMBER = 1 << 30 };

struct window {
    size_t n; /* spatial dimensions */
    int64_t kernel[MAX_SPATIAL];
    int64_t stride[MAX_SPATIAL];
    int64_t dilation[MAX_SPATIAL];
    int64_t pads[2 * MAX_SPATIAL];
    int64_t output_padding[MAX_SPATIAL];
    bool same;
    bool ceil;
};

static bool read_row(const struct onnx_node *node, const char *name, int64_t fallback, size_t n,
                     int64_t *out) {
    int found = onnx_attribute_ints(node, name, out, n);
    for (size_t i = 0; i < n && found <= 0; i++) {
        out[i] = fallback;
    }
    for (size_t i = 0; i < n; i++) {
        if (found > 0 && ((size_t)found != n || out[i] < 0 || out[i] > MAX_NUMBER)) {
            return false;
        }
    }
    return true;
}

static bool read_window(const struct onnx_node *node, size_t n, struct window *ret) {
    ret->n = n;
    struct protobuf auto_pad = onnx_attribute_text(node, "auto_pad");
    ret->same = onnx_text_is(auto_pad, "SAME_UPPER") || onnx_text_is(auto_pad, "SAME_LOWER");
    ret->ceil = onnx_attribute_int(node, "ceil_mode", 0) != 0;
    bool ok = n > 0 && n <= MAX_SPATIAL && read_row(node, "strides", 1, n, ret->stride) &&
              read_row(node, "dilations", 1, n, ret->dilation) &&
              read_row(node, "pads", 0, 2 * n, ret->pads) &&
              read_row(node, "output_padding", 0, n, ret->output_padding);
    for (size_t i = 0; ok && i < n; i++) {
        ok = ret->stride[i] > 0;
    }
    return ok;
}

/* The kernel's size is an attribute of pools, and of convolutions the form of the weights. */
static bool read_kernel(const struct onnx_node *node, const struct onnx_dims *weights,
                        struct window *window) {
    for (size_t i = 0; weights != NULL && i < window->n; i++) {
        window->kernel[i] = weights->at[i + 2];
    }
    if (weights == NULL &&
        (onnx_attribute_ints(node, "kernel_shape", window->kernel, window->n) != (int)window->n)) {
        return false;
    }
    for (size_t i = 0; i < window->n; i++) {
        if (window->kernel[i] <= 0 || window->kernel[i] > MAX_NUMBER) {
            return false;
        }
    }
    return true;
}

static bool slide(const struct window *window, struct onnx_dims *dims) {
    for (size_t i = 0; i < window->n; i++) {
        int64_t *dim = &dims->at[i + 2];
        int64_t stride = window->stride[i];
        if (*dim > MAX_NUMBER) {
            return false;
        }
        int64_t room = *dim + window->pads[i] + window->pads[i + window->n] -
                       (window->dilation[i] * (window->kernel[i] - 1) + 1);
        if (window->same) {
            *dim = (*dim + stride - 1) / stride;
        } else if (room < 0) {
            return false;
        } else {
            *dim = (room + (window->ceil ? stride - 1 : 0)) / stride + 1;
        }
    }
    return true;
}

bool onnx_shape_conv(const struct onnx_model *model, const struct onnx_op *op,
                     const struct onnx_node *node, struct onnx_dims *ret) {
    struct onnx_dims weights;
    struct window window;
    if (!onnx_input_dims(model, node, 0, ret) ||
        !onnx_input_dims(model, node, op->weight_input, &weights) || ret->n < 3 ||
        weights.n != ret->n || !read_window(node, ret->n - 2, &window) ||
        !read_kernel(node, &weights, &window)) {
        return false;
    }
    ret->at[1] = weights.at[0];
    return slide(&window, ret);
}

bool onnx_shape_conv_transpose(const struct onnx_model *model, const struct onnx_op *op,
                               const struct onnx_node *node, struct onnx_dims *ret) {
    struct onnx_dims weights;
    struct window window;
    int64_t fixed[MAX_SPATIAL];
    if (!onnx_input_dims(model, node, 0, ret) ||
        !onnx_input_dims(model, node, op->weight_input, &weights) || ret->n < 3 ||
        weights.n != ret->n || !read_window(node, ret->n - 2, &window) ||
        !read_kernel(node, &weights, &window) ||
        onnx_attribute_ints(node, "output_shape", fixed, MAX_SPATIAL) >= 0 || window.same) {
        return false;
    }
    int64_t group = onnx_attribute_int(node, "group", 1);
    if (__builtin_mul_overflow(weights.at[1], group, &ret->at[1]) || group <= 0) {
        return false;
    }
    for (size_t i = 0; i < window.n; i++) {
        int64_t *dim = &ret->at[i + 2];
        if (*dim <= 0 || *dim > MAX_NUMBER) {
            return false;
        }
        *dim = window.stride[i] * (*dim - 1) + window.output_padding[i] +
               (window.kernel[i] - 1) * window.dilation[i] + 1 - window.pads[i] -
               window.pads[i + window.n];
        if (*dim < 0) {
            return false;
        }
    }
    return true;
}

bool onnx_shape_pool(const struct onnx_model *model, const struct onnx_op *op,
                     const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct window window;
    return onnx_input_dims(model, node, 0, ret) && ret->n >= 3 &&
           read_window(node, ret->n - 2, &window) && read_kernel(node, NULL, &window) &&
           slide(&window, ret);
}

bool onnx_shape_global_pool(const struct onnx_model *model, const struct onnx_op *op,
                            const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    if (!onnx_input_dims(model, node, 0, ret) || ret->n < 3) {
        return false;
    }
    for (size_t i = 2; i < ret->n; i++) {
        ret->at[i] = 1;
    }
    return true;
}
