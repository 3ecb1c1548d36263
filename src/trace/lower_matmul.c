/*
 * lower_matmul.c -- MatMul and Linear (operators 1.4).
 */
#include "trace/lower.h"

/* Batch axes broadcast, the inner axis must agree, rows and columns are carried. */
static bool matmul_extents(om_lowering *lw, const om_tvalue *a, const om_tvalue *b,
                           om_xshape *out) {
    int ra = a->rank, rb = b->rank, ba = ra < 2 ? 0 : ra - 2, bb = rb < 2 ? 0 : rb - 2;
    int batch     = ba > bb ? ba : bb;
    om_extent one = omi_ext_static(1), unused;
    om_xshape s   = {0};
    if (!omi_lw_unify(lw, 0, &a->e[ra - 1], ra - 1, 1, &b->e[rb < 2 ? 0 : rb - 2],
                      rb < 2 ? 0 : rb - 2, false, &unused))
        return false;
    for (int i = 0; i < batch; i++) {
        int ia = i - (batch - ba), ib = i - (batch - bb);
        const om_extent *ea = ia < 0 ? &one : &a->e[ia], *eb = ib < 0 ? &one : &b->e[ib];
        if (!omi_lw_unify(lw, 0, ea, ia, 1, eb, ib, true, &s.e[s.rank++])) return false;
    }
    if (ra > 1) s.e[s.rank++] = a->e[ra - 2];
    if (rb > 1) s.e[s.rank++] = b->e[rb - 1];
    *out = s;
    return true;
}

static om_status lower_matmul(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    om_xshape s;
    if (matmul_extents(lw, in[0], in[1], &s))
        out[0] = omi_lw_op(lw, "MatMul", OMI_INS(in[0], in[1]), (om_dtype)call->out[0]->dtype, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_matmul = {.emit = lower_matmul};

/* w^T: a constant copy for a constant weight, so that no node runs for it. */
static om_tvalue *lowered_transposed(om_lowering *lw, om_tvalue *w) {
    om_tensor *t = lw->call->in[1];
    if (w->kind == OM_TV_CONST) {
        int64_t shape[2] = {t->shape[1], t->shape[0]}, strides[2] = {t->strides[1], t->strides[0]};
        return omi_tr_const_view(lw->tr, t, 2, shape, strides, lw->call->name);
    }
    om_xshape s = {.rank = 2, .e = {w->e[1], w->e[0]}};
    om_tnode *n = omi_lw_node(lw, "Transpose", OMI_INS(w), 1);
    omi_lw_ints(lw, n, "perm", 2, (int64_t[]){1, 0});
    return omi_lw_out(lw, n, 0, (om_dtype)w->dtype, &s);
}

static om_status lower_linear(om_lowering *lw, const om_call *call, om_tvalue *const *in,
                              om_tvalue **out) {
    om_tvalue *x = in[0], *w = in[1], *b = call->n_in > 2 ? in[2] : NULL;
    om_dtype t  = (om_dtype)call->out[0]->dtype;
    om_xshape s = omi_lw_shape_of(x);
    om_extent unused;
    if (!omi_lw_unify(lw, 0, &x->e[x->rank - 1], x->rank - 1, 1, &w->e[1], 1, false, &unused))
        return omi_lw_done();
    s.e[s.rank - 1] = w->e[0];
    if (b && !omi_lw_unify(lw, 1, &w->e[0], 0, 2, &b->e[0], 0, false, &s.e[s.rank - 1]))
        return omi_lw_done();
    if (x->rank == 2) {
        om_tnode *n = omi_lw_node(lw, "Gemm", OMI_INS(x, w, b), 1);
        omi_lw_float(lw, n, "alpha", 1);
        omi_lw_float(lw, n, "beta", 1);
        omi_lw_int(lw, n, "transB", 1);
        out[0] = omi_lw_out(lw, n, 0, t, &s);
        return omi_lw_done();
    }
    om_tvalue *wt = lowered_transposed(lw, w);
    out[0]        = omi_lw_op(lw, "MatMul", OMI_INS(x, wt), t, &s);
    if (b) out[0] = omi_lw_op(lw, "Add", OMI_INS(out[0], b), t, &s);
    return omi_lw_done();
}
const om_lower_rule omi_lower_linear = {.emit = lower_linear};
