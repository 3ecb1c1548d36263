/*
 * elementwise.c -- nodes on each element: one, two, three and n operands, Clip, Cast. Numpy
 * broadcasting; values by AR-7.5, AR-9. A zero integer divisor fails the run (AR-9.1).
 */
#include "compute/elementwise.h"

#include <string.h>

#include "graphops/rows.h"

/* ---- one operand --------------------------------------------------------------------------------
 */

static om_status unary_kind(om_nctx *c, om_unary_kind *k) {
    static const char *const forms[] = {"none", "tanh"};
    *k                               = (om_unary_kind)c->def->arg;
    int form                         = 0;
    if (*k == OM_U_GELU) {
        OM_TRY(omi_get_choice(c, "approximate", 2, forms, &form));
        if (form == 1) *k = OM_U_GELU_TANH;
    }
    return OM_OK;
}

om_status omi_infer_unary(om_nctx *c) {
    om_unary_kind k;
    OM_TRY(omi_arity(c, 1, 1, 1));
    OM_TRY(unary_kind(c, &k));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    int32_t t = c->in[0]->dtype;
    if (t && !omi_unary_supports(k, (om_dtype)t))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    OM_TRY(omi_out_type(c, 0, t));
    return c->types_only ? OM_OK : omi_out_like(c, 0, c->in[0]);
}

typedef struct unary_args {
    om_ref x, y;
    om_unary_kind k;
    bool fast;
} unary_args;

static om_status run_unary(const om_step *s, const om_exec *e) {
    const unary_args *a = s->args;
    om_view x = omi_bind(e, &a->x), y = omi_bind(e, &a->y);
    omi_unary(a->k, &x, &y, a->fast);
    return OM_OK;
}

static om_step *select_unary(om_nctx *c, bool fast) {
    om_step *s    = omi_step(c, run_unary, sizeof(unary_args));
    unary_args *a = s ? s->args : NULL;
    if (!a || unary_kind(c, &a->k) != OM_OK) return NULL;
    a->x        = omi_ref(c->in[0]);
    a->y        = omi_ref(c->out[0]);
    a->fast     = fast;
    s->in_place = 1;
    return s;
}
om_step *omi_sel_unary(om_nctx *c) {
    return select_unary(c, false);
}
om_step *omi_sel_unary_fast(om_nctx *c) {
    return select_unary(c, true);
}

/* ---- two operands -------------------------------------------------------------------------------
 */

static om_status binary_types(om_nctx *c, om_binary_kind k) {
    for (uint32_t i = 0; i < c->n_in; i++) {
        OM_TRY(omi_type(c, i, OM_TY_ALL));
        OM_TRY(omi_same_type(c, 0, i));
    }
    int32_t t = c->in[0]->dtype;
    if (t && !omi_binary_supports(k, (om_dtype)t))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    return omi_out_type(c, 0, k >= OM_B_EQUAL ? (t ? OM_BOOL : 0) : t);
}

static om_status broadcast_out(om_nctx *c) {
    int rank = 0;
    int64_t shape[OM_MAX_RANK];
    OM_TRY(omi_broadcast(c, c->n_in, c->in, &rank, shape));
    return omi_out_shape(c, 0, rank, shape);
}

om_status omi_infer_binary(om_nctx *c) {
    OM_TRY(omi_arity(c, 2, 2, 1));
    OM_TRY(binary_types(c, (om_binary_kind)c->def->arg));
    return c->types_only ? OM_OK : broadcast_out(c);
}

typedef struct binary_args {
    om_ref a, b, y;
    om_binary_kind k;
    bool divides; /* integers: look for zero first */
} binary_args;

static om_status zero_divisor(const om_step *s, const om_exec *e) {
    return omi_step_fail(s, e, OM_ERR_VALUE, "an integer divisor is zero");
}

static om_status run_binary(const om_step *s, const om_exec *e) {
    const binary_args *p = s->args;
    om_view a = omi_bind(e, &p->a), b = omi_bind(e, &p->b), y = omi_bind(e, &p->y);
    if (p->divides && omi_view_numel(&y) && omi_any_zero(&b)) return zero_divisor(s, e);
    omi_binary(p->k, &a, &b, &y);
    return OM_OK;
}

static bool is_integer(int32_t t) {
    return t == OM_I64 || t == OM_I32 || t == OM_U8;
}

om_step *omi_sel_binary(om_nctx *c) {
    om_step *s     = omi_step(c, run_binary, sizeof(binary_args));
    binary_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    const om_pval *y = c->out[0];
    a->k             = (om_binary_kind)c->def->arg;
    a->a             = omi_ref_as(c->in[0], y->rank, y->shape);
    a->b             = omi_ref_as(c->in[1], y->rank, y->shape);
    a->y             = omi_ref(y);
    a->divides       = a->k == OM_B_DIV && is_integer(y->dtype);
    // The layout only shares bytes of equal size, so a broadcast operand never qualifies.
    if (y->dtype == c->in[0]->dtype) s->in_place = 3;
    return s;
}

/* ---- n operands: a left fold (AR-7.5) -------------------------------------------------------- */

/* arg: MAX, MIN, ADD for Sum, DIV for Mean. */
static om_binary_kind fold_kind(const om_nctx *c) {
    return c->def->arg == OM_B_DIV ? OM_B_ADD : (om_binary_kind)c->def->arg;
}

om_status omi_infer_many(om_nctx *c) {
    OM_TRY(omi_arity(c, 1, UINT32_MAX, 1));
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->in[i]) return omi_problem(c, OM_ERR_MALFORMED, "input %u is absent", i);
    OM_TRY(binary_types(c, fold_kind(c)));
    if (c->def->arg == OM_B_DIV && c->in[0]->dtype && c->in[0]->dtype != OM_F32)
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s",
                           omi_elem_name(c->in[0]->dtype));
    return c->types_only ? OM_OK : broadcast_out(c);
}

typedef struct many_args {
    uint32_t n;
    om_binary_kind k;
    bool mean;
    om_ref y;
    om_ref in[];
} many_args;

static om_status run_many(const om_step *s, const om_exec *e) {
    const many_args *p = s->args;
    om_view y = omi_bind(e, &p->y), a = omi_bind(e, &p->in[0]);
    if (p->n == 1 && !p->mean) {
        omi_copy(&a, &y);
        return OM_OK;
    }
    for (uint32_t i = 1; i < p->n; i++) {
        om_view b = omi_bind(e, &p->in[i]);
        omi_binary(p->k, &a, &b, &y);
        a = y;
    }
    if (p->mean) {
        float n   = (float)p->n;
        om_view d = {.data = &n, .dtype = OM_F32};
        om_view b = omi_view_broadcast(&d, y.rank, y.shape);
        omi_binary(OM_B_DIV, &a, &b, &y);
    }
    return OM_OK;
}

om_step *omi_sel_many(om_nctx *c) {
    om_step *s   = omi_step(c, run_many, sizeof(many_args) + c->n_in * sizeof(om_ref));
    many_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->n    = c->n_in;
    a->k    = fold_kind(c);
    a->mean = c->def->arg == OM_B_DIV;
    a->y    = omi_ref(c->out[0]);
    for (uint32_t i = 0; i < c->n_in; i++)
        a->in[i] = omi_ref_as(c->in[i], c->out[0]->rank, c->out[0]->shape);
    return s;
}

/* ---- Where --------------------------------------------------------------------------------------
 */

om_status omi_infer_where(om_nctx *c) {
    OM_TRY(omi_arity(c, 3, 3, 1));
    if (c->in[0]->dtype && c->in[0]->dtype != OM_BOOL)
        return omi_problem(c, OM_ERR_MALFORMED, "the condition '%.60s' is %s; bool is needed",
                           c->in[0]->name, omi_elem_name(c->in[0]->dtype));
    OM_TRY(omi_type(c, 1, OM_TY_ALL));
    OM_TRY(omi_type(c, 2, OM_TY_ALL));
    OM_TRY(omi_same_type(c, 1, 2));
    OM_TRY(omi_out_type(c, 0, c->in[1]->dtype));
    return c->types_only ? OM_OK : broadcast_out(c);
}

typedef struct where_args {
    om_ref c, a, b, y;
} where_args;

static om_status run_where(const om_step *s, const om_exec *e) {
    const where_args *p = s->args;
    om_view q = omi_bind(e, &p->c), a = omi_bind(e, &p->a), b = omi_bind(e, &p->b),
            y = omi_bind(e, &p->y);
    omi_where(&q, &a, &b, &y);
    return OM_OK;
}

om_step *omi_sel_where(om_nctx *c) {
    om_step *s    = omi_step(c, run_where, sizeof(where_args));
    where_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    const om_pval *y = c->out[0];
    a->c             = omi_ref_as(c->in[0], y->rank, y->shape);
    a->a             = omi_ref_as(c->in[1], y->rank, y->shape);
    a->b             = omi_ref_as(c->in[2], y->rank, y->shape);
    a->y             = omi_ref(y);
    return s;
}

/* ---- Clip: bounds are inputs; before opset 11 attributes ---------------------------------------
 */

om_status omi_infer_clip(om_nctx *c) {
    OM_TRY(omi_arity(c, 1, 3, 1));
    OM_TRY(omi_type(c, 0, OM_TY_F32 | OM_TY_F64 | OM_TY_INT | OM_TY_U8));
    int32_t t = c->in[0]->dtype;
    if (t && !omi_binary_supports(OM_B_MAX, (om_dtype)t))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no kernel for %s", omi_elem_name(t));
    OM_TRY(omi_same_type(c, 0, 1));
    OM_TRY(omi_same_type(c, 0, 2));
    OM_TRY(omi_out_type(c, 0, t));
    if (c->types_only) return OM_OK;
    for (uint32_t i = 1; i < c->n_in; i++)
        if (c->in[i] && c->in[i]->numel != 1)
            return omi_problem(c, OM_ERR_SHAPE, "the bound '%.60s' must have one element",
                               c->in[i]->name);
    return omi_out_like(c, 0, c->in[0]);
}

typedef struct clip_args {
    om_ref x, y;
    uint32_t lo, hi; /* OM_NO_VALUE: none, or the attribute */
    bool has_lo, has_hi;
    float lo_attr, hi_attr;
} clip_args;

static om_status run_clip(const om_step *s, const om_exec *e) {
    const clip_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    const void *lo = p->has_lo ? &p->lo_attr : NULL, *hi = p->has_hi ? &p->hi_attr : NULL;
    if (p->lo != OM_NO_VALUE) lo = e->ptr[p->lo];
    if (p->hi != OM_NO_VALUE) hi = e->ptr[p->hi];
    omi_clip(&x, lo, hi, &y);
    return OM_OK;
}

om_step *omi_sel_clip(om_nctx *c) {
    om_step *s   = omi_step(c, run_clip, sizeof(clip_args));
    clip_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x  = omi_ref(c->in[0]);
    a->y  = omi_ref(c->out[0]);
    a->lo = c->n_in > 1 && c->in[1] ? c->in[1]->index : OM_NO_VALUE;
    a->hi = c->n_in > 2 && c->in[2] ? c->in[2]->index : OM_NO_VALUE;
    if (c->opset < 11 && c->in[0]->dtype == OM_F32) {
        a->has_lo = omi_attr(c->node, "min") != NULL;
        a->has_hi = omi_attr(c->node, "max") != NULL;
        if (omi_get_float(c, "min", 0, &a->lo_attr) != OM_OK ||
            omi_get_float(c, "max", 0, &a->hi_attr) != OM_OK)
            return NULL;
    }
    return s;
}

/* ---- Cast, CastLike -----------------------------------------------------------------------------
 */

om_status omi_infer_cast(om_nctx *c) {
    bool like  = c->def->arg == 1;
    int64_t to = 0;
    OM_TRY(omi_arity(c, like ? 2 : 1, like ? 2 : 1, 1));
    OM_TRY(omi_type(c, 0, OM_TY_ALL));
    if (like)
        to = c->in[1]->dtype;
    else {
        if (!omi_attr(c->node, "to"))
            return omi_problem(c, OM_ERR_MALFORMED, "attribute 'to' is missing");
        OM_TRY(omi_get_int(c, "to", 0, &to));
    }
    if ((!like || to) && (to <= 0 || to > 31 || !(OM_TY_ALL >> to & 1)))
        return omi_problem(c, OM_ERR_UNSUPPORTED, "there is no cast to %s",
                           omi_elem_name(to > 0 && to < 64 ? (int32_t)to : -1));
    OM_TRY(omi_out_type(c, 0, (int32_t)to));
    return c->types_only ? OM_OK : omi_out_like(c, 0, c->in[0]);
}

typedef struct cast_args {
    om_ref x, y;
} cast_args;

static om_status run_cast(const om_step *s, const om_exec *e) {
    const cast_args *p = s->args;
    om_view x = omi_bind(e, &p->x), y = omi_bind(e, &p->y);
    omi_cast(&x, &y);
    return OM_OK;
}

om_step *omi_sel_cast(om_nctx *c) {
    if (c->in[0]->dtype == c->out[0]->dtype) return omi_step_view(c, 0);
    om_step *s   = omi_step(c, run_cast, sizeof(cast_args));
    cast_args *a = s ? s->args : NULL;
    if (!a) return NULL;
    a->x = omi_ref(c->in[0]);
    a->y = omi_ref(c->out[0]);
    return s;
}
