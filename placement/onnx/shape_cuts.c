#include <math.h>

#include "placement/onnx/op.h"

/* Results of operators that cut, stretch or frame what they are given; by how much stands in
 * attributes of old versions and in fixed inputs of later ones. */

enum { MAX_DIM = 1 << 30 };

static bool set_dim(struct onnx_dims *dims, size_t axis, int64_t value) {
    if (value < 0 || value > MAX_DIM) {
        return false;
    }
    dims->at[axis] = value;
    return true;
}

bool onnx_shape_pad(const struct onnx_model *model, const struct onnx_op *op,
                    const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    int64_t pads[ONNX_MAX_RANK];
    int n = onnx_input_ints(model, node, "pads", 1, pads);
    bool ok = onnx_input_dims(model, node, 0, ret) && n >= 0 && (size_t)n == 2 * ret->n;
    for (size_t i = 0; ok && i < ret->n; i++) {
        int64_t both;
        ok = !__builtin_add_overflow(pads[i], pads[i + ret->n], &both) &&
             !__builtin_add_overflow(ret->at[i], both, &both) && set_dim(ret, i, both);
    }
    return ok;
}

/* Inputs are data, region, scales and sizes; before version 11 data and scales. */
bool onnx_shape_resize(const struct onnx_model *model, const struct onnx_op *op,
                       const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    int64_t sizes[ONNX_MAX_RANK];
    float scales[ONNX_MAX_RANK];
    if (!onnx_input_dims(model, node, 0, ret)) {
        return false;
    }
    bool ok = true;
    if (node->n_inputs > 3 && onnx_input_ints(model, node, "", 3, sizes) == (int)ret->n) {
        for (size_t i = 0; ok && i < ret->n; i++) {
            ok = set_dim(ret, i, sizes[i]);
        }
        return ok;
    }
    ok = onnx_input_floats(model, node, node->n_inputs > 2 ? 2 : 1, scales) == (int)ret->n;
    for (size_t i = 0; ok && i < ret->n; i++) {
        double scaled = floor((double)ret->at[i] * (double)scales[i]);
        ok = scaled >= 0 && scaled <= MAX_DIM && set_dim(ret, i, (int64_t)scaled);
    }
    return ok;
}

static int64_t clamp(int64_t value, int64_t min, int64_t max) {
    return value < min ? min : value > max ? max : value;
}

/* What is left of a dimension; positions count from the end where they are negative. */
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

bool onnx_shape_slice(const struct onnx_model *model, const struct onnx_op *op,
                      const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    int64_t starts[ONNX_MAX_RANK], ends[ONNX_MAX_RANK], axes[ONNX_MAX_RANK], steps[ONNX_MAX_RANK];
    int n = onnx_input_ints(model, node, "starts", 1, starts);
    int n_axes = onnx_input_ints(model, node, "axes", 3, axes);
    int n_steps = onnx_input_ints(model, node, "steps", 4, steps);
    bool ok = onnx_input_dims(model, node, 0, ret) && n >= 0 && (size_t)n <= ret->n &&
              onnx_input_ints(model, node, "ends", 2, ends) == n &&
              (n_axes == n || (n_axes < 0 && node->n_inputs <= 3)) &&
              (n_steps == n || (n_steps < 0 && node->n_inputs <= 4));
    for (int i = 0; ok && i < n; i++) {
        int64_t axis = n_axes == n ? axes[i] : i;
        axis += axis < 0 ? (int64_t)ret->n : 0;
        int64_t step = n_steps == n ? steps[i] : 1;
        ok = axis >= 0 && axis < (int64_t)ret->n && step != 0 && step > -MAX_DIM &&
             step < MAX_DIM && ret->at[axis] <= MAX_DIM &&
             set_dim(ret, (size_t)axis, slice_len(ret->at[axis], starts[i], ends[i], step));
    }
    return ok;
}

bool onnx_split_dims(const struct onnx_model *model, const struct onnx_node *node, size_t output,
                     struct onnx_dims *ret) {
    int64_t parts[ONNX_MAX_RANK];
    if (!onnx_input_dims(model, node, 0, ret) || output >= ONNX_MAX_RANK) {
        return false;
    }
    int64_t axis = onnx_attribute_int(node, "axis", 0);
    axis += axis < 0 ? (int64_t)ret->n : 0;
    if (axis < 0 || axis >= (int64_t)ret->n) {
        return false;
    }
    int n = onnx_input_ints(model, node, "split", 1, parts);
    if (n < 0 && node->n_inputs <= 1) {
        int64_t n_parts = (int64_t)node->n_outputs;
        return ret->at[axis] % n_parts == 0 && set_dim(ret, (size_t)axis, ret->at[axis] / n_parts);
    }
    return n == (int)node->n_outputs && set_dim(ret, (size_t)axis, parts[output]);
}

bool onnx_shape_split(const struct onnx_model *model, const struct onnx_op *op,
                      const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    return onnx_split_dims(model, node, 0, ret);
}

/* Channels to pixels, or the other way round. */
static bool regroup(const struct onnx_model *model, const struct onnx_node *node, bool to_space,
                    struct onnx_dims *ret) {
    int64_t block = onnx_attribute_int(node, "blocksize", 0);
    if (!onnx_input_dims(model, node, 0, ret) || ret->n != 4 || block <= 0 || block > 1024 ||
        ret->at[1] > MAX_DIM || ret->at[2] > MAX_DIM || ret->at[3] > MAX_DIM) {
        return false;
    }
    if (to_space) {
        return ret->at[1] % (block * block) == 0 && set_dim(ret, 1, ret->at[1] / (block * block)) &&
               set_dim(ret, 2, ret->at[2] * block) && set_dim(ret, 3, ret->at[3] * block);
    }
    return ret->at[2] % block == 0 && ret->at[3] % block == 0 &&
           set_dim(ret, 1, ret->at[1] * block * block) && set_dim(ret, 2, ret->at[2] / block) &&
           set_dim(ret, 3, ret->at[3] / block);
}

bool onnx_shape_depth_to_space(const struct onnx_model *model, const struct onnx_op *op,
                               const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    return regroup(model, node, true, ret);
}

bool onnx_shape_space_to_depth(const struct onnx_model *model, const struct onnx_op *op,
                               const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    return regroup(model, node, false, ret);
}
