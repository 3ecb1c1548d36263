/*
 * unary.c -- element-wise operators of one tensor: functions, clamp, scalar arithmetic, cast, not.
 *
 * Each is one node of compute/elementwise, so a traced session gives the same bits (AR-7.1). The
 * gradient of a function is one fused kernel that rounds every step of its formula (AR-11.2); which
 * of x and y it reads is the kernel's choice, and only that one is saved.
 *
 * Needs: op.h, compute/elementwise.
 */
#include <math.h>
#include <string.h>

#include "compute/elementwise.h"
#include "compute/move.h"
#include "ops/op.h"

/* ---- functions
 * ------------------------------------------------------------------------------------ */

// clang-format off
/* The kind of a recorded operator: its row's, or the one that Gelu's attribute chooses. */
#define KIND_WHOLE(ID)    case OM_OP_##ID: return OM_U_##ID;
#define KIND_CALLED(ID)   case OM_OP_##ID: return OM_U_##ID;
#define KIND_COMPOSED(ID) case OM_OP_##ID: return OM_U_##ID;
#define KIND_NODE(ID)
#define KIND_KIND(ID)
static om_unary_kind unary_kind(om_op op, const void *raw) {
    switch (op) {
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) KIND_##made(ID)
#include "compute/unary.def"
#undef OM_UNARY
    case OM_OP_GELU: return ((const om_gelu_raw *)raw)->tanh ? OM_U_GELU_TANH : OM_U_GELU;
    default: return OM_U_COUNT;
    }
}
// clang-format on

static om_status unary_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    om_unary_kind k = unary_kind(r->op, r->raw);
    om_tensor *s    = dy[0];
    if (r->save_mask)
        s = omi_unary_saves_of(k) == OM_SAVES_OUT ? omi_saved_out(r, 0) : omi_saved_in(r, 0);
    om_tensor *y = omi_grad_like(dy[0]);
    if (!y) return omi_pending_status;
    om_view sv = omi_view(s), gv = omi_view(dy[0]), yv = omi_view(y);
    omi_unary_grad(k, &sv, &gv, &yv);
    dx[0] = y;
    return OM_OK;
}

static om_tensor *unary_op(om_op op, om_tensor *x, uint32_t types, const void *raw) {
    if (!omi_args1(x) || !omi_need_dtype(x, types)) return NULL;
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_unary_kind k = unary_kind(op, raw);
    om_view xv, yv;
    if (OM_LIKELY(omi_contiguous(x))) {
        int64_t n = omi_numel(x);
        xv        = omi_flat(x, n);
        yv        = omi_flat(y, n);
    } else {
        xv = omi_view(x);
        yv = omi_view(y);
    }
    omi_unary(k, &xv, &yv, false);
    om_unary_saves saves = omi_unary_saves_of(k);
    uint32_t save        = saves == OM_SAVES_OUT  ? OM_SAVE_OUT(0)
                           : saves == OM_SAVES_IN ? OM_SAVE_IN(0)
                                                  : 0;
    return omi_record1(op, raw, NULL, 1, &x, y,
                       saves == OM_SAVES_NO_GRADIENT ? NULL : unary_backward, save);
}

// clang-format off
#define CALL_WHOLE(name, ID, types) UNARY_CALL(name, ID, types)
#define CALL_CALLED(name, ID, types) UNARY_CALL(name, ID, types)
#define CALL_COMPOSED(name, ID, types) UNARY_CALL(name, ID, types)
#define CALL_NODE(name, ID, types)
#define CALL_KIND(name, ID, types)
#define UNARY_CALL(name, ID, types)                                                                \
    om_tensor *om_##name(om_tensor *x) {                                                           \
        OMI_ENTER("om_" #name);                                                                    \
        return unary_op(OM_OP_##ID, x, types, NULL);                                               \
    }
#define OM_UNARY(name, ID, types, saves, loop, made, node, since, node_types, attrs, gradient) CALL_##made(name, ID, types)
#include "compute/unary.def"
#undef OM_UNARY
// clang-format on

om_tensor *om_gelu(om_tensor *x) {
    OMI_ENTER("om_gelu");
    return unary_op(OM_OP_GELU, x, OMI_TYPE_F32, &(om_gelu_raw){.tanh = 0});
}
om_tensor *om_gelu_tanh(om_tensor *x) {
    OMI_ENTER("om_gelu_tanh");
    return unary_op(OM_OP_GELU, x, OMI_TYPE_F32, &(om_gelu_raw){.tanh = 1});
}

/* ---- clamp
 * ----------------------------------------------------------------------------------------- */

/* The bounds as elements of x's type; absent ones are NULL. */
typedef struct clamp_bounds {
    uint64_t lo_bits, hi_bits;
    const void *lo, *hi;
} clamp_bounds;

static bool clamp_bounds_of(const om_clamp_raw *a, om_dtype t, clamp_bounds *b) {
    b->lo_bits = b->hi_bits = 0;
    if (a->has_lo && !omi_scalar_bytes(a->lo, t, &b->lo_bits)) return false;
    if (a->has_hi && !omi_scalar_bytes(a->hi, t, &b->hi_bits)) return false;
    b->lo = a->has_lo ? &b->lo_bits : NULL;
    b->hi = a->has_hi ? &b->hi_bits : NULL;
    return true;
}

static om_status clamp_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    om_tensor *x = omi_saved_in(r, 0);
    clamp_bounds b;
    if (!clamp_bounds_of(r->raw, (om_dtype)x->dtype, &b)) return omi_pending_status;
    om_tensor *y = omi_new_like(x);
    if (!y) return omi_pending_status;
    om_view xv = omi_view(x), gv = omi_view(dy[0]), yv = omi_view(y);
    omi_clip_grad(&xv, b.lo, b.hi, &gv, &yv);
    dx[0] = y;
    return OM_OK;
}

om_tensor *om_clamp(om_tensor *x, double lo, double hi) {
    OMI_ENTER("om_clamp");
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_F32 | OMI_TYPE_INT)) return NULL;
    om_clamp_raw a = {.has_lo = !isnan(lo), .has_hi = !isnan(hi)};
    // A float bound is a float32 from here on (AR-7.2), so the record holds what the kernel uses.
    bool f = x->dtype == OM_F32;
    a.lo   = !a.has_lo ? 0 : f ? (double)(float)lo : lo;
    a.hi   = !a.has_hi ? 0 : f ? (double)(float)hi : hi;
    clamp_bounds b;
    if (!clamp_bounds_of(&a, (om_dtype)x->dtype, &b)) return NULL;
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_view xv = omi_view(x), yv = omi_view(y);
    omi_clip(&xv, b.lo, b.hi, &yv);
    return omi_record1(OM_OP_CLAMP, &a, NULL, 1, &x, y, clamp_backward, OM_SAVE_IN(0));
}

/* ---- scalar arithmetic
 * ------------------------------------------------------------------------------ */

/* y = a op s, or s op a; y may be a when a is contiguous. */
static void binary_with_scalar(om_binary_kind k, const om_view *a, const void *s, bool reversed,
                               const om_view *y) {
    om_view sv = omi_scalar_view(s, a->dtype, a);
    omi_binary(k, reversed ? &sv : a, reversed ? a : &sv, y);
}

/* add, sub: g; rsub: -g; mul: s*g; div: g/s; rdiv: -g*y/x (left to right). */
static om_status scalar_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    const om_scalar_raw *a = r->raw;
    om_tensor *g           = dy[0];
    if (!g || !omi_needs(r, 0)) return OM_OK;
    om_binary_kind k = (om_binary_kind)a->kind;
    if (k == OM_B_ADD || (k == OM_B_SUB && !a->reversed)) return dx[0] = g, OM_OK;
    om_tensor *y = omi_new_like(g);
    if (!y) return omi_pending_status;
    om_view gv = omi_view(g), yv = omi_view(y);
    uint64_t bits = 0;
    if (!omi_scalar_bytes(a->s, (om_dtype)g->dtype, &bits)) return omi_pending_status;
    if (k == OM_B_MUL)
        binary_with_scalar(OM_B_MUL, &gv, &bits, true, &yv);
    else if (k == OM_B_DIV && !a->reversed)
        binary_with_scalar(OM_B_DIV, &gv, &bits, false, &yv);
    else {
        omi_unary(OM_U_NEG, &gv, &yv, false);
        if (k == OM_B_DIV) {
            om_view out = omi_view(omi_saved_out(r, 0)), x = omi_view(omi_saved_in(r, 0));
            omi_binary(OM_B_MUL, &yv, &out, &yv);
            omi_binary(OM_B_DIV, &yv, &x, &yv);
        }
    }
    dx[0] = y;
    return OM_OK;
}

static om_tensor *scalar_op(om_binary_kind k, bool reversed, om_tensor *x, double s) {
    if (!omi_args1(x) || !omi_need_dtype(x, OMI_TYPE_NUM)) return NULL;
    om_dtype t    = (om_dtype)x->dtype;
    uint64_t bits = 0;
    if (!omi_scalar_bytes(s, t, &bits)) return NULL;
    bool integer = (omi_type_bit(t) & OMI_TYPE_INT) != 0;
    om_view xv   = omi_view(x);
    if (integer && k == OM_B_DIV && (reversed ? omi_any_zero(&xv) : bits == 0)) {
        if (reversed)
            omi_fail(OM_ERR_VALUE, "%s is the divisor and holds a zero", OMI_T(x));
        else
            omi_fail(OM_ERR_VALUE, "%s is divided by the integer zero", OMI_T(x));
        return NULL;
    }
    om_tensor *y = omi_new_like(x);
    if (!y) return NULL;
    om_view yv = omi_view(y);
    if (OM_LIKELY(omi_contiguous(x))) {
        int64_t n = omi_numel(x);
        xv        = omi_flat(x, n);
        yv        = omi_flat(y, n);
    }
    binary_with_scalar(k, &xv, &bits, reversed, &yv);
    om_scalar_raw a = {.kind = k, .reversed = reversed, .s = t == OM_F32 ? (double)(float)s : s};
    uint32_t save   = k == OM_B_DIV && reversed ? OM_SAVE_IN(0) | OM_SAVE_OUT(0) : 0;
    return omi_record1(OM_OP_SCALAR, &a, NULL, 1, &x, y, scalar_backward, save);
}

om_tensor *om_add_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_add_scalar");
    return scalar_op(OM_B_ADD, false, x, s);
}
om_tensor *om_sub_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_sub_scalar");
    return scalar_op(OM_B_SUB, false, x, s);
}
om_tensor *om_rsub_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_rsub_scalar");
    return scalar_op(OM_B_SUB, true, x, s);
}
om_tensor *om_mul_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_mul_scalar");
    return scalar_op(OM_B_MUL, false, x, s);
}
om_tensor *om_scale(om_tensor *x, double s) {
    OMI_ENTER("om_scale");
    return scalar_op(OM_B_MUL, false, x, s);
}
om_tensor *om_div_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_div_scalar");
    return scalar_op(OM_B_DIV, false, x, s);
}
om_tensor *om_rdiv_scalar(om_tensor *x, double s) {
    OMI_ENTER("om_rdiv_scalar");
    return scalar_op(OM_B_DIV, true, x, s);
}

/* ---- cast
 * ------------------------------------------------------------------------------------------- */

static om_status cast_backward(const om_record *r, om_tensor *const *dy, om_tensor **dx) {
    if (!dy[0] || !omi_needs(r, 0)) return OM_OK;
    om_tensor *y = omi_new_like_in(r, 0);
    if (!y) return omi_pending_status;
    om_view gv = omi_view(dy[0]), yv = omi_view(y);
    omi_cast(&gv, &yv);
    dx[0] = y;
    return OM_OK;
}

om_tensor *om_cast(om_tensor *x, om_dtype t) {
    OMI_ENTER("om_cast");
    if (!omi_args1(x)) return NULL;
    if (!omi_type_bit(t))
        OM_FAIL_NULL(OM_ERR_DTYPE, "%s cannot be cast to element type %d, which is not known",
                     OMI_T(x), (int)t);
    om_tensor *y = omi_new(t, x->rank, x->shape);
    if (!y) return NULL;
    om_view xv = omi_view(x), yv = omi_view(y);
    if (t == (om_dtype)x->dtype)
        omi_copy(&xv, &yv);
    else
        omi_cast(&xv, &yv);
    // Between float types the gradient is cast back; to or from an integer there is none.
    bool floats = (omi_type_bit(t) & omi_type_bit((om_dtype)x->dtype) & OMI_TYPE_FLOAT) ||
                  ((omi_type_bit(t) | omi_type_bit((om_dtype)x->dtype)) == OMI_TYPE_FLOAT);
    om_cast_raw a = {.dtype = t};
    return omi_record1(OM_OP_CAST, &a, NULL, 1, &x, y, floats ? cast_backward : NULL, 0);
}
