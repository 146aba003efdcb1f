#include "placement/onnx/op.h"

/* Results of operators that keep, join or rearrange what they are given. */

/* An axis counted from the end where it is negative; -1 where it is none. */
static int64_t axis_of(int64_t axis, size_t n) {
    axis += axis < 0 ? (int64_t)n : 0;
    return axis < 0 || axis >= (int64_t)n ? -1 : axis;
}

bool onnx_shape_same(const struct onnx_model *model, const struct onnx_op *op,
                     const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    return onnx_input_dims(model, node, 0, ret);
}

/* Joins two forms by their ends; a 1 stretches. */
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

bool onnx_shape_broadcast(const struct onnx_model *model, const struct onnx_op *op,
                          const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    bool ok = onnx_input_dims(model, node, 0, ret);
    for (size_t i = 1; ok && i < node->n_inputs; i++) {
        struct onnx_dims next;
        ok = onnx_input_dims(model, node, i, &next) && broadcast(ret, &next);
    }
    return ok;
}

bool onnx_shape_concat(const struct onnx_model *model, const struct onnx_op *op,
                       const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    if (!onnx_input_dims(model, node, 0, ret)) {
        return false;
    }
    int64_t axis = axis_of(onnx_attribute_int(node, "axis", 1), ret->n);
    bool ok = axis >= 0;
    for (size_t i = 1; ok && i < node->n_inputs; i++) {
        struct onnx_dims next;
        ok = onnx_input_dims(model, node, i, &next) && next.n == ret->n &&
             !__builtin_add_overflow(ret->at[axis], next.at[axis], &ret->at[axis]);
    }
    return ok;
}

bool onnx_shape_flatten(const struct onnx_model *model, const struct onnx_op *op,
                        const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    if (!onnx_input_dims(model, node, 0, &in)) {
        return false;
    }
    int64_t axis = onnx_attribute_int(node, "axis", 1);
    axis += axis < 0 ? (int64_t)in.n : 0;
    if (axis < 0 || axis > (int64_t)in.n) {
        return false;
    }
    uint64_t right = onnx_dims_product(&in, (size_t)axis);
    in.n = (size_t)axis;
    uint64_t left = onnx_dims_product(&in, 0);
    *ret = (struct onnx_dims){.n = 2, .at = {(int64_t)left, (int64_t)right}};
    return left <= INT64_MAX && right <= INT64_MAX;
}

bool onnx_shape_gemm(const struct onnx_model *model, const struct onnx_op *op,
                     const struct onnx_node *node, struct onnx_dims *ret) {
    struct onnx_dims a, b;
    if (!onnx_input_dims(model, node, 0, &a) ||
        !onnx_input_dims(model, node, op->weight_input, &b) || a.n != 2 || b.n != 2) {
        return false;
    }
    bool trans_a = onnx_attribute_int(node, "transA", 0) != 0;
    bool trans_b = onnx_attribute_int(node, "transB", 0) != 0;
    *ret = (struct onnx_dims){.n = 2, .at = {a.at[trans_a], b.at[!trans_b]}};
    return true;
}

bool onnx_shape_matmul(const struct onnx_model *model, const struct onnx_op *op,
                       const struct onnx_node *node, struct onnx_dims *ret) {
    struct onnx_dims b;
    if (!onnx_input_dims(model, node, 0, ret) ||
        !onnx_input_dims(model, node, op->weight_input, &b) || ret->n < 2 || b.n < 2) {
        return false;
    }
    int64_t rows = ret->at[ret->n - 2], columns = b.at[b.n - 1];
    ret->at[ret->n - 2] = ret->at[ret->n - 1] = 1;
    b.at[b.n - 2] = b.at[b.n - 1] = 1;
    if (!broadcast(ret, &b)) {
        return false;
    }
    ret->at[ret->n - 2] = rows;
    ret->at[ret->n - 1] = columns;
    return true;
}

static bool mark_axes(const int64_t *axes, int n_axes, size_t rank, bool *marks) {
    for (int i = 0; i < n_axes; i++) {
        int64_t axis = axis_of(axes[i], rank);
        if (axis < 0) {
            return false;
        }
        marks[axis] = true;
    }
    return true;
}

bool onnx_shape_reduce(const struct onnx_model *model, const struct onnx_op *op,
                       const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    int64_t axes[ONNX_MAX_RANK];
    bool marks[ONNX_MAX_RANK] = {false};
    int n_axes = onnx_input_ints(model, node, "axes", 1, axes);
    if (!onnx_input_dims(model, node, 0, &in) || n_axes <= 0 ||
        !mark_axes(axes, n_axes, in.n, marks)) {
        return false;
    }
    bool keep = onnx_attribute_int(node, "keepdims", 1) != 0;
    ret->n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (!marks[i] || keep) {
            ret->at[ret->n++] = marks[i] ? 1 : in.at[i];
        }
    }
    return true;
}

/* 0 keeps a dimension, -1 takes what is left. */
bool onnx_shape_reshape(const struct onnx_model *model, const struct onnx_op *op,
                        const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    int n = onnx_input_ints(model, node, "shape", 1, ret->at);
    if (!onnx_input_dims(model, node, 0, &in) || n < 0) {
        return false;
    }
    ret->n = (size_t)n;
    size_t open = ONNX_MAX_RANK;
    for (size_t i = 0; i < ret->n; i++) {
        if (ret->at[i] == 0 && i < in.n) {
            ret->at[i] = in.at[i];
        }
        if (ret->at[i] < -1 || (ret->at[i] == -1 && open != ONNX_MAX_RANK)) {
            return false;
        }
        if (ret->at[i] == -1) {
            open = i;
            ret->at[i] = 1;
        }
    }
    uint64_t all = onnx_dims_product(&in, 0), given = onnx_dims_product(ret, 0);
    if (all > INT64_MAX || given == 0 || all % given != 0) {
        return false;
    }
    if (open != ONNX_MAX_RANK) {
        ret->at[open] = (int64_t)(all / given);
    }
    return true;
}

bool onnx_shape_squeeze(const struct onnx_model *model, const struct onnx_op *op,
                        const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    int64_t axes[ONNX_MAX_RANK];
    bool marks[ONNX_MAX_RANK] = {false};
    int n_axes = onnx_input_ints(model, node, "axes", 1, axes);
    if (!onnx_input_dims(model, node, 0, &in) || !mark_axes(axes, n_axes, in.n, marks)) {
        return false;
    }
    ret->n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (n_axes > 0 ? !marks[i] : in.at[i] != 1) {
            ret->at[ret->n++] = in.at[i];
        }
    }
    return true;
}

bool onnx_shape_unsqueeze(const struct onnx_model *model, const struct onnx_op *op,
                          const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    int64_t axes[ONNX_MAX_RANK];
    bool marks[ONNX_MAX_RANK] = {false};
    int n_axes = onnx_input_ints(model, node, "axes", 1, axes);
    if (!onnx_input_dims(model, node, 0, &in) || n_axes < 0 ||
        in.n + (size_t)n_axes > ONNX_MAX_RANK ||
        !mark_axes(axes, n_axes, in.n + (size_t)n_axes, marks)) {
        return false;
    }
    size_t taken = 0;
    ret->n = in.n + (size_t)n_axes;
    for (size_t i = 0; i < ret->n; i++) {
        ret->at[i] = marks[i] || taken == in.n ? 1 : in.at[taken++];
    }
    return true;
}

bool onnx_shape_transpose(const struct onnx_model *model, const struct onnx_op *op,
                          const struct onnx_node *node, struct onnx_dims *ret) {
    (void)op;
    struct onnx_dims in;
    int64_t perm[ONNX_MAX_RANK];
    if (!onnx_input_dims(model, node, 0, &in)) {
        return false;
    }
    int n = onnx_attribute_ints(node, "perm", perm, ONNX_MAX_RANK);
    if (n > 0 && (size_t)n != in.n) {
        return false;
    }
    ret->n = in.n;
    for (size_t i = 0; i < in.n; i++) {
        int64_t from = n > 0 ? perm[i] : (int64_t)(in.n - 1 - i);
        if (from < 0 || from >= (int64_t)in.n) {
            return false;
        }
        ret->at[i] = in.at[from];
    }
    return true;
}
