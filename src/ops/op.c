/*
 * op.c -- what all operators share: the table made of ops.def (names, arity, attribute layouts,
 * visitors) and the checks that begin an operator.
 *
 * Everything about an operator that other parts may ask for is derived here from its one row in
 * ops.def, so a new row cannot be half known. The checks raise errors that name the operand with
 * its shape and say what to call instead.
 *
 * Needs: tensor, autograd, compute/reduce.
 */
#include "ops/op.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "base/thread.h"
#include "compute/move.h"
#include "compute/reduce.h"
#include "compute/shape_rules.h"

// clang-format off

/* Offsets (+1) of the lists of an attribute struct: OM_L(x) becomes ", x" behind the type, and the number
 * of arguments selects how many offsets are written. */
#define AT(T, x) ((uint16_t)(offsetof(T, x) + 1))
#define L0(T) {0}
#define L1(T, a) {AT(T, a)}
#define L2(T, a, b) {AT(T, a), AT(T, b)}
#define L3(T, a, b, c) {AT(T, a), AT(T, b), AT(T, c)}
#define L4(T, a, b, c, d) {AT(T, a), AT(T, b), AT(T, c), AT(T, d)}
#define PICK(T, a, b, c, d, which, ...) which
#define LISTS(...) PICK(__VA_ARGS__, L4, L3, L2, L1, L0, 0)(__VA_ARGS__)

#define OM_I(x)
#define OM_F(x)
#define OM_D(x)
#define OM_L(x) , x
#define OM_NONE
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res)                                \
    {#name, sizeof(om_##name##_raw), sizeof(om_##name##_res),                                      \
     LISTS(om_##name##_raw raw), LISTS(om_##name##_res res)},
static const om_op_layout op_layouts[OM_OP_COUNT] = {
#include "ops/ops.def"
};
#undef OM_OP
#undef OM_I
#undef OM_F
#undef OM_D
#undef OM_L
#undef OM_NONE

#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res) {in_min, in_max, out_min, out_max},
static const om_op_arity op_arities[OM_OP_COUNT] = {
#include "ops/ops.def"
};
#undef OM_OP

/* A record's attributes must stay small: they are copied for every recorded call (CD-5). */
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, raw, res)                                \
    _Static_assert(sizeof(om_##name##_raw) <= 96 && sizeof(om_##name##_res) <= 96, #name);
#include "ops/ops.def"
#undef OM_OP

void omi_visit_raw(om_op op, const void *raw, om_field_fn visit, void *ctx) {
    if (!raw) return;
    switch (op) {
#define OM_I(x) visit(ctx, #x, OM_FIELD_INT, 1, &r->x);
#define OM_F(x) visit(ctx, #x, OM_FIELD_FLOAT, 1, &r->x);
#define OM_D(x) visit(ctx, #x, OM_FIELD_DOUBLE, 1, &r->x);
#define OM_L(x) visit(ctx, #x, OM_FIELD_LIST, r->x.n, r->x.v);
#define OM_NONE (void)r;
#define OM_OP(name, ID, in_min, in_max, out_min, out_max, fields, res)                             \
    case OM_OP_##ID: {                                                                             \
        const om_##name##_raw *r = raw;                                                            \
        fields                                                                                     \
    } break;
#include "ops/ops.def"
#undef OM_OP
#undef OM_I
#undef OM_F
#undef OM_D
#undef OM_L
#undef OM_NONE
    default: break;
    }
}
// clang-format on

const om_op_layout *omi_op_layout(om_op op) {
    return op >= 0 && op < OM_OP_COUNT ? &op_layouts[op] : NULL;
}

const char *omi_op_name(om_op op) {
    return op >= 0 && op < OM_OP_COUNT ? op_layouts[op].name : "unknown";
}

om_op_arity omi_op_arity(om_op op) {
    return op >= 0 && op < OM_OP_COUNT ? op_arities[op] : (om_op_arity){0};
}

/* ---- checks
 * -------------------------------------------------------------------------------------- */

static bool arg_ok(om_tensor *t, const char *what) {
    if (OM_UNLIKELY(!t || t->layout != OM_STRIDED)) return omi_check_arg(t, what), false;
    if (OM_UNLIKELY(t->trace_serial != 0) && omi_check_thread(t) != OM_OK) return false;
    return true;
}

/* An operator does not begin after an error or once the cancel flag is raised. */
static bool arg_refused(void) {
    return omi_failed() || omi_check_cancel() != OM_OK;
}

bool omi_args1(om_tensor *x) {
    if (arg_refused()) return false;
    return arg_ok(x, "x");
}

bool omi_args2(om_tensor *a, om_tensor *b) {
    if (arg_refused()) return false;
    return arg_ok(a, "a") && arg_ok(b, "b");
}

bool omi_arg(om_tensor *t, const char *what) {
    if (arg_refused()) return false;
    return arg_ok(t, what);
}

/* The constant a caller writes for a type. */
static const char *dtype_constant(om_dtype t) {
    const om_dtype_info *info = omi_dtype_computed((int32_t)t);
    return info ? info->constant : "OM_DTYPE_NONE";
}

bool omi_need_dtype(om_tensor *x, uint32_t dtypes) {
    if (OM_LIKELY(dtypes & omi_type_bit((om_dtype)x->dtype))) return true;
    static const om_dtype order[] = {OM_F32, OM_I64, OM_BOOL, OM_F64, OM_I32, OM_U8};
    om_dtype use                  = OM_F32;
    for (size_t i = 0; i < OM_COUNT(order); i++)
        if (dtypes & omi_type_bit(order[i])) {
            use = order[i];
            break;
        }
    omi_fail(OM_ERR_DTYPE, "%s: %s is not taken here; use om_cast(x, %s)", OMI_T(x),
             om_dtype_name((om_dtype)x->dtype), dtype_constant(use));
    return false;
}

bool omi_same_dtype(om_tensor *a, om_tensor *b) {
    if (OM_LIKELY(a->dtype == b->dtype)) return true;
    omi_fail(OM_ERR_DTYPE, "types differ: %s and %s; use om_cast(b, %s)", OMI_T(a), OMI_T(b),
             dtype_constant((om_dtype)a->dtype));
    return false;
}

bool omi_broadcast_more(om_tensor *t, int *rank, int64_t *shape) {
    int old = *rank, r = old > t->rank ? old : t->rank;
    int64_t all[OM_MAX_RANK];
    for (int i = 0; i < r; i++) {
        int is = i - (r - old), it = i - (r - t->rank);
        int64_t ns = is < 0 ? 1 : shape[is], nt = it < 0 ? 1 : t->shape[it];
        if (OM_UNLIKELY(!omi_rule_broadcast(ns, nt, &all[i]))) {
            char text[100];
            omi_fail(
                OM_ERR_SHAPE,
                "%s does not broadcast with %s: axis %d has sizes %lld and %lld; equal sizes or 1 "
                "are needed",
                OMI_T(t), omi_shape_text(text, sizeof text, old, shape), i - r, (long long)nt,
                (long long)ns);
            return false;
        }
    }
    memcpy(shape, all, sizeof *shape * (size_t)r);
    *rank = r;
    return true;
}

bool omi_broadcast_shape(om_tensor *a, om_tensor *b, int *rank, int64_t *shape) {
    int r = a->rank > b->rank ? a->rank : b->rank;
    *rank = r;
    for (int i = 0; i < r; i++) {
        int ia = i - (r - a->rank), ib = i - (r - b->rank);
        int64_t na = ia < 0 ? 1 : a->shape[ia], nb = ib < 0 ? 1 : b->shape[ib];
        if (OM_UNLIKELY(!omi_rule_broadcast(na, nb, &shape[i]))) {
            omi_fail(
                OM_ERR_SHAPE,
                "%s and %s do not broadcast: axis %d has sizes %lld and %lld; equal sizes or 1 "
                "are needed",
                OMI_T(a), OMI_T(b), i - r, (long long)na, (long long)nb);
            return false;
        }
    }
    return true;
}

om_tensor *omi_unbroadcast(om_tensor *g, int rank, const int64_t *shape) {
    if (!g) return NULL;
    int d         = g->rank - rank;
    uint32_t mask = 0;
    for (int i = 0; i < g->rank; i++)
        if (i < d || (shape[i - d] == 1 && g->shape[i] != 1)) mask |= 1u << i;
    if (!mask) return g;
    om_tensor *y = omi_new((om_dtype)g->dtype, rank, shape);
    if (!y) return NULL;
    om_view gv = omi_view(g), yv = omi_view(y);
    omi_reduce(OM_R_SUM, &gv, mask, &yv);
    return y;
}

om_tensor *omi_unbroadcast_to(om_tensor *g, const om_record *r, uint32_t i) {
    int rank;
    const int64_t *shape = omi_in_shape(r, i, &rank);
    return omi_unbroadcast(g, rank, shape);
}

/* ---- scalars
 * ------------------------------------------------------------------------------------- */

static bool whole_in(double s, double lo, double end, om_dtype t) {
    if (s >= lo && s < end && s == (double)(int64_t)s) return true;
    omi_fail(OM_ERR_ARG,
             "the number %g has no %s value; cast the tensor with om_cast(x, OM_F32) first", s,
             om_dtype_name(t));
    return false;
}

bool omi_scalar_bytes(double s, om_dtype t, void *out) {
    const om_dtype_info *info = omi_dtype_computed((int32_t)t);
    if (!info) return omi_fail(OM_ERR_DTYPE, "element type %d is not known", (int)t), false;
    double end = ldexp(1, info->class == OM_CLASS_SIGNED ? info->bits - 1 : info->bits);
    if (omi_type_bit(t) & OM_SET_INTEGER &&
        !whole_in(s, info->class == OM_CLASS_SIGNED ? -end : 0, end, t))
        return false;
    omi_element_from_double(s, t, out);
    return true;
}

/* ---- bytes a kernel needs for one call
 * ------------------------------------------------------------ */

bool omi_work_get(omi_work *w, size_t bytes) {
    w->bytes = bytes;
    w->data  = NULL;
    if (bytes == 0) return true;
    if (bytes <= sizeof w->small) return w->data = w->small, true;
    w->data = omi_alloc_aligned(bytes);
    return w->data != NULL;
}

void omi_work_put(omi_work *w) {
    if (w->data && w->data != w->small) omi_free_aligned(w->data, w->bytes);
    w->data = NULL;
}
