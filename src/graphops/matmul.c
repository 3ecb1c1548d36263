/*
 * matmul.c -- MatMul with numpy's rules and Gemm, both the product of AR-2 with the epilogue of
 * AR-2.2.
 *
 * Transposes are strides. A constant right operand is packed once per buffer (CD-25) and the packed
 * form shared by every plan and session. A right operand without batch makes one product of all
 * rows.
 */
#include "compute/matmul.h"

#include "base/checked.h"
#include "compute/pack.h"
#include "graphops/fuse.h"
#include "graphops/rows.h"

/* What a step keeps: the plan, and where its operands are. */
typedef struct product_args {
    om_matmul_plan plan;
    uint32_t a, b, c, y;
    const om_fused *fused; /* NULL: nothing follows */
} product_args;

static om_status run_product(const om_run_step *s, const om_exec *e) {
    const product_args *p = s->args;
    om_matmul_ptrs x      = {.a = e->ptr[p->a], .b = e->ptr[p->b], .y = e->ptr[p->y]};
    om_epilogue ep;
    if (p->c != OM_NO_VALUE) x.c = e->ptr[p->c];
    x.ep = omi_fuse_bind(p->fused, e, &ep);
    omi_matmul_run(&p->plan, &x, e->ws);
    return OM_OK;
}

/* A step for m, whose b is packed when it is a constant without batch axes. */
static om_run_step *product_step(om_nctx *c, om_matmul_args *m) {
    om_run_step *s  = omi_step(c, run_product, sizeof(product_args));
    product_args *p = s ? s->args : NULL;
    if (!p) return NULL;
    const om_pval *bv = c->in[1], *bias = omi_in(c, 2);
    const om_view *b = &m->b;
    int r            = b->rank;
    bool packable =
        bv->dtype == OM_F32 && bv->known && bv->buf && bv->numel > 0 && omi_pack_may_cache(bv->buf);
    for (int i = 0; i < r - 2; i++)
        if (b->strides[i] != 0 && b->shape[i] != 1) packable = false;
    if (packable) {
        if (!omi_hold(c, omi_panel16_bytes(b->shape[r - 2], b->shape[r - 1]))) return NULL;
        m->b_packed =
            omi_panel16_cached(bv->buf, bv->offset / (int64_t)sizeof(float), b->strides[r - 2],
                               b->strides[r - 1], b->shape[r - 2], b->shape[r - 1]);
        if (!m->b_packed) return NULL;
    }
    uint32_t sum = bias ? bias->index : OM_NO_VALUE;
    if (c->fused && !bias && m->y.rank == 2 && // a sum that follows is C of AR-2.2 with beta 1
        omi_fuse_take_sum(c->fused, &sum, &m->c.strides[0], &m->c.strides[1])) {
        m->has_c = true;
        m->beta  = 1;
    }
    if (!omi_matmul_plan(m, c->workers, &p->plan)) {
        omi_problem(c, OM_ERR_LIMIT,
                    "the product of '%.60s' and '%.60s' takes more than 2^53 steps", c->in[0]->name,
                    bv->name);
        return NULL;
    }
    p->a        = c->in[0]->index;
    p->b        = bv->index;
    p->c        = sum;
    p->fused    = c->fused;
    p->y        = c->out[0]->index;
    s->ws_bytes = p->plan.ws_bytes;
    return s;
}

static void add_axis(om_view *v, int at) {
    for (int i = v->rank; i > at; i--) {
        v->shape[i]   = v->shape[i - 1];
        v->strides[i] = v->strides[i - 1];
    }
    v->shape[at]   = 1;
    v->strides[at] = 0;
    v->rank++;
}

/* ---- MatMul -------------------------------------------------------------------------------------
 */

om_status omi_infer_matmul(om_nctx *c) {
    const om_pval *a = c->in[0], *b = c->in[1];
    if (a->rank < 1 || b->rank < 1)
        return omi_problem(c, OM_ERR_SHAPE, "operands of rank 0 have no matrix product");
    int64_t ka = a->shape[a->rank - 1], kb = b->shape[b->rank > 1 ? b->rank - 2 : 0];
    if (ka != kb)
        return omi_problem(
            c, OM_ERR_SHAPE,
            "the last axis of '%.60s' is %lld and the matching axis of '%.60s' is %lld", a->name,
            (long long)ka, b->name, (long long)kb);
    om_pval ba = *a, bb = *b, *batch[2] = {&ba, &bb};
    int rank = 0;
    int64_t shape[OM_MAX_RANK + 2];
    ba.rank = a->rank > 2 ? a->rank - 2 : 0;
    bb.rank = b->rank > 2 ? b->rank - 2 : 0;
    OM_TRY(omi_broadcast(c, 2, batch, &rank, shape));
    if (a->rank > 1) shape[rank++] = a->shape[a->rank - 2];
    if (b->rank > 1) shape[rank++] = b->shape[b->rank - 1];
    return omi_out_shape(c, 0, rank, shape);
}

/* b is one matrix and a is contiguous: all rows of a are one product. */
static void flatten_rows(om_matmul_args *m) {
    int64_t rows = 1, k = m->a.shape[m->a.rank - 1];
    for (int i = 0; i < m->a.rank - 1; i++)
        rows *= m->a.shape[i];
    m->a = (om_view){.dtype = m->a.dtype, .rank = 2, .shape = {rows, k}};
    m->y = (om_view){.dtype = m->y.dtype, .rank = 2, .shape = {rows, m->y.shape[m->y.rank - 1]}};
    omi_view_pack_strides(&m->a);
    omi_view_pack_strides(&m->y);
}

om_run_step *omi_sel_matmul(om_nctx *c) {
    om_matmul_args args = {.alpha = 1, .beta = 1}, *m = &args;
    m->a = omi_ref(c->in[0]).v;
    m->b = omi_ref(c->in[1]).v;
    m->y = omi_ref(c->out[0]).v;
    if (c->in[1]->rank == 1) {
        add_axis(&m->b, 1);
        add_axis(&m->y, m->y.rank);
    }
    if (c->in[0]->rank == 1) {
        add_axis(&m->a, 0);
        add_axis(&m->y, m->y.rank - 1);
    }
    omi_view_pack_strides(&m->y);
    if (m->b.rank == 2) flatten_rows(m);
    int r = m->y.rank;
    int64_t want[OM_MAX_RANK];
    for (int k = 0; k < r; k++)
        want[k] = m->y.shape[k];
    want[r - 1] = m->a.shape[m->a.rank - 1];
    m->a        = omi_view_broadcast(&m->a, r, want);
    want[r - 2] = want[r - 1];
    want[r - 1] = m->y.shape[r - 1];
    m->b        = omi_view_broadcast(&m->b, r, want);
    return product_step(c, m);
}

/* ---- Gemm ---------------------------------------------------------------------------------------
 */

typedef struct gemm_form {
    float alpha, beta;
    bool ta, tb;
} gemm_form;

om_status omi_parse_gemm(om_nctx *c) {
    gemm_form *g = omi_form(c, sizeof *g);
    if (!g) return OM_ERR_NOMEM;
    g->alpha = omi_float(c, "alpha");
    g->beta  = omi_float(c, "beta");
    g->ta    = omi_flag(c, "transA");
    g->tb    = omi_flag(c, "transB");
    return OM_OK;
}

om_status omi_infer_gemm(om_nctx *c) {
    const gemm_form *g = c->form;
    const om_pval *a = c->in[0], *b = c->in[1], *bias = omi_in(c, 2);
    if (a->rank != 2 || b->rank != 2)
        return omi_problem(c, OM_ERR_SHAPE, "A has rank %d and B rank %d; both must have rank 2",
                           a->rank, b->rank);
    int64_t ka = a->shape[g->ta ? 0 : 1], kb = b->shape[g->tb ? 1 : 0];
    if (ka != kb)
        return omi_problem(c, OM_ERR_SHAPE,
                           "the inner sizes of '%.60s' and '%.60s' are %lld and %lld", a->name,
                           b->name, (long long)ka, (long long)kb);
    int64_t shape[2] = {a->shape[g->ta ? 1 : 0], b->shape[g->tb ? 0 : 1]};
    if (bias) {
        for (int i = 0; i < bias->rank; i++) {
            int to    = 2 - bias->rank + i;
            int64_t n = bias->shape[i];
            if (to < 0 || (n != 1 && n != shape[to]))
                return omi_problem(c, OM_ERR_SHAPE, "C '%.60s' does not broadcast to [%lld,%lld]",
                                   bias->name, (long long)shape[0], (long long)shape[1]);
        }
    }
    return omi_out_shape(c, 0, 2, shape);
}

static void transpose2(om_view *v) {
    int64_t n = v->shape[0], s = v->strides[0];
    v->shape[0]   = v->shape[1];
    v->strides[0] = v->strides[1];
    v->shape[1]   = n;
    v->strides[1] = s;
}

om_run_step *omi_sel_gemm(om_nctx *c) {
    const gemm_form *g  = c->form;
    const om_pval *bias = omi_in(c, 2);
    om_matmul_args m    = {.alpha = g->alpha, .beta = g->beta};
    m.a                 = omi_ref(c->in[0]).v;
    m.b                 = omi_ref(c->in[1]).v;
    m.y                 = omi_ref(c->out[0]).v;
    if (g->ta) transpose2(&m.a);
    if (g->tb) transpose2(&m.b);
    if (bias) {
        m.c     = omi_ref_as(bias, 2, c->out[0]->shape).v;
        m.has_c = true;
    }
    return product_step(c, &m);
}
