/*
 * binary.c -- element-wise operators of two and three tensors, with NumPy broadcasting and equal
 * types.
 *
 * Each is one node of compute/elementwise (not_equal is Equal and Not, one value). Gradients are
 * summed back over the axes that broadcasting stretched. A record saves only what the gradients
 * that will be asked for read, so a weight may change after its last use.
 *
 * Needs: op.h, compute/elementwise.
 */
#include "compute/elementwise.h"
#include "ops/op.h"

/* ---- the shared form
 * -------------------------------------------------------------------------------- */

/* y = a op b in the type out (the operands' or bool); NULL and raised on failure. */
static om_tensor *binary_compute(om_binary_kind k, om_tensor *a, om_tensor *b, om_dtype out) {
    if (OM_LIKELY(omi_same_shape(a, b))) {
        om_tensor *y = omi_new(out, a->rank, a->shape);
        if (!y) return NULL;
        om_view av, bv, yv;
        if (OM_LIKELY(omi_contiguous(a) && omi_contiguous(b))) {
            int64_t n = omi_numel(a);
            av        = omi_flat(a, n);
            bv        = omi_flat(b, n);
            yv        = omi_flat(y, n);
        } else {
            av = omi_view(a);
            bv = omi_view(b);
            yv = omi_view(y);
        }
        omi_binary(k, &av, &bv, &yv);
        return y;
    }
    int rank;
    int64_t shape[OM_MAX_RANK];
    if (!omi_broadcast_shape(a, b, &rank, shape)) return NULL;
    om_tensor *y = omi_new(out, rank, shape);
    if (!y) return NULL;
    om_view av = omi_view(a), bv = omi_view(b), yv = omi_view(y);
    av = omi_view_broadcast(&av, rank, shape);
    bv = omi_view_broadcast(&bv, rank, shape);
    omi_binary(k, &av, &bv, &yv);
    return y;
}

static bool binary_args(om_tensor *a, om_tensor *b, uint32_t types) {
    return omi_args2(a, b) && omi_need_dtype(a, types) && omi_same_dtype(a, b);
}

/* t = x op y, broadcast to t's shape; for gradients. t may be x when that is contiguous. */
static void binary_into(om_binary_kind k, om_tensor *x, om_tensor *y, om_tensor *t) {
    om_view xv = omi_view(x), yv = omi_view(y), tv = omi_view(t);
    xv = omi_view_broadcast(&xv, t->rank, t->shape);
    yv = omi_view_broadcast(&yv, t->rank, t->shape);
    omi_binary(k, &xv, &yv, &tv);
}

static om_tensor *negated(om_tensor *g) {
    om_tensor *t = omi_new_like(g);
    if (!t) return NULL;
    om_view gv = omi_view(g), tv = omi_view(t);
    omi_unary(OM_U_NEG, &gv, &tv, false);
    return t;
}

/* Ends a gradient: dx[i] = U(t), and the unsummed t does not outlive it. */
static om_status binary_give(const om_record *r, uint32_t i, om_tensor *t, om_tensor *g,
                             om_tensor **dx) {
    if (!t) return omi_pending_status;
    dx[i] = omi_unbroadcast_to(t, r, i);
    if (!dx[i]) return omi_pending_status;
    if (t != dx[i] && t != g) om_drop(t);
    return OM_OK;
}

/* ---- add, sub
 * ---------------------------------------------------------------------------------------- */

static om_status add_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    for (uint32_t i = 0; i < 2; i++)
        if (omi_needs(r, i)) OM_TRY(binary_give(r, i, g, g, dx));
    return OM_OK;
}

om_tensor *om_add(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_add");
    if (!binary_args(a, b, OMI_TYPE_NUM)) return NULL;
    om_tensor *y = binary_compute(OM_B_ADD, a, b, (om_dtype)a->dtype);
    if (!y) return NULL;
    return omi_record1(OM_OP_ADD, NULL, NULL, 2, (om_tensor *[]){a, b}, y, add_backward, 0);
}

static om_status sub_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    if (omi_needs(r, 0)) OM_TRY(binary_give(r, 0, g, g, dx));
    if (omi_needs(r, 1)) OM_TRY(binary_give(r, 1, negated(g), g, dx));
    return OM_OK;
}

om_tensor *om_sub(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_sub");
    if (!binary_args(a, b, OMI_TYPE_NUM)) return NULL;
    om_tensor *y = binary_compute(OM_B_SUB, a, b, (om_dtype)a->dtype);
    if (!y) return NULL;
    return omi_record1(OM_OP_SUB, NULL, NULL, 2, (om_tensor *[]){a, b}, y, sub_backward, 0);
}

/* ---- mul, div
 * ----------------------------------------------------------------------------------------- */

static om_status mul_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    for (uint32_t i = 0; i < 2; i++) {
        if (!omi_needs(r, i)) continue;
        om_tensor *t = omi_new_like(g);
        if (!t) return omi_pending_status;
        binary_into(OM_B_MUL, g, omi_saved_in(r, 1 - i), t);
        OM_TRY(binary_give(r, i, t, g, dx));
    }
    return OM_OK;
}

om_tensor *om_mul(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_mul");
    if (!binary_args(a, b, OMI_TYPE_NUM)) return NULL;
    om_tensor *y = binary_compute(OM_B_MUL, a, b, (om_dtype)a->dtype);
    if (!y) return NULL;
    uint32_t save = (omi_wants(a) ? OM_SAVE_IN(1) : 0) | (omi_wants(b) ? OM_SAVE_IN(0) : 0);
    return omi_record1(OM_OP_MUL, NULL, NULL, 2, (om_tensor *[]){a, b}, y, mul_backward, save);
}

/* da = U(g/b); db = U(-g*y/b). */
static om_status div_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    om_tensor *b = omi_saved_in(r, 1);
    if (omi_needs(r, 0)) {
        om_tensor *t = omi_new_like(g);
        if (!t) return omi_pending_status;
        binary_into(OM_B_DIV, g, b, t);
        OM_TRY(binary_give(r, 0, t, g, dx));
    }
    if (omi_needs(r, 1)) {
        om_tensor *t = negated(g);
        if (!t) return omi_pending_status;
        binary_into(OM_B_MUL, t, omi_saved_out(r, 0), t);
        binary_into(OM_B_DIV, t, b, t);
        OM_TRY(binary_give(r, 1, t, g, dx));
    }
    return OM_OK;
}

om_tensor *om_div(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_div");
    if (!binary_args(a, b, OMI_TYPE_NUM)) return NULL;
    if (omi_type_bit((om_dtype)b->dtype) & OMI_TYPE_INT) {
        om_view bv = omi_view(b);
        if (omi_any_zero(&bv))
            OM_FAIL_NULL(OM_ERR_VALUE, "b, %s, is the divisor and holds a zero", OMI_T(b));
    }
    om_tensor *y = binary_compute(OM_B_DIV, a, b, (om_dtype)a->dtype);
    if (!y) return NULL;
    uint32_t save = OM_SAVE_IN(1) | (omi_wants(b) ? OM_SAVE_OUT(0) : 0);
    return omi_record1(OM_OP_DIV, NULL, NULL, 2, (om_tensor *[]){a, b}, y, div_backward, save);
}

/* ---- maximum, minimum
 * ----------------------------------------------------------------------------------- */

static om_status maxmin_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    om_tensor *t[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; i++)
        if (omi_needs(r, i) && !(t[i] = omi_new_like(g))) return omi_pending_status;
    om_view gv = omi_view(g), av = omi_view(omi_saved_in(r, 0)), bv = omi_view(omi_saved_in(r, 1));
    av = omi_view_broadcast(&av, g->rank, g->shape);
    bv = omi_view_broadcast(&bv, g->rank, g->shape);
    om_view da, db;
    if (t[0]) da = omi_view(t[0]);
    if (t[1]) db = omi_view(t[1]);
    omi_maxmin_grad(r->op == OM_OP_MAXIMUM, &av, &bv, &gv, t[0] ? &da : NULL, t[1] ? &db : NULL);
    for (uint32_t i = 0; i < 2; i++)
        if (t[i]) OM_TRY(binary_give(r, i, t[i], g, dx));
    return OM_OK;
}

static om_tensor *maxmin_op(om_op op, om_binary_kind k, om_tensor *a, om_tensor *b) {
    if (!binary_args(a, b, OMI_TYPE_NUM)) return NULL;
    om_tensor *y = binary_compute(k, a, b, (om_dtype)a->dtype);
    if (!y) return NULL;
    return omi_record1(op, NULL, NULL, 2, (om_tensor *[]){a, b}, y, maxmin_backward,
                       OM_SAVE_IN(0) | OM_SAVE_IN(1));
}

om_tensor *om_maximum(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_maximum");
    return maxmin_op(OM_OP_MAXIMUM, OM_B_MAX, a, b);
}
om_tensor *om_minimum(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_minimum");
    return maxmin_op(OM_OP_MINIMUM, OM_B_MIN, a, b);
}

/* ---- comparisons and logic: bool, without gradient
 * ------------------------------------------------------- */

static om_tensor *bool_op(om_op op, om_binary_kind k, om_tensor *a, om_tensor *b, uint32_t types) {
    if (!binary_args(a, b, types)) return NULL;
    om_tensor *y = binary_compute(k, a, b, OM_BOOL);
    if (!y) return NULL;
    return omi_record1(op, NULL, NULL, 2, (om_tensor *[]){a, b}, y, NULL, 0);
}

om_tensor *om_equal(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_equal");
    return bool_op(OM_OP_EQUAL, OM_B_EQUAL, a, b, OMI_TYPE_ALL);
}
om_tensor *om_not_equal(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_not_equal");
    return bool_op(OM_OP_NOT_EQUAL, OM_B_NOT_EQUAL, a, b, OMI_TYPE_ALL);
}
om_tensor *om_less(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_less");
    return bool_op(OM_OP_LESS, OM_B_LESS, a, b, OMI_TYPE_NUM);
}
om_tensor *om_less_equal(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_less_equal");
    return bool_op(OM_OP_LESS_EQUAL, OM_B_LESS_EQUAL, a, b, OMI_TYPE_NUM);
}
om_tensor *om_greater(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_greater");
    return bool_op(OM_OP_GREATER, OM_B_GREATER, a, b, OMI_TYPE_NUM);
}
om_tensor *om_greater_equal(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_greater_equal");
    return bool_op(OM_OP_GREATER_EQUAL, OM_B_GREATER_EQUAL, a, b, OMI_TYPE_NUM);
}
om_tensor *om_and(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_and");
    return bool_op(OM_OP_AND, OM_B_AND, a, b, OMI_TYPE_BOOL);
}
om_tensor *om_or(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_or");
    return bool_op(OM_OP_OR, OM_B_OR, a, b, OMI_TYPE_BOOL);
}
om_tensor *om_xor(om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_xor");
    return bool_op(OM_OP_XOR, OM_B_XOR, a, b, OMI_TYPE_BOOL);
}

/* ---- where
 * ---------------------------------------------------------------------------------------------- */

static om_status where_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    static const double zero = 0; // all bits zero: the zero of every type
    om_view gv = omi_view(g), zv = omi_scalar_view(&zero, (om_dtype)g->dtype, &gv);
    om_view cv = omi_view(omi_saved_in(r, 0));
    cv         = omi_view_broadcast(&cv, g->rank, g->shape);
    for (uint32_t i = 1; i < 3; i++) {
        if (!omi_needs(r, i)) continue;
        om_tensor *t = omi_new_like(g);
        if (!t) return omi_pending_status;
        om_view tv = omi_view(t);
        omi_where(&cv, i == 1 ? &gv : &zv, i == 1 ? &zv : &gv, &tv);
        OM_TRY(binary_give(r, i, t, g, dx));
    }
    return OM_OK;
}

om_tensor *om_where(om_tensor *c, om_tensor *a, om_tensor *b) {
    OMI_ENTER("om_where");
    if (!omi_arg(c, "c") || !omi_args2(a, b)) return NULL;
    if (c->dtype != OM_BOOL)
        OM_FAIL_NULL(OM_ERR_DTYPE, "the condition %s is not bool; use om_cast(c, OM_BOOL)",
                     OMI_T(c));
    if (!omi_same_dtype(a, b)) return NULL;
    int rank;
    int64_t shape[OM_MAX_RANK];
    if (!omi_broadcast_shape(a, b, &rank, shape)) return NULL;
    if (!omi_broadcast_more(c, &rank, shape)) return NULL;
    om_tensor *y = omi_new((om_dtype)a->dtype, rank, shape);
    if (!y) return NULL;
    om_view cv = omi_view(c), av = omi_view(a), bv = omi_view(b), yv = omi_view(y);
    cv = omi_view_broadcast(&cv, rank, shape);
    av = omi_view_broadcast(&av, rank, shape);
    bv = omi_view_broadcast(&bv, rank, shape);
    omi_where(&cv, &av, &bv, &yv);
    return omi_record1(OM_OP_WHERE, NULL, NULL, 3, (om_tensor *[]){c, a, b}, y, where_backward,
                       OM_SAVE_IN(0));
}
