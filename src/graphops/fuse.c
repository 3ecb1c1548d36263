/*
 * fuse.c -- which node types can be steps of an epilogue, and their operands as rows and columns.
 */
#include "graphops/fuse.h"

#include "graphops/rows.h"

static const struct {
    om_select_fn select;
    om_fuse_fn step;
    bool either; /* of its two inputs */
} followers[] = {
    {omi_sel_unary, omi_fuse_unary, false},
    {omi_sel_unary_fast, omi_fuse_unary_fast, false},
    {omi_sel_binary, omi_fuse_binary, true},
    {omi_sel_clip, omi_fuse_clip, false},
    {omi_sel_batch_norm, omi_fuse_batch_norm, false},
};

bool omi_fuse_head(om_select_fn select) {
    return select == omi_sel_conv || select == omi_sel_matmul || select == omi_sel_gemm;
}

static om_fuse_fn fused_step_of(om_select_fn select, bool *either) {
    for (size_t i = 0; i < OM_COUNT(followers); i++)
        if (followers[i].select == select) return *either = followers[i].either, followers[i].step;
    return NULL;
}

bool omi_fuse_follower(om_select_fn select, bool *either) {
    return fused_step_of(select, either) != NULL;
}

bool omi_fuse_begin(const om_nctx *c, om_fused *f) {
    const om_pval *y = c->out[0];
    *f               = (om_fused){.images = c->def->select == omi_sel_conv, .rank = y->rank};
    if (y->dtype != OM_F32 || y->numel == 0) return false;
    f->columns = f->images ? y->rank - 2 : 1;
    if (c->def->select == omi_sel_matmul && c->in[1]->rank == 1) f->columns = 0;
    if (f->columns > y->rank) f->columns = y->rank;
    for (int i = 0; i < y->rank; i++)
        f->shape[i] = y->shape[i];
    return true;
}

bool omi_fuse_step(const om_nctx *c, uint32_t via, om_fused *f, bool *failed) {
    const om_pval *y = c->out[0];
    bool either;
    om_fuse_fn step = fused_step_of(c->def->select, &either);
    if (c->fast) step = fused_step_of(omi_node_select(c->def, true), &either);
    if (!step || f->ep.n == OM_EP_MAX || y->dtype != OM_F32 || y->rank != f->rank) return false;
    for (int i = 0; i < y->rank; i++)
        if (y->shape[i] != f->shape[i]) return false; // the node broadcasts the result
    return step(c, via, f, failed);
}

/* Axes [from, to) as one: its stride; false where it has several. */
static bool one_stride(const om_fused *f, const int64_t *strides, int from, int to, int64_t *out) {
    int64_t n = 1;
    *out      = 0;
    for (int i = to - 1; i >= from; i--) {
        if (f->shape[i] == 1) continue;
        if (n == 1)
            *out = strides[i];
        else if (strides[i] != *out * n)
            return false;
        n *= f->shape[i];
    }
    return true;
}

bool omi_fuse_add(om_fused *f, om_ep_step s, const int64_t *strides, uint32_t a, uint32_t b) {
    int rows = f->rank - f->columns, first = f->images ? 1 : 0;
    if (f->ep.n == OM_EP_MAX || !one_stride(f, strides, first, rows, &s.rs) ||
        !one_stride(f, strides, rows, f->rank, &s.cs))
        return false;
    s.is                  = f->images && f->shape[0] != 1 ? strides[0] : 0;
    f->a[f->ep.n]         = a;
    f->b[f->ep.n]         = b;
    f->ep.step[f->ep.n++] = s;
    return true;
}

static void drop_first(om_fused *f) {
    f->ep.n--;
    for (int i = 0; i < f->ep.n; i++) {
        f->ep.step[i] = f->ep.step[i + 1];
        f->a[i]       = f->a[i + 1];
        f->b[i]       = f->b[i + 1];
    }
}

bool omi_fuse_take_sum(om_fused *f, uint32_t *a, int64_t *rs, int64_t *cs) {
    const om_ep_step *s = &f->ep.step[0];
    if (f->ep.n == 0 || s->kind != OM_EP_ADD || s->is != 0 || f->a[0] == OM_NO_VALUE) return false;
    *a  = f->a[0];
    *rs = s->rs;
    *cs = s->cs;
    drop_first(f);
    return true;
}

bool omi_fuse_take_row_bias(om_fused *f, uint32_t *a) {
    const om_ep_step *s = &f->ep.step[0];
    int64_t rs, cs;
    if (f->ep.n == 0 || s->cs != 0 || (s->rs != 1 && f->shape[1] != 1)) return false;
    return omi_fuse_take_sum(f, a, &rs, &cs);
}

bool omi_fuse_put_row_bias(om_fused *f, uint32_t a) {
    if (f->ep.n == 0 || f->ep.n == OM_EP_MAX) return false;
    for (int i = f->ep.n++; i > 0; i--) {
        f->ep.step[i] = f->ep.step[i - 1];
        f->a[i]       = f->a[i - 1];
        f->b[i]       = f->b[i - 1];
    }
    f->ep.step[0] = (om_ep_step){.kind = OM_EP_ADD, .rs = 1};
    f->a[0]       = a;
    f->b[0]       = OM_NO_VALUE;
    return true;
}

const om_epilogue *omi_fuse_bind(const om_fused *f, const om_exec *e, om_epilogue *out) {
    if (!f || f->ep.n == 0) return NULL;
    out->n = f->ep.n;
    for (int i = 0; i < f->ep.n; i++) {
        out->step[i] = f->ep.step[i];
        if (f->a[i] != OM_NO_VALUE) out->step[i].a = e->ptr[f->a[i]];
        if (f->b[i] != OM_NO_VALUE) out->step[i].b = e->ptr[f->b[i]];
    }
    return out;
}
