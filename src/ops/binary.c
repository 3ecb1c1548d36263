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

static om_status sub_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    om_tensor *g = dy[0];
    if (!g) return OM_OK;
    if (omi_needs(r, 0)) OM_TRY(binary_give(r, 0, g, g, dx));
    if (omi_needs(r, 1)) OM_TRY(binary_give(r, 1, negated(g), g, dx));
    return OM_OK;
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

/* ---- the operators: binary.def ------------------------------------------------------------- */

typedef enum binary_saves { SAVES_NOTHING, SAVES_OTHER, SAVES_QUOTIENT, SAVES_BOTH } binary_saves;

/* The values that the gradients which may be asked for will read. */
static uint32_t binary_save(binary_saves s, om_tensor *a, om_tensor *b) {
    switch (s) {
    case SAVES_OTHER:
        return (omi_wants(a) ? OM_SAVE_IN(1) : 0) | (omi_wants(b) ? OM_SAVE_IN(0) : 0);
    case SAVES_QUOTIENT:
        return OM_SAVE_IN(1) | (omi_wants(b) ? OM_SAVE_OUT(0) : 0);
    case SAVES_BOTH:
        return OM_SAVE_IN(0) | OM_SAVE_IN(1);
    case SAVES_NOTHING:
        break;
    }
    return 0;
}

/* An integer divisor may hold no zero (AR-9.1). */
static bool divisor_ok(om_binary_kind k, om_tensor *b) {
    if (k != OM_B_DIV || !(omi_type_bit((om_dtype)b->dtype) & OMI_TYPE_INT)) return true;
    om_view bv = omi_view(b);
    if (!omi_any_zero(&bv)) return true;
    omi_fail(OM_ERR_VALUE, "b, %s, is the divisor and holds a zero", OMI_T(b));
    return false;
}

typedef struct binary_row {
    om_binary_kind kind;
    uint32_t types;
    bool bools; /* the result */
    binary_saves saves;
    om_backward_fn backward;
} binary_row;

OM_INLINE om_tensor *binary_op(om_op op, om_tensor *a, om_tensor *b, const binary_row *row) {
    if (!binary_args(a, b, row->types) || !divisor_ok(row->kind, b)) return NULL;
    om_tensor *y = binary_compute(row->kind, a, b, row->bools ? OM_BOOL : (om_dtype)a->dtype);
    if (!y) return NULL;
    return omi_record1(op, NULL, NULL, 2, (om_tensor *[]){a, b}, y, row->backward,
                       binary_save(row->saves, a, b));
}

// clang-format off
#define IS_LIKE  false
#define IS_BOOLS true
#define OM_BINARY(name, OP, ID, type_set, result, what, backward, loop, kernel, made, node, since, node_type_set, gradient) \
    om_tensor *om_##name(om_tensor *a, om_tensor *b) { \
        OMI_ENTER("om_" #name); \
        return binary_op(OM_OP_##OP, a, b, &(const binary_row){OM_B_##ID, type_set, IS_##result, SAVES_##what, backward}); \
    }
#include "compute/binary.def"
#undef OM_BINARY
// clang-format on

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
